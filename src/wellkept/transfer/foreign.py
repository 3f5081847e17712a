"""Import of other programs' memories and conversations, by the same rules as any memory or turn.

Memories get the origin `import`. Items that are stored already, for example by an earlier import, are skipped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.extension import Clock, Progress
from wellkept.importers.files import ForeignFormat
from wellkept.language.names import check_owner, check_session, memory_seq
from wellkept.language.text import content_hash, fold
from wellkept.memory.items import Items
from wellkept.memory.remember import Draft, Remember, check_draft
from wellkept.memory.rules_items import ItemDraft
from wellkept.model import (
    AuditEvent,
    ForeignMemory,
    ForeignTurn,
    ForeignValue,
    ImportReport,
    Kind,
    Origin,
    Owner,
    RefusedItem,
)
from wellkept.prompt.transcripts import TranscriptWriter, check_turn
from wellkept.secrets.check import SecretGuard
from wellkept.settings import Settings
from wellkept.transfer.rules import ERASED_HERE, Refused
from wellkept.upkeep.rules_erasure import mark_row

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MEMORIES = "memories"
TURNS = "turns"
ITEMS = "items"
DRAFT_FIELDS = {each.name for each in fields(Draft)} & {each.name for each in fields(ForeignMemory)}
NEEDLE_CHARS = 200
"""Characters of a text by which stored memories are searched."""

COMPARED = 200
"""Memories found by them that are read at once."""

FULL = "the agent or user has as many notes as it may have ({most:,}); raise max_total, or import for another agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import."""

    format: str | None = None  # None: detected from the file
    agent: str | None = None  # owner of memories that name no agent; None: the agent of the settings
    is_dry_run: bool = False
    is_remembered: bool = False  # remember the turns of chats as episodes
    is_merged: bool = False  # leave out rows that clash, instead of refusing the whole file
    is_trusted: bool = False  # believe an export that is not signed
    with_erased: bool = False  # bring back what was erased here


@dataclass(slots=True)
class _Tally:
    """Counts of added, present and refused items."""

    added: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    refused: Refused = field(default_factory=Refused)


@dataclass(slots=True)
class _Seen:
    """Items read so far, so that duplicates within the file are found, also in a dry run."""

    is_remembered: bool = False
    has_erased: bool = False  # texts that were erased here are looked for
    texts: set[tuple[Owner, Kind, str]] = field(default_factory=set)
    items: set[tuple[Owner, tuple[str, ...], str]] = field(default_factory=set)
    notes: Counter[Owner] = field(default_factory=Counter)
    known_notes: dict[Owner, int] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)  # turns read so far, by session
    stored_turns: dict[str, int] = field(default_factory=dict)  # turns stored before the import, by session


class ForeignImport:
    """Service that imports files of other programs."""

    def __init__(
        self,
        store: SqlStore,
        remember: Remember,
        items: Items,
        transcripts: TranscriptWriter,
        guard: SecretGuard,
        now: Clock,
        settings: Settings,
    ) -> None:
        self._store, self._remember, self._items, self._transcripts = store, remember, items, transcripts
        self._guard, self._now, self._max_notes = guard, now, settings.max_total

    def __call__(
        self, owner: Owner, format: ForeignFormat, path: Path, options: ImportOptions, progress: Progress | None
    ) -> ImportReport:
        """Import a file. It is read twice, so that an invalid one changes nothing. Raises: Invalid, OSError."""
        total, is_dry_run = sum(1 for _ in format.read(path)), options.is_dry_run
        tally, seen = _Tally(), _Seen(is_remembered=options.is_remembered)
        seen.has_erased = not options.with_erased and self._store.has_rows(owner.tenant, "erased_texts")
        for number, item in enumerate(format.read(path), 1):
            if isinstance(item, RefusedItem):
                tally.refused.add(item.place, item.reason)
            else:
                self._import_item(owner, item, tally, seen, is_dry_run=is_dry_run)
            if progress is not None:
                progress(number, total)
        if (tally.added.total() or tally.refused.count) and not is_dry_run:
            self._record(owner.tenant, format.name, tally)
        return ImportReport(
            format=format.name,
            is_dry_run=is_dry_run,
            added=dict(tally.added),
            present=dict(tally.present),
            refused=tuple(tally.refused.first),
            refused_count=tally.refused.count,
        )

    def _import_item(
        self,
        default: Owner,
        item: ForeignMemory | ForeignTurn | ForeignValue,
        tally: _Tally,
        seen: _Seen,
        *,
        is_dry_run: bool,
    ) -> None:
        try:
            owner = default if item.agent is None else check_owner(item.agent, default.tenant)
            if isinstance(item, ForeignMemory):
                is_new, what = self._import_memory(owner, item, seen, is_dry_run=is_dry_run), MEMORIES
            elif isinstance(item, ForeignValue):
                is_new, what = self._import_value(owner, item, seen, is_dry_run=is_dry_run), ITEMS
            else:
                is_new, what = self._import_turn(owner, item, seen, is_dry_run=is_dry_run), TURNS
        # Includes SecretRejected; its message does not quote the text.
        except (Invalid, NotFound, Conflict) as error:
            tally.refused.add(item.place, str(error))
        else:
            (tally.added if is_new else tally.present)[what] += 1

    def _import_memory(self, owner: Owner, item: ForeignMemory, seen: _Seen, *, is_dry_run: bool) -> bool:
        """Store a memory unless it is known; return True if it is new."""
        draft = Draft(origin=Origin.IMPORT, **{name: getattr(item, name) for name in DRAFT_FIELDS})
        memory = self._guard.check(check_draft(draft, owner, self._now()))
        home = memory.home
        identity = (home, memory.kind, content_hash(memory.text))
        if identity in seen.texts or self._is_known(home, memory.kind, memory.text):
            return False
        self._check_erased(owner, seen, item.text)
        if memory.kind is Kind.NOTE:
            self._check_room(home, seen)
        if not is_dry_run:
            self._remember(owner, [draft])
        if memory.kind is Kind.NOTE:
            seen.notes[home] += 1
        seen.texts.add(identity)
        return True

    def _import_value(self, owner: Owner, item: ForeignValue, seen: _Seen, *, is_dry_run: bool) -> bool:
        """Store an item unless its key is taken; return True if it is new."""
        ttl = item.sliding_ttl
        if ttl is None and item.expires_at is not None:
            ttl = (item.expires_at - self._now()).total_seconds()
            if ttl <= 0:
                raise Invalid("It has expired.")
        draft = ItemDraft(
            namespace=item.namespace,
            key=item.key,
            value=item.value,
            origin=Origin.IMPORT,
            created_at=item.created_at,
            ttl=ttl,
            refresh=item.sliding_ttl is not None,
            version=0,
        )
        memory, place = self._items.check(owner, draft), (owner, item.namespace, item.key)
        if place in seen.items or self._items.get(owner, [place[1:]], refresh=False)[0] is not None:
            return False
        self._check_erased(owner, seen, memory.text if memory is not None else "")
        if not is_dry_run:
            self._items.put(owner, [draft])
        seen.items.add(place)
        return True

    def _check_erased(self, owner: Owner, seen: _Seen, *texts: str) -> None:
        """Raises: Invalid when one of the texts was erased here."""
        marks = {mark_row("memories", text, "") for text in texts}
        if seen.has_erased and self._store.find_erased(owner.tenant, marks):
            raise Invalid(ERASED_HERE)

    def _check_room(self, owner: Owner, seen: _Seen) -> None:
        """Check that the note fits, since an import never displaces stored notes. Raises: Invalid."""
        if owner not in seen.known_notes:
            seen.known_notes[owner] = self._store.count_memories(owner)[Kind.NOTE]
        if seen.known_notes[owner] + seen.notes[owner] >= self._max_notes:
            raise Invalid(FULL.format(most=self._max_notes))

    def _is_known(self, owner: Owner, kind: Kind, text: str) -> bool:
        """Return True if the agent has this memory in any state, so that archived ones do not come back."""
        expected = content_hash(text)
        find = partial(
            self._store.list_memories, owner, kind=kind, needle=fold(text)[:NEEDLE_CHARS], state=None, now=self._now()
        )
        before: int | None = None
        while like := find(before=before, limit=COMPARED):
            if any(content_hash(each.text) == expected for each in like):
                return True
            before = memory_seq(like[-1].id)
        return False

    def _import_turn(self, owner: Owner, item: ForeignTurn, seen: _Seen, *, is_dry_run: bool) -> bool:
        """Store a turn unless it is known; return True if it is new.

        Turns of a session come in order, so the first ones, as many as are stored, are known.
        """
        id = check_session(item.session_id)
        check_turn(item.user, item.assistant)
        if id not in seen.stored_turns:
            session = self._store.find_tenant_session(owner.tenant, id)
            if session is not None and session.owner != owner:
                raise Conflict(f"the session {id[:80]!r} is another agent's")
            seen.stored_turns[id] = 0 if session is None else session.message_count // 2
        seen.turns[id] += 1
        if seen.turns[id] <= seen.stored_turns[id]:
            return False
        self._check_erased(owner, seen, item.user, item.assistant)
        if not is_dry_run:
            self._transcripts.log_turn(
                owner,
                id,
                user=item.user,
                assistant=item.assistant,
                remember=seen.is_remembered,
                said_at=item.created_at,
                origin=Origin.IMPORT,
            )
        return True

    def _record(self, tenant: str, format: str, tally: _Tally) -> None:
        counts = " and ".join(f"{count:,} {what}" for what, count in sorted(tally.added.items())) or "nothing new"
        message = f"A file of the format {format} was imported: {counts}; {tally.refused.count:,} refused."
        meta = {"format": format, "added": dict(tally.added), "refused": tally.refused.count}
        self._store.add_event(
            AuditEvent(tenant=tenant, at=self._now(), action="import.done", message=message, meta=meta)
        )
