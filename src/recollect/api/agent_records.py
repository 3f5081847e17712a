"""The verbs of an agent's memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.api.build import Services
from recollect.errors import Invalid
from recollect.model import Explanation, Kind, Memory, MemoryVersion, Owner, Recalled, State
from recollect.policy.memories.kinds import checked_kind
from recollect.policy.names import memory_seq
from recollect.policy.numbers import checked_before
from recollect.policy.recall.purposes import checked_purpose
from recollect.policy.text import checked_text
from recollect.services.history.tracing import traced
from recollect.services.memories.drafts import Draft, checked_moment
from recollect.services.recall.explain import Explain
from recollect.services.recall.recall import RecallRequest, checked_limit, checked_sources


class AgentView:
    """One agent in one store."""

    def __init__(self, services: Services, owner: Owner) -> None:
        self.owner = owner
        self._services = services
        self._store = services.store


MAX_PAGE = 500
PAGE = 100
SEARCH_LIMIT = 20
ANY_STATE = "all"


class Records(AgentView):
    """The verbs that work on single memories."""

    @traced("create_memory")
    def remember(
        self,
        text: str,
        *,
        kind: str = Kind.NOTE,
        tags: Sequence[str] = (),
        scope: str | None = None,
        role: str | None = None,
        session_id: str | None = None,
        importance: float | None = None,
        category: str | None = None,
        origin: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        supersedes: str | None = None,
        valid_from: datetime | None = None,
    ) -> Memory:
        """Keep one short text. When this returns, it is on disk. A note or core memory that is there already, but for
        case and white space, is returned as it is; `supersedes` names the memory this one corrects.

        Raises: Invalid, SecretRejected, NotFound.
        """
        draft = Draft(
            text=text,
            kind=kind,
            tags=tags,
            scope=scope,
            role=role,
            session_id=session_id,
            importance=importance,
            category=category,
            origin=origin,
            created_at=created_at,
            expires_at=expires_at,
            supersedes=supersedes,
            valid_from=valid_from,
        )
        return self._services.remember(self.owner, [draft])[0]

    @traced("create_memory")
    def remember_many(self, items: Iterable[str | Mapping[str, Any]]) -> Sequence[Memory]:
        """Keep many texts in one transaction: all of them or none. An item is a text, or `remember`'s arguments.

        Raises: Invalid.
        """
        drafts = [_draft(item) for item in items]
        return self._services.remember(self.owner, drafts) if drafts else []

    def get(self, id: str) -> Memory:
        """Raises: NotFound."""
        (found,) = self._services.retrieved.shown(self.owner, [self._store.get_memory(self.owner, id)])
        return self._services.judge(found)

    def list(
        self,
        *,
        kind: str | None = None,
        tag: str = "",
        query: str = "",
        state: str = State.LIVE,
        as_of: datetime | None = None,
        before: str | None = None,
        limit: int = PAGE,
    ) -> Sequence[Memory]:
        """Memories, newest first; `state` is live, expired, archived, held or all; `as_of` lists what was true then;
        `before` (an id) continues a listing.

        Raises: Invalid.
        """
        found = self._store.list_memories(
            self.owner,
            kind=None if kind is None else checked_kind(kind),
            needle=checked_text(query, what="query"),
            tag=checked_text(tag, what="tag").strip(),
            state=_checked_state(state),
            now=self._services.now() if as_of is None else checked_moment(as_of, "as_of"),
            is_past=as_of is not None,
            before=None if before is None else _checked_seq(before),
            limit=checked_limit(limit, most=MAX_PAGE),
        )
        return [self._services.judge(each) for each in self._services.retrieved.shown(self.owner, found)]

    @traced("search_memory")
    def search(
        self, query: str = "", *, tag: str = "", kind: str | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[Memory]:
        """Live memories whose text holds `query` and that have the tag, ignoring case, newest first.

        Raises: Invalid.
        """
        return self.list(kind=kind, tag=tag, query=query, limit=limit)

    @traced("search_memory")
    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        kinds: Collection[str] | None = None,
        sources: Collection[str] | None = None,
        purpose: str | None = None,
        as_of: datetime | None = None,
    ) -> Recalled:
        """What fits a question best, each hit with the parts of its score: from the agent's own memories, and the
        tenant's audit log, workflow steps and knowledge. `sources` names some of memory, audit, workflow, knowledge;
        `kinds` means memories of these kinds; `purpose` asks for what helps with task_intake, tool_selection,
        decision_memo, content or delegation; `as_of` asks what would have been recalled then. What did not answer in
        time is in the result's `unanswered`.

        Raises: Invalid; StoreError when nothing could answer.
        """
        request = _recall_request(query, limit=limit, kinds=kinds, sources=sources, purpose=purpose, as_of=as_of)
        return self._services.recall(self.owner, request)

    def explain(
        self,
        query: str,
        id: str,
        *,
        limit: int = 5,
        kinds: Collection[str] | None = None,
        sources: Collection[str] | None = None,
        purpose: str | None = None,
        as_of: datetime | None = None,
    ) -> Explanation:
        """Why `recall` with these arguments shows the memory, event, step or passage of this id, or why it does not.

        Raises: Invalid; StoreError when nothing could answer.
        """
        request = _recall_request(query, limit=limit, kinds=kinds, sources=sources, purpose=purpose, as_of=as_of)
        services = self._services
        explain = Explain(self._store, services.recall, services.context_calls, now=services.now)
        return explain(self.owner, request, id)

    def similar(self, id: str) -> Sequence[Memory]:
        """Live memories that say nearly the same as this one, most alike first: candidates for merging.

        Raises: NotFound.
        """
        return [self._services.judge(each) for each in self._services.similar(self.owner, id)]

    def review(self) -> Sequence[Memory]:
        """What waits for a person: memories held for lack of trust, and those marked as suspicious."""
        return self._store.list_for_review(self.owner, limit=MAX_PAGE)

    def approve(self, id: str) -> Memory:
        """Let a memory from the review into use.

        Raises: NotFound.
        """
        return self._services.remember.approve(self.owner, id)

    def approve_workspace(self) -> int:
        """Trust the notes that came with the workspace's file like the user's own; how many there were.

        Raises: Invalid when the agent has no such file.
        """
        return self._services.remember.approve_workspace(self.owner)

    @traced("update_memory")
    def update(
        self,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        version: int | None = None,
    ) -> Memory:
        """Edit a memory; what it said before stays in its history. `version` is the one the caller has seen.

        Raises: NotFound, Invalid, SecretRejected, Conflict.
        """
        return self._services.remember.update(
            self.owner, id, text=text, tags=tags, importance=importance, version=version
        )

    def history(self, id: str, *, before: int | None = None, limit: int | None = None) -> Sequence[MemoryVersion]:
        """What a memory said before its edits, newest first: all of it, or `limit` versions older than `before`.

        Raises: NotFound, Invalid.
        """
        most = None if limit is None else checked_limit(limit, most=MAX_PAGE)
        return self._store.list_versions(self.owner, id, before=checked_before(before), limit=most)

    @traced("delete_memory")
    def forget(self, id: str) -> None:
        """Delete a memory and its history for good.

        Raises: NotFound.
        """
        self._services.remember.forget(self.owner, id)


def _recall_request(
    query: str,
    *,
    limit: int,
    kinds: Collection[str] | None,
    sources: Collection[str] | None,
    purpose: str | None,
    as_of: datetime | None,
) -> RecallRequest:
    return RecallRequest(
        query=query,
        limit=limit,
        kinds=None if kinds is None else tuple(checked_kind(kind) for kind in kinds),
        sources=checked_sources(sources),
        purpose=checked_purpose(purpose),
        as_of=None if as_of is None else checked_moment(as_of, "as_of"),
    )


def _draft(item: object) -> Draft:
    if isinstance(item, str):
        return Draft(text=item)
    if not isinstance(item, Mapping):
        raise Invalid(f"A memory is a text or a mapping of its fields, not {type(item).__name__}.")
    unknown = set(item) - set(Draft.__dataclass_fields__)
    if unknown or "text" not in item:
        problem = f"has no {sorted(unknown)[0]!r}" if unknown else "needs a text"
        raise Invalid(f"A memory {problem}; its fields are {', '.join(Draft.__dataclass_fields__)}.")
    return Draft(**item)


def _checked_state(state: str) -> State | None:
    if state == ANY_STATE:
        return None
    try:
        return State(state)
    except ValueError:
        raise Invalid(f"There is no state {str(state)[:40]!r}; choose {', '.join(State)} or {ANY_STATE}.") from None


def _checked_seq(id: str) -> int:
    seq = memory_seq(id)
    if seq is None:
        raise Invalid("`before` is the id of a memory, such as m-7.")
    return seq
