"""A store whose notes live in a workspace's file, for the one agent that has claimed it; all else is in the database.

Ids stay unique: each side is told how far the other has counted before it gives a number.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from pathlib import Path

from recollect.errors import Invalid, NotFound
from recollect.model import Erased, Key, Kind, Match, Memory, MemoryVersion, Origin, Owner, State, Trace
from recollect.policy.names import memory_seq
from recollect.policy.similarity import Evidence
from recollect.policy.text import content_hash
from recollect.policy.trust import is_low
from recollect.ports import EmbedTexts, Glimpse, Vector
from recollect.store.audit import refuse_foreign
from recollect.store.engine import Engine
from recollect.store.erasure import NOTES_FILE
from recollect.store.notes.claim import claimant, is_claimed_by
from recollect.store.notes.file import NotesFile
from recollect.store.notes.index import NotesIndex
from recollect.store.notes.transfer import WorkspaceTransfer
from recollect.store.notes.trust import SPARE, Imported, WorkspaceTrust

NOT_EDITED = "A note that lives in a file is not edited in place; delete it and store the new text."


class WorkspaceStore(WorkspaceTransfer, WorkspaceTrust):
    """`ports.Store` with notes in a file."""

    def __init__(self, engine: Engine, workspace: Path, *, max_notes: int, suspicious: str = "last") -> None:
        """Raises: Invalid when the workspace is no folder."""
        super().__init__(engine)
        if not workspace.is_dir():
            raise Invalid(f"The workspace {workspace} is not a folder; make it, or correct the setting.")
        self._workspace = workspace
        self._max_notes = max_notes
        self._suspicious = suspicious
        self._lock = threading.Lock()
        self._files: dict[Owner, NotesFile] = {}
        self._index = NotesIndex(lambda texts: [None] * len(texts))

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        """Say how notes from the file get their vectors, which the file has no place for."""
        self._index = NotesIndex(embed)

    def notes_of(self, owner: Owner, *, is_writing: bool = False) -> NotesFile | None:
        """The file of this agent, if it is the one that has it.

        Raises: StoreError.
        """
        with self._lock:
            if owner not in self._files:
                if not is_claimed_by(self._workspace, owner, is_writing=is_writing):
                    return None
                self._files[owner] = NotesFile(self._workspace, owner, suspicious=self._suspicious)
            file = self._files[owner]
        # Outside the lock: who holds the database's may be waiting for this one.
        file.imported = self._imported_by(owner, file)
        return file

    def _imported_by(self, owner: Owner, file: NotesFile) -> Imported:
        known = self.find_imported(owner, self._workspace)
        if known is None:
            highest = max((memory_seq(note.id) or 0 for note in file.all()), default=0)
            known = self.meet_workspace(owner, self._workspace, highest)
        return known

    def _check_log(self, tenant: str) -> None:
        """Look before the file is changed whether the event that tells of it can be written.

        Raises: ReadOnly.
        """
        refuse_foreign(self.audit_head(tenant).hash, self.audit_key)

    def _notes_looked_at(self, owner: Owner, *, if_nobodys: bool = False) -> NotesFile | None:
        """The same for who goes over all agents, which must not make the file anybody's.

        Raises: StoreError.
        """
        owning = claimant(self._workspace)
        if owning is None:
            return NotesFile(self._workspace, owner) if if_nobodys else None
        return self.notes_of(owner) if owning == owner else None

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Vector | None]) -> Sequence[Memory]:
        notes = [memory for memory in memories if _belongs_in_file(memory)]
        file = self.notes_of(memories[0].owner, is_writing=bool(notes)) if memories else None
        if file is None:
            return super().add_memories(memories, vectors)
        others = [(m, v) for m, v in zip(memories, vectors, strict=True) if not _belongs_in_file(m)]
        owner, now = memories[0].owner, memories[0].created_at
        self._check_log(owner.tenant)
        floor = self.raise_counter(owner, file.last_seq(), now=now)
        added = file.add_memories(notes, keep=self._max_notes, floor=floor)
        if added:
            self.raise_counter(owner, file.last_seq(), now=now)
            self.vouch_for(owner, self._workspace, added, through=file.imported.through)
            self.drop_gone(owner, self._workspace, file.seqs(), spare=SPARE)
        in_file = iter(added)
        in_rows = iter(super().add_memories([m for m, _ in others], [v for _, v in others]))
        return [next(in_file if _belongs_in_file(memory) else in_rows) for memory in memories]

    def get_memory(self, owner: Owner, id: str) -> Memory:
        file = self.notes_of(owner)
        found = file.find_memories([memory_seq(id) or 0]) if file else {}
        return next(iter(found.values())) if found else super().get_memory(owner, id)

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        file = self.notes_of(owner)
        return {**super().find_memories(owner, seqs), **(file.find_memories(seqs) if file else {})}

    def find_glimpses(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Glimpse]:
        file = self.notes_of(owner)
        in_file = file.find_memories(seqs) if file else {}
        return {**super().find_glimpses(owner, seqs), **{seq: _glimpse(seq, note) for seq, note in in_file.items()}}

    def list_memories(
        self,
        owner: Owner,
        *,
        kind: Kind | None = None,
        needle: str = "",
        tag: str = "",
        state: State | None = State.LIVE,
        now: datetime,
        is_past: bool = False,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        in_rows = super().list_memories(
            owner,
            kind=kind,
            needle=needle,
            tag=tag,
            state=state,
            now=now,
            is_past=is_past,
            before=before,
            limit=limit,
        )
        file = self.notes_of(owner)
        if file is None or kind not in (None, Kind.NOTE) or state not in (None, State.LIVE, State.HELD):
            return in_rows
        is_held = None if state is None else state is State.HELD
        in_file = file.list_memories(needle=needle, tag=tag, is_held=is_held, before=before, limit=limit)
        known = [note for note in in_file if not is_past or note.created_at <= now]
        return nlargest(limit, [*in_rows, *known], key=lambda memory: memory_seq(memory.id) or 0)

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        file = self.notes_of(owner) if kind is Kind.NOTE else None
        if file is not None:
            wanted = content_hash(text)
            for note in file.all():
                if content_hash(note.text) == wanted:
                    return note
        return super().find_same_memory(owner, kind, text, now=now)

    def update_memory(self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime) -> Memory:
        file = self.notes_of(memory.owner)
        known = file.find_memories([memory_seq(memory.id) or 0]) if file is not None else {}
        if file is None or not known:
            return super().update_memory(memory, vector, replaced_at=replaced_at)
        if any(memory == replace(note, held_at=None, flag=None) for note in known.values() if note.flag):
            self.vouch_for(memory.owner, self._workspace, [memory], through=file.imported.through)
            return replace(memory, origin=Origin.USER)
        if memory.valid_to is None:
            raise Invalid(NOT_EDITED)
        self._check_log(memory.owner.tenant)
        file.delete_memory(memory.id)  # a correction takes its place: the file keeps no past
        return memory

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        in_rows = super().list_for_review(owner, limit=limit)
        file = self.notes_of(owner)
        flagged = [note for note in file.all() if note.flag is not None] if file is not None else []
        return nlargest(limit, [*in_rows, *flagged], key=lambda memory: memory_seq(memory.id) or 0)

    def approve_notes(self, owner: Owner) -> int:
        file = self.notes_of(owner)
        if file is None:
            return super().approve_notes(owner)
        notes = [note for note in file.all() if note.origin is Origin.IMPORT]
        self.vouch_for(owner, self._workspace, notes, through=file.imported.through)
        return len(notes)

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        file = self.notes_of(owner)
        if file is not None and file.find_memories([memory_seq(id) or 0]):
            return []
        return super().list_versions(owner, id, before=before, limit=limit)

    def delete_memory(self, owner: Owner, id: str) -> None:
        file = self.notes_of(owner)
        if file is not None:
            self._check_log(owner.tenant)
            try:
                return file.delete_memory(id)
            except NotFound:
                pass  # then it is in the database, or nowhere
        return super().delete_memory(owner, id)

    def delete_agent(self, owner: Owner) -> None:
        super().delete_agent(owner)
        file = self.notes_of(owner)
        for note in file.all() if file is not None else ():
            self.delete_memory(owner, note.id)

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        file = self._notes_looked_at(owner, if_nobodys=True)
        return None if file is None else [f"line {each.line}: {each.reason}" for each in file.damaged()]

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        counts = dict(super().count_memories_by_agent(tenant, agents))
        for agent, of_kinds in counts.items():
            file = self._notes_looked_at(Owner(tenant, agent))
            if file is not None:
                counts[agent] = {**of_kinds, Kind.NOTE: of_kinds[Kind.NOTE] + len(file.all())}
        return counts

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        in_rows = super().search_memories(owner, query, kinds=kinds, now=now, limit=limit)
        file = self.notes_of(owner) if Kind.NOTE in kinds else None
        return in_rows if file is None else _best(in_rows, self._index.search(file.live(), query, limit), limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        in_rows = super().nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        file = self.notes_of(owner) if Kind.NOTE in kinds else None
        return in_rows if file is None else _best(in_rows, self._index.nearest(file.live(), vector, limit), limit)

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool = False,
    ) -> Evidence:
        in_rows = super().weigh_memories(owner, terms, vector, kinds=kinds, now=now, is_past=is_past)
        file = self.notes_of(owner) if Kind.NOTE in kinds else None
        if file is None:
            return in_rows
        until = int(now.timestamp()) if is_past else None
        in_file = self._index.evidence(file.live(), terms, vector, until)
        return in_rows.with_more(in_file) if len(in_rows.seqs) else in_file

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        in_file: list[Trace] = []
        if table in ("memories", NOTES_FILE) and not after and not session_id:
            file = self.notes_of(Owner(tenant, agent)) if agent else None
            in_file = _traces(file, table, agent) if file is not None else []
        if table == NOTES_FILE:
            return in_file
        options = {"agent": agent, "session_id": session_id}
        return [*in_file, *super().list_traces(tenant, table, **options, after=after, limit=limit)]

    def erase_traces(self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace]) -> Erased:
        """The file first: it cannot be part of a transaction, and what is gone from it stays gone."""
        self._check_log(tenant)
        in_rows = [each for each in gone if each.table != NOTES_FILE]
        notes = lines = 0
        for agent in sorted({each.agent for each in gone if each.table in ("memories", NOTES_FILE)}):
            file = self.notes_of(Owner(tenant, agent))
            if file is not None:
                seqs = {int(each.key[0]) for each in in_rows if (each.table, each.agent) == ("memories", agent)}
                names = {str(each.key[0]) for each in gone if (each.table, each.agent) == (NOTES_FILE, agent)}
                notes, lines = notes + file.erase(seqs, names), lines + len(names)
                self.drop_gone(Owner(tenant, agent), self._workspace, file.seqs())
        erased = super().erase_traces(tenant, in_rows, cleared)
        removed = {**erased.removed, "memories": erased.removed.get("memories", 0) + notes, NOTES_FILE: lines}
        return replace(erased, removed={table: count for table, count in removed.items() if count})

    def forget_cached(self, tenant: str) -> None:
        super().forget_cached(tenant)
        self._index.forget()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        super().close()


def _belongs_in_file(memory: Memory) -> bool:
    """Return True for notes; those of low trust stay in the database, where their origin has a place."""
    return memory.kind is Kind.NOTE and not is_low(memory.origin) and memory.held_at is None


def _traces(file: NotesFile, table: str, agent: str) -> list[Trace]:
    if table == NOTES_FILE:
        return [Trace(table=table, key=(name,), agent=agent, texts=(said,)) for name, said in file.set_aside().items()]
    return [Trace(table=table, key=(seq,), agent=agent, texts=(*said,)) for seq, said in file.spoken().items()]


def _best(first: Sequence[Match], second: Sequence[Match], limit: int) -> Sequence[Match]:
    return nlargest(limit, [*first, *second], key=lambda match: (match.score, match.seq))


def _glimpse(seq: int, note: Memory) -> Glimpse:
    since = note.valid_from or note.created_at
    return Glimpse(seq, note.text, note.importance, note.created_at, since, lambda: note)
