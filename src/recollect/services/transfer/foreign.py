"""Taking in what other programs remembered: each thing by the rules every memory and every turn here goes by.

What a file holds comes in with `import` as its origin. What is there already, from an earlier import, is not doubled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from recollect.errors import Conflict, Invalid, NotFound
from recollect.model import AuditEvent, ForeignItem, ForeignMemory, ForeignTurn, Imported, Kind, Origin, Owner, Refused
from recollect.policy.names import checked_owner, checked_session
from recollect.policy.text import content_hash, fold
from recollect.ports import Clock, Store
from recollect.services.memories.drafts import Draft, checked
from recollect.services.memories.remember import Remember
from recollect.services.memories.secrets import SecretGuard
from recollect.services.prompt.transcripts import Transcripts, checked_turn
from recollect.services.transfer.check import MAX_TOLD
from recollect.services.walk import Progress

MEMORIES = "memories"
TURNS = "turns"
NEEDLE_CHARS = 200
FULL = "the agent has as many notes as it may have ({most:,}); raise max_total, or import them for another agent"


@dataclass(slots=True)
class _Tally:
    added: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    refused_count: int = 0

    def refuse(self, refused: Refused) -> None:
        self.refused_count += 1
        if len(self.refused) < MAX_TOLD:
            self.refused.append(refused)


@dataclass(slots=True)
class _Seen:
    """What a dry run would have added by now, and how far each session has come."""

    texts: set[tuple[Owner, Kind, str]] = field(default_factory=set)
    notes: Counter[Owner] = field(default_factory=Counter)
    known_notes: dict[Owner, int] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)  # of each session, read so far
    stored_turns: dict[str, int] = field(default_factory=dict)  # of each session, there before the import


class ForeignImport:
    """Reads the files of other programs."""

    def __init__(
        self,
        store: Store,
        remember: Remember,
        transcripts: Transcripts,
        guard: SecretGuard,
        now: Clock,
        *,
        max_notes: int,
    ) -> None:
        self._store = store
        self._remember = remember
        self._transcripts = transcripts
        self._guard = guard
        self._now = now
        self._max_notes = max_notes

    def __call__(
        self,
        tenant: str,
        read: Callable[[], Iterable[ForeignItem]],
        *,
        format: str,
        agent: str,
        is_dry_run: bool,
        progress: Progress | None = None,
    ) -> Imported:
        """What `read` tells of; it is asked twice, so that a file that makes no sense as a whole changes nothing.

        Raises: Invalid.
        """
        total = sum(1 for _ in read())
        tally, seen = _Tally(), _Seen()
        for number, item in enumerate(read(), 1):
            if isinstance(item, Refused):
                tally.refuse(item)
            else:
                self._take(checked_owner(agent, tenant), item, tally, seen, is_dry_run=is_dry_run)
            if progress is not None:
                progress(number, total)
        if (tally.added.total() or tally.refused_count) and not is_dry_run:
            self._record(tenant, format, tally)
        return Imported(
            format=format,
            is_dry_run=is_dry_run,
            added=dict(tally.added),
            present=dict(tally.present),
            refused=tuple(tally.refused),
            refused_count=tally.refused_count,
        )

    def _take(
        self, default: Owner, item: ForeignMemory | ForeignTurn, tally: _Tally, seen: _Seen, *, is_dry_run: bool
    ) -> None:
        try:
            owner = default if item.agent is None else checked_owner(item.agent, default.tenant)
            if isinstance(item, ForeignMemory):
                is_new, what = self._take_memory(owner, item, seen, is_dry_run=is_dry_run), MEMORIES
            else:
                is_new, what = self._take_turn(owner, item, seen, is_dry_run=is_dry_run), TURNS
        except (Invalid, NotFound, Conflict) as error:  # also a secret: the sentence says nothing of the text
            tally.refuse(Refused(place=item.place, reason=str(error)))
        else:
            (tally.added if is_new else tally.present)[what] += 1

    def _take_memory(self, owner: Owner, item: ForeignMemory, seen: _Seen, *, is_dry_run: bool) -> bool:
        """Whether it is new."""
        draft = Draft(
            text=item.text,
            kind=item.kind,
            tags=item.tags,
            scope=item.scope,
            role=item.role,
            session_id=item.session_id,
            importance=item.importance,
            category=item.category,
            origin=Origin.IMPORT,
            created_at=item.created_at,
            valid_from=item.valid_from,
        )
        memory = self._guard.checked(checked(draft, owner, self._now()))
        said = (owner, memory.kind, content_hash(memory.text))
        if said in seen.texts or self._is_known(owner, memory.kind, memory.text):
            return False
        if memory.kind is Kind.NOTE:
            self._check_room(owner, seen)
        if not is_dry_run:
            self._remember(owner, [draft])
        if memory.kind is Kind.NOTE:
            seen.notes[owner] += 1
        seen.texts.add(said)
        return True

    def _check_room(self, owner: Owner, seen: _Seen) -> None:
        """An import never pushes out the notes that are there.

        Raises: Invalid.
        """
        if owner not in seen.known_notes:
            seen.known_notes[owner] = self._store.count_memories(owner)[Kind.NOTE]
        if seen.known_notes[owner] + seen.notes[owner] >= self._max_notes:
            raise Invalid(FULL.format(most=self._max_notes))

    def _is_known(self, owner: Owner, kind: Kind, text: str) -> bool:
        """Whether the agent has this already, in whatever state: what was archived does not come back."""
        wanted = content_hash(text)
        like = self._store.list_memories(
            owner, kind=kind, needle=fold(text)[:NEEDLE_CHARS], state=None, now=self._now(), limit=NEEDLE_CHARS
        )
        return any(content_hash(each.text) == wanted for each in like)

    def _take_turn(self, owner: Owner, item: ForeignTurn, seen: _Seen, *, is_dry_run: bool) -> bool:
        """Whether it is new: turns of a session come in order, and those that were counted are there."""
        id = checked_session(item.session_id)
        checked_turn(item.user, item.assistant)
        if id not in seen.stored_turns:
            session = self._store.find_tenant_session(owner.tenant, id)
            if session is not None and session.owner != owner:
                raise Conflict(f"the session {id[:80]!r} is another agent's")
            seen.stored_turns[id] = 0 if session is None else session.message_count // 2
        seen.turns[id] += 1
        if seen.turns[id] <= seen.stored_turns[id]:
            return False
        if not is_dry_run:
            self._transcripts.log_turn(
                owner, id, user=item.user, assistant=item.assistant, remember=False, said_at=item.created_at
            )
        return True

    def _record(self, tenant: str, format: str, tally: _Tally) -> None:
        told = " and ".join(f"{count:,} {what}" for what, count in sorted(tally.added.items())) or "nothing new"
        message = f"A file of the format {format} was imported: {told}; {tally.refused_count:,} refused."
        meta = {"format": format, "added": dict(tally.added), "refused": tally.refused_count}
        self._store.add_event(
            AuditEvent(tenant=tenant, at=self._now(), action="import.done", message=message, meta=meta)
        )
