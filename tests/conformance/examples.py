"""Records to test stores with: short to build, and the same in every test."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from tests.conformance import kit
from wellkept.knowledge.rules_passages import PassageEvidence, compute_features, query_terms
from wellkept.model import (
    AuditEvent,
    Change,
    ChangeAction,
    ChangeCause,
    ChangedMemory,
    ChangeState,
    ContextCall,
    Detail,
    Document,
    Match,
    Memory,
    Message,
    Owner,
    Role,
    Session,
    Workflow,
    WorkflowStep,
)
from wellkept.model.stored import Vector
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import ContentDraft

ALL_KINDS, NOW, EARLIER, LATER = kit.ALL_KINDS, kit.NOW, kit.EARLIER, kit.LATER
agent, api_key, ids, note, owner = kit.agent, kit.api_key, kit.ids, kit.note, kit.owner
EMBEDDER = "test"
DIMENSIONS = 8


def session(id: str, owner: Owner, **changes: Any) -> Session:
    return Session(**{"id": id, "owner": owner, "created_at": NOW, "updated_at": NOW, **changes})


def messages(*contents: str, **changes: Any) -> list[Message]:
    """What was said, in turn."""
    roles = itertools.cycle((Role.USER, Role.ASSISTANT))
    return [
        Message(**{"session_id": "", "role": role, "content": content, "created_at": NOW, **changes})
        for role, content in zip(roles, contents, strict=False)
    ]


def a_change(owner: Owner, *ended: str, **fields: Any) -> Change:
    """Return a proposed change that ends these memories."""
    memories = tuple(ChangedMemory(action=ChangeAction.END, id=id, version=1) for id in ended)
    said = {"reason": "They say the same.", "state": ChangeState.PROPOSED, "cause": ChangeCause.CONSOLIDATION}
    return Change(**{"owner": owner, "memories": memories, "created_at": NOW, **said, **fields})


def document(id: str, tenant: str, **changes: Any) -> Document:
    times = {"created_at": NOW, "updated_at": NOW}
    return Document(
        **{"id": id, "tenant": tenant, "title": id.title(), "content_hash": f"hash of {id}"} | times | changes
    )


def detail(key: str, owner: Owner, **changes: Any) -> Detail:
    return Detail(**{"key": key, "owner": owner, "created_at": NOW, **changes})


def add_detail(store: SqlStore, detail: Detail, *pieces: str) -> Detail:
    """Store a detail whose text comes in these pieces."""
    draft = ContentDraft()
    try:
        for piece in pieces:
            draft.feed(piece)
        draft.seal()
        return store.add_detail(detail, draft)
    finally:
        draft.close()


def event(message: str, tenant: str, **changes: Any) -> AuditEvent:
    return AuditEvent(**{"tenant": tenant, "at": NOW, "action": "memory.add", "message": message, **changes})


def call(owner: Owner, **changes: Any) -> ContextCall:
    known = {"id": "c-1", "session_id": "s-1", "at": NOW, "layout": "standard", "budget": 8000, "tokens": 120}
    return ContextCall(**{"owner": owner, "blocks": (), "truncations": (), **known, **changes})


def workflow(id: str, tenant: str, **changes: Any) -> Workflow:
    return Workflow(**{"id": id, "tenant": tenant, "name": id.title(), "created_at": NOW, **changes})


def step(name: str, tenant: str, workflow_id: str = "run", **changes: Any) -> WorkflowStep:
    known = {"tenant": tenant, "workflow_id": workflow_id, "workflow_name": workflow_id.title(), "output": ""}
    return WorkflowStep(**{**known, "name": name, "completed_at": NOW, **changes})


def vector(*parts: float) -> Vector:
    """These coordinates, the others 0, brought to length 1."""
    whole = np.zeros(DIMENSIONS, np.float32)
    whole[: len(parts)] = parts
    return whole / np.linalg.norm(whole)


def texts(memories: Iterable[Memory]) -> list[str]:
    return [memory.text for memory in memories]


def seqs(matches: Iterable[Match]) -> list[int]:
    return [match.seq for match in matches]


def search_chunks(
    store: SqlStore, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 10
) -> list[Match]:
    """Passages that share words with the query, best first."""
    evidence = store.weigh_chunks(tenant, query_terms(query), None, categories=categories)
    scores = compute_features(evidence)["words"] if query_terms(query) else np.zeros(0)
    return _best(evidence, scores, scores > 0, limit)


def nearest_chunks(
    store: SqlStore, tenant: str, vector: Vector, *, categories: Collection[str] = (), limit: int = 10
) -> list[Match]:
    """Passages by their cosine, best first."""
    evidence = store.weigh_chunks(tenant, (), vector, categories=categories)
    cosines = evidence.found.cosines
    assert cosines is not None
    return _best(evidence, cosines, ~np.isnan(cosines), limit)


def _best(evidence: PassageEvidence, scores: Any, wanted: Any, limit: int) -> list[Match]:
    matches = map(Match, evidence.found.seqs[wanted].tolist(), scores[wanted].tolist())
    return sorted(matches, key=lambda match: (-match.score, -match.seq))[:limit]
