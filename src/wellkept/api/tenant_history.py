"""Methods for a tenant's audit log, workflows and documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from wellkept.api.agent import MAX_PAGE, PAGE, SEARCH_LIMIT
from wellkept.api.tenant import TenantView
from wellkept.caller import current_caller
from wellkept.errors import Invalid
from wellkept.history.rules_history import COMPLETED, OWN_AREAS
from wellkept.knowledge import ingest as filing
from wellkept.knowledge.ingest import IngestReport
from wellkept.knowledge.rules_chunking import check_category
from wellkept.knowledge.search import KnowledgeOptions
from wellkept.language.values import check_before, check_limit, check_storable, check_whole
from wellkept.memory.rules_filters import (
    DOCUMENT_FIELDS,
    EQUAL,
    EVENT_FIELDS,
    Comparison,
    Where,
    join_conditions,
    parse_filter,
)
from wellkept.memory.rules_trust import check_decision
from wellkept.model import (
    ACTOR,
    AuditEvent,
    AuditHead,
    AuditReport,
    Chunk,
    Document,
    DocumentSize,
    HeadCheck,
    Hit,
    Workflow,
    WorkflowStep,
)
from wellkept.secrets.check import REJECTED, Sighting
from wellkept.upkeep.walk import Progress

MAX_MESSAGE_CHARS = 2_000
MAX_META_CHARS = 10_000
MAX_EVENT = 2**62  # above every event number a database can hold
_ACTION = re.compile(r"[a-z][a-z0-9_]*(?:[.][a-z0-9_]+){1,4}")


class AuditLog(TenantView):
    """Audit log of a tenant."""

    def list(self, *, before: int | None = None, limit: int = SEARCH_LIMIT) -> Sequence[AuditEvent]:
        """List events, newest first.

        `before` (an event's number) continues a listing. `event.actor` is the id of the key, or the name of the
        program, that acted.

        Raises: Invalid.
        """
        return self.search("", before=before, limit=limit)

    def search(
        self, query: str, *, where: Where = None, before: int | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[AuditEvent]:
        """List events with `query` in their message, ignoring case, newest first. `recall` finds them by words.

        `where` filters by action, agent, actor and at (docs/filters.md).

        Raises: Invalid.
        """
        current_caller().check_all_users()
        agents, limit, before = current_caller().agents, check_limit(limit, most=MAX_PAGE), check_before(before)
        chosen = parse_filter(where, EVENT_FIELDS)
        return self._store.list_events(self.id, needle=query, where=chosen, agents=agents, before=before, limit=limit)

    def verify(self) -> AuditReport:
        """Verify the hash chain: report changed and missing events. Raises: Forbidden."""
        current_caller().check_all_users()
        return self._store.verify_events(self.id)

    def head(self) -> AuditHead:
        """Return the number and hash of the last event. Keep them where an attacker on the store cannot change them.

        Raises: Forbidden.
        """
        current_caller().check_all_users()
        return self._store.audit_head(self.id)

    def check_heads(self, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Compare earlier results of `head` with the log; a mismatch shows that the log was rewritten.

        Raises: Invalid.
        """
        current_caller().check_all_users()
        for each in heads:
            is_number = type(each.id) is int and 0 < each.id < MAX_EVENT
            if not is_number or not isinstance(each.hash, str):
                raise Invalid("A head needs the number of an event and its hash.")
        return self._store.check_heads(self.id, heads)

    def record(
        self, action: str, message: str, *, agent: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> AuditEvent:
        """Add your own event to the log permanently.

        `action` is a stable dotted word such as "order.refund". `agent` defaults to the caller's agent, if it has one.

        Raises: Invalid, Forbidden; SecretRejected when the event appears to contain a secret, in every mode, because
        events are never edited.
        """
        current_caller().check_all_users()
        agent = current_caller().own_agent(agent)
        event = AuditEvent(
            tenant=self.id,
            at=self._services.now(),
            action=_check_action(action),
            agent_id=None if agent is None else self._owner(agent).agent,
            message=_check_message(message),
            meta=_parse_meta({} if meta is None else meta),
        )
        text = f"{event.message}\n{json.dumps(event.meta, ensure_ascii=False)}"
        if found := self._services.guard.findings(self.id, text):
            refused = "An event was refused: it seems to hold a secret."
            self._store.add_event(replace(event, action="secret.refuse", message=refused, meta={}))
            raise self._services.guard.refuse(REJECTED, rule=found[0].rule)
        return self._store.add_event(event)


def _check_action(action: str) -> str:
    if len(action) > 100 or not _ACTION.fullmatch(action):
        raise Invalid("An action is two or more words in lower case with dots between them, such as order.refund.")
    area = action.partition(".")[0]
    if area in OWN_AREAS:
        raise Invalid(f"Actions that begin with {area!r} are wellkept's own; begin yours with another word.")
    return action


def _check_message(message: str) -> str:
    message = message.strip()
    if not 1 <= len(message) <= MAX_MESSAGE_CHARS:
        raise Invalid(f"A message has 1 to {MAX_MESSAGE_CHARS:,} characters.")
    return message


def _parse_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    if ACTOR in meta:
        raise Invalid(f"The name {ACTOR!r} in an event's meta is reserved for the key that recorded it; use another.")
    try:
        text = json.dumps(dict(meta), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Invalid("The meta of an event must be JSON: it holds a value JSON cannot represent.") from None
    if len(text) > MAX_META_CHARS:
        raise Invalid(f"The meta of an event has at most {MAX_META_CHARS:,} characters as JSON.")
    check_storable(meta, what="meta")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


class TenantSecrets(TenantView):
    """Texts of a tenant that look like secrets."""

    def scan(self, *, progress: Progress | None = None) -> Iterator[Sighting]:
        """Yield every stored record, of any shelf, that appears to contain a secret.

        `progress` is called with the number of rows done.

        Raises: Forbidden.
        """
        current_caller().check_whole_tenant()
        return self._services.scan(self.id, progress=progress)

    def allow(self, text: str) -> int:
        """Allow what looks like a secret in `text`; only its hash is stored. Return the number of pieces allowed.

        Raises: Invalid when nothing looks like a secret; Forbidden.
        """
        current_caller().check_whole_tenant()
        check_decision(current_caller().trust)
        allowed = self._services.guard.allow(self.id, text)
        message = f"Text that looked like a secret was allowed ({allowed} piece{'' if allowed == 1 else 's'})."
        event = AuditEvent(tenant=self.id, at=self._services.now(), action="secret.allow", message=message)
        self._store.add_event(event)
        return allowed


class TenantWorkflows(TenantView):
    """Workflows of a tenant and their steps, which agents find by recall."""

    def create(self, name: str) -> Workflow:
        """Start a workflow; its id is derived from its name. Raises: Invalid, SecretRejected, Forbidden."""
        current_caller().check_all_users()
        return self._services.workflows.begin(self.id, name)

    def record(
        self,
        *,
        workflow: str,
        step: str,
        output: str = "",
        agent: str | None = None,
        status: str = COMPLETED,
        is_new: bool = True,
    ) -> WorkflowStep:
        """Add a step and its output to the workflow with this id, or else to the newest one with this name.

        An unknown workflow is created, unless `is_new` is False: then `workflow` must be an id.

        Raises: Invalid, SecretRejected, NotFound, Forbidden.
        """
        current_caller().check_all_users()
        agent = current_caller().own_agent(agent)
        if agent is not None:
            self._owner(agent)
        return self._services.workflows.record(
            self.id, workflow=workflow, step=step, output=output, agent=agent, status=status, is_new=is_new
        )

    def get(self, id: str) -> Workflow:
        """Return one workflow. Raises: NotFound, Forbidden."""
        current_caller().check_all_users()
        return self._store.get_workflow(self.id, id)

    def list(self, *, after: str = "", limit: int = PAGE) -> Sequence[Workflow]:
        """List workflows by id, starting after the id `after`. Raises: Invalid, Forbidden."""
        current_caller().check_all_users()
        limit = check_limit(limit, most=MAX_PAGE)
        return self._store.list_workflows(self.id, after=after, limit=limit)

    def steps(self, workflow: str, *, after: int = 0, limit: int = PAGE) -> Sequence[WorkflowStep]:
        """List the steps of a workflow (by id) in order, starting after the position `after`.

        Raises: NotFound, Invalid.
        """
        current_caller().check_all_users()
        limit, caller = check_limit(limit, most=MAX_PAGE), current_caller()
        after = check_whole(after, "`after` (a position)")
        found: list[WorkflowStep] = []
        while page := self._store.list_steps(self.id, workflow, after=after, limit=limit):
            found += [each for each in page if each.agent_id is None or caller.is_allowed(each.agent_id)]
            if len(found) >= limit or not caller.agents:
                break
            after = page[-1].position
        return found[:limit]


class TenantKnowledge(TenantView):
    """Documents of a tenant."""

    def ingest(
        self,
        path_or_text: str | Path,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        prune: bool = False,
        progress: Progress | None = None,
        **fields: Unpack[filing.DocumentFields],
    ) -> IngestReport:
        """Ingest a text, a file (Markdown, text, HTML, PDF) or all such files below a folder.

        The fields are title, category, is_published, metadata (a JSON object of up to 8 KB) and secrets. Unchanged
        documents are skipped; changed ones replace their earlier version. For a folder, `include` and `exclude` are
        patterns such as `*.md`, `prune` removes documents whose file is gone, and failures are listed in the result.
        What seems to be a secret is replaced by a mark and listed in the result; `secrets="reject"` refuses the
        document instead.

        Raises: Invalid, SecretRejected; for a folder only when it cannot be read.
        """
        wishes, service = filing.DocumentOptions(**fields), self._services.ingest
        if not service.is_folder(path_or_text):
            return IngestReport(documents=(service(self.id, path_or_text, wishes),))
        return service.folder(
            self.id, Path(path_or_text), wishes, include=include, exclude=exclude, is_pruned=prune, progress=progress
        )

    def ingest_text(self, text: str, **fields: Unpack[filing.DocumentFields]) -> IngestReport:
        """Ingest a text, even one that looks like a path: for texts from untrusted sources. The fields are those of
        `ingest`.

        Raises: Invalid, SecretRejected.
        """
        wishes, content = filing.DocumentOptions(**fields), text.encode()
        return IngestReport(documents=(self._services.ingest.content(self.id, content, wishes, name="", source=""),))

    def ingest_bytes(self, content: bytes, name: str, **fields: Unpack[filing.DocumentFields]) -> IngestReport:
        """Ingest the content of a file by its `name`, which decides the format and identifies the document. The fields
        are those of `ingest`.

        Raises: Invalid, SecretRejected.
        """
        wishes = filing.DocumentOptions(**fields)
        base = Path(name.replace("\\", "/")).name
        stored = self._services.ingest.content(self.id, content, wishes, name=base, source=base)
        return IngestReport(documents=(stored,))

    def get(self, id: str) -> Document:
        """Return one document. Raises: NotFound."""
        return self._store.get_document(self.id, id)

    def passages(self, id: str) -> Sequence[Chunk]:
        """List the passages of a document in order. Raises: NotFound."""
        return self._store.list_chunks(self.id, self._store.get_document(self.id, id).id)

    def list(
        self, *, category: str = "", where: Where = None, after: str = "", limit: int = PAGE
    ) -> Sequence[Document]:
        """List documents by id, starting after the id `after`, optionally of one category.

        `where` filters by title, category, source, created_at, updated_at and metadata (docs/filters.md).

        Raises: Invalid.
        """
        of_category = Comparison("category", EQUAL, check_category(category)) if category else None
        return self._store.list_documents(
            self.id,
            where=join_conditions(of_category, parse_filter(where, DOCUMENT_FIELDS)),
            after=after,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def browse(
        self, *, category: str = "", after: tuple[str, str] = ("", ""), limit: int = PAGE
    ) -> Sequence[DocumentSize]:
        """List documents with their sizes by title, ignoring case, optionally of one category.

        `after` (the title and id of a document) continues a listing.

        Raises: Invalid.
        """
        return self._store.list_documents_by_title(
            self.id,
            where=Comparison("category", EQUAL, check_category(category)) if category else None,
            after=after,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def count_categories(self) -> Mapping[str, int]:
        """Count the documents of each category; an empty one stands for none."""
        return self._store.count_categories(self.id)

    def update(
        self,
        id: str,
        *,
        title: str | None = None,
        category: str | None = None,
        is_published: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Change the title, category, publication or metadata of a document. Only published documents are found.

        `metadata` replaces all of its metadata.

        Raises: NotFound, Invalid, SecretRejected, Conflict.
        """
        changes = filing.DocumentOptions(title=title, category=category, is_published=is_published, metadata=metadata)
        return self._services.ingest.update(self.id, id, changes)

    def delete(self, id: str) -> None:
        """Delete a document and its passages permanently. Raises: NotFound."""
        self._services.ingest.delete(self.id, id)

    def search(self, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Search published documents for passages and return the best `limit` (5).

        Empty `categories` means all; `where` filters the documents as in `list_documents`; `min_relevance` replaces the
        floor.

        Raises: Invalid.
        """
        return self._services.search_knowledge(self.id, query, **options)
