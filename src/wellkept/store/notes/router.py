"""Router over the SQL store and the notes of a workspace.

Notes of the agent that claimed the workspace live in its file, and everything else in the database. The router asks
both and merges the answers. Ids stay unique: before either side gives a number, it learns how far the other has
counted.

A file cannot be part of a database transaction. Notes are added to it inside the transaction, and a note that a
transaction corrects stays until its correction is stored: a correction in the file replaces it in the same step, and a
correction in the database removes it after the commit. So a failure leaves the old note, the new one or both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wellkept.errors import Invalid
from wellkept.language.names import memory_seq
from wellkept.language.text import terms
from wellkept.memory.rules_filters import Condition, is_matching
from wellkept.memory.rules_trust import is_low
from wellkept.model import Erased, Json, Key, Kind, Match, Memory, MemoryVersion, Origin, Owner, State, Trace
from wellkept.model.stored import EmbedTexts, Encoded, MemorySummary, Vector
from wellkept.recall.rules_features import Evidence
from wellkept.store.engine import IndexQuery
from wellkept.store.notes.store import NotesStore, Superseded
from wellkept.store.notes.trust import TrustRows
from wellkept.store.search.index import OwnerIndex
from wellkept.store.search.memory_search import merge_matches
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import ContentDraft
from wellkept.store.tables.erasure import NOTES_FILE
from wellkept.store.tables.history import refuse_foreign
from wellkept.store.tables.rows import memory_values, moment
from wellkept.store.tables.transfer import BY_NAME, export_row
from wellkept.transfer.rules import KEYS

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

T = TypeVar("T")

NOT_EDITED = "A note that lives in a file is not edited in place; delete it and store the new text."
MEMORIES = "memories"
AFTER_MEMORIES = tuple(KEYS)[tuple(KEYS).index(MEMORIES) + 1 :]
"""Tables that follow the memories in an export."""


if TYPE_CHECKING:
    # Type checkers compare its methods with those it takes the place of.
    Delegate = SqlStore
else:
    # No subclass: inside the SQL store, `self` is the database alone.
    Delegate = object


class RoutedStore(Delegate):
    """A store over a database and the notes file of a workspace. What it does not define is the database's."""

    def __init__(self, sql: SqlStore, notes: NotesStore) -> None:
        self.sql = sql
        self._notes = notes

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self.sql, name)

    def transaction(self, tenant: str, work: Callable[[], T]) -> T:
        if self._notes.is_collecting:
            return self.sql.transaction(tenant, work)
        superseded: Superseded = {}

        def collect() -> T:
            with self._notes.collect_superseded(superseded):
                return work()

        result = self.sql.transaction(tenant, collect)
        self._notes.remove_superseded(superseded)
        return result

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        # A snapshot of the database cannot include the file, and trust rows are read and written on their own.
        return work()

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        self._notes.embed_with(embed)

    def close(self) -> None:
        self._notes.close()
        self.sql.close()

    def add_memory(self, memory: Memory, vector: Vector | None = None) -> Memory:
        return self.add_memories([memory], [vector])[0]

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Encoded]) -> Sequence[Memory]:
        notes = [memory for memory in memories if _belongs_in_file(memory)]
        file = self._notes.find_file(memories[0].owner, is_writing=bool(notes)) if memories else None
        if file is None:
            return self.sql.add_memories(memories, vectors)
        others = [(m, v) for m, v in zip(memories, vectors, strict=True) if not _belongs_in_file(m)]
        owner, now = memories[0].owner, memories[0].created_at
        self._check_log(owner.tenant)
        floor = self.sql.raise_counter(owner, file.last_seq(), now=now)
        added = self._notes.add(file, owner, notes, floor=floor)
        if added:
            self.sql.raise_counter(owner, file.last_seq(), now=now)
        in_file = iter(added)
        in_rows = iter(self.sql.add_memories([m for m, _ in others], [v for _, v in others]))
        return [next(in_file if _belongs_in_file(memory) else in_rows) for memory in memories]

    def get_memory(self, owner: Owner, id: str) -> Memory:
        found = self._notes.find_with_file(owner, id)
        return self.sql.get_memory(owner, id) if found is None else found[1]

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        return {**self.sql.find_memories(owner, seqs), **self._notes.find(owner, seqs)}

    def find_summaries(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, MemorySummary]:
        in_file = {seq: _summarize(seq, note) for seq, note in self._notes.find(owner, seqs).items()}
        return {**self.sql.find_summaries(owner, seqs), **in_file}

    def list_memories(
        self,
        owner: Owner,
        *,
        kind: Kind | None = None,
        needle: str = "",
        where: Condition | None = None,
        state: State | None = State.LIVE,
        now: datetime,
        is_past: bool = False,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        in_rows = self.sql.list_memories(
            owner,
            kind=kind,
            needle=needle,
            where=where,
            state=state,
            now=now,
            is_past=is_past,
            before=before,
            limit=limit,
        )
        if kind not in (None, Kind.NOTE) or state not in (None, State.LIVE, State.HELD):
            return in_rows
        is_held = None if state is None else state is State.HELD
        file, hidden = self._notes.find_file(owner), self._notes.hidden(owner)
        if file is None:
            return in_rows
        in_file = file.list_memories(
            needle=needle, where=where, is_held=is_held, before=before, hidden=hidden, limit=limit
        )
        return _newest([*in_rows, *(note for note in in_file if not is_past or note.created_at <= now)], limit)

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        flagged = [note for note in self._notes.all(owner) if note.flag is not None]
        return _newest([*self.sql.list_for_review(owner, limit=limit), *flagged], limit)

    def approve_notes(self, owner: Owner) -> int:
        file = self._notes.find_file(owner)
        return self.sql.approve_notes(owner) if file is None else self._notes.approve_all(file, owner)

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        note = self._notes.find_same(owner, text) if kind is Kind.NOTE and not owner.user else None
        return note or self.sql.find_same_memory(owner, kind, text, now=now)

    def update_memory(
        self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime, whole: str | None = None
    ) -> Memory:
        owner = memory.owner
        found = self._notes.find_with_file(owner, memory.id)
        if found is None:
            return self.sql.update_memory(memory, vector, replaced_at=replaced_at, whole=whole)
        file, note = found
        if note.flag and memory == replace(note, held_at=None, flag=None):
            self._notes.approve(file, owner, [memory])
            return replace(memory, origin=Origin.USER)
        if memory.valid_to is None:
            raise Invalid(NOT_EDITED)
        self._check_log(owner.tenant)
        # A correction takes its place: the file keeps no past.
        self._notes.supersede(owner, memory.id)
        return memory

    def can_hide(self, memory: Memory) -> bool:
        # The file keeps no past to restore from.
        return self._notes.find_with_file(memory.owner, memory.id) is None

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        if self._notes.find_with_file(owner, id) is not None:
            return []
        return self.sql.list_versions(owner, id, before=before, limit=limit)

    def delete_memory(self, owner: Owner, id: str) -> None:
        # A user's view reads the notes of the file, but does not change them.
        found = None if owner.user else self._notes.find_with_file(owner, id)
        if found is None:
            return self.sql.delete_memory(owner, id)
        self._check_log(owner.tenant)
        return found[0].delete_memory(id)

    def delete_agent(self, owner: Owner) -> None:
        self.sql.delete_agent(owner)
        file = self._notes.find_file(owner)
        if file is not None and (seqs := file.seqs()):
            self._check_log(owner.tenant)
            file.delete_memories(seqs, is_missing_ok=True)

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        file = self._notes.peek_file(owner, if_unclaimed=True)
        return None if file is None else [f"line {each.line}: {each.reason}" for each in file.damaged()]

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        counts = dict(self.sql.count_memories(owner))
        file = self._notes.peek_file(owner)
        return counts if file is None else {**counts, Kind.NOTE: counts[Kind.NOTE] + len(file.seqs())}

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        counts = dict(self.sql.count_memories_by_agent(tenant, agents))
        for agent, of_kinds in counts.items():
            file = self._notes.peek_file(Owner(tenant, agent))
            if file is not None:
                counts[agent] = {**of_kinds, Kind.NOTE: of_kinds[Kind.NOTE] + len(file.seqs())}
        return counts

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        in_rows = self.sql.search_memories(owner, query, kinds=kinds, now=now, limit=limit)
        index, words = self._find_index(owner, kinds), terms(query)
        in_file = index.search(IndexQuery(terms=words), limit) if index is not None and words else ()
        return merge_matches([in_rows, in_file], limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        in_rows = self.sql.nearest_memories(owner, vector, kinds=kinds, now=now, limit=limit)
        index = self._find_index(owner, kinds)
        has_vectors = index is not None and index.embedder.dimensions == len(vector)
        in_file = index.nearest(IndexQuery(vector=vector), limit) if index is not None and has_vectors else ()
        return merge_matches([in_rows, in_file], limit)

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool = False,
        where: Condition | None = None,
    ) -> Evidence:
        in_rows = self.sql.weigh_memories(owner, terms, vector, kinds=kinds, now=now, is_past=is_past, where=where)
        if (index := self._find_index(owner, kinds)) is None:
            return in_rows
        query = IndexQuery(terms=terms, vector=vector, until=int(now.timestamp()) if is_past else None)
        if vector is None or index.embedder.dimensions == len(vector):
            in_file = index.evidence(query)
        else:
            # The notes have no vectors yet.
            in_file = index.evidence(replace(query, vector=None))
            in_file = replace(in_file, cosines=np.full(len(in_file.seqs), np.nan, np.float32))
        if where is not None:
            notes = self._notes.find(owner, in_file.seqs.tolist())
            allowed = [seq in notes and is_matching(where, notes[seq], now) for seq in in_file.seqs.tolist()]
            in_file = replace(in_file, allowed=np.array(allowed, np.bool_))
        return in_rows.with_more(in_file) if len(in_rows.seqs) else in_file

    def _find_index(self, owner: Owner, kinds: Collection[Kind]) -> OwnerIndex | None:
        return self._notes.find_index(owner) if Kind.NOTE in kinds else None

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        user: str | None = None,
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        in_file: list[Trace] = []
        if table in (MEMORIES, NOTES_FILE) and agent and not (after or session_id or user):
            file = self._notes.find_file(Owner(tenant, agent))
            in_file = file.traces(table, agent) if file is not None else []
        if table == NOTES_FILE:
            return in_file
        in_rows = self.sql.list_traces(
            tenant, table, agent=agent, session_id=session_id, user=user, after=after, limit=limit
        )
        return [*in_file, *in_rows]

    def erase_traces(
        self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace], *, sealing: object = None
    ) -> Erased:
        # The file comes first: it cannot be rolled back, and erased text must not come back.
        self._check_log(tenant)
        in_rows = [each for each in gone if each.table != NOTES_FILE]
        notes = lines = 0
        for agent in sorted({each.agent for each in gone if each.table in (MEMORIES, NOTES_FILE)}):
            file = self._notes.find_file(Owner(tenant, agent))
            if file is not None:
                seqs = {int(each.key[0]) for each in in_rows if (each.table, each.agent) == (MEMORIES, agent)}
                names = {str(each.key[0]) for each in gone if (each.table, each.agent) == (NOTES_FILE, agent)}
                notes += self._notes.erase(file, Owner(tenant, agent), seqs, names)
                lines += len(names)
        erased = self.sql.erase_traces(tenant, in_rows, cleared, sealing=sealing)
        removed = {**erased.removed, MEMORIES: erased.removed.get(MEMORIES, 0) + notes, NOTES_FILE: lines}
        return replace(erased, removed={table: count for table, count in removed.items() if count})

    def forget_cached(self, tenant: str) -> None:
        self.sql.forget_cached(tenant)
        self._notes.forget_cached()

    def export_rows(self, tenant: str, take: Callable[[str, Json], None], *, user: str | None = None) -> None:
        if user is not None:
            self.sql.export_rows(tenant, take, user=user)
            return
        notes = self._notes.all_of_tenant(tenant)
        if notes:
            # Another program may have added notes that the agent's counter, or the agent's row, does not know yet.
            highest = max(memory_seq(note.id) or 0 for note in notes)
            self.sql.raise_counter(notes[0].owner, highest, now=notes[0].created_at)
        waiting = [export_row(BY_NAME[MEMORIES], _row(note)) for note in reversed(notes)]

        def take_notes(table: str, row: Json) -> None:
            if table in AFTER_MEMORIES and (table != "shelves" or row["shelf"] != "audit"):
                while waiting:
                    take(MEMORIES, waiting.pop(0))
            take(table, row)

        self.sql.export_rows(tenant, take_notes)
        for row in waiting:
            take(MEMORIES, row)

    def has_rows(self, tenant: str, table: str) -> bool:
        return self.sql.has_rows(tenant, table) or (table == MEMORIES and bool(self._notes.all_of_tenant(tenant)))

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        found = self.sql.find_rows(tenant, table, rows)
        if table != MEMORIES:
            return found
        notes = {(note.owner.agent, note.id): note for note in self._notes.all_of_tenant(tenant)}
        in_file = (notes.get((row["agent_id"], f"m-{row['seq']}")) for row in rows)
        return [
            is_same if note is None else _is_same(note, row)
            for is_same, note, row in zip(found, in_file, rows, strict=True)
        ]

    def import_rows(
        self,
        tenant: str,
        table: str,
        rows: Sequence[Json],
        *,
        now: datetime,
        vectors: Sequence[Vector | None] = (),
        text: ContentDraft | None = None,
    ) -> int:
        # Imported notes are kept in the database; those that the file has already are left out.
        if table == MEMORIES:
            found = self.find_rows(tenant, table, rows)
            new = [position for position, is_same in enumerate(found) if is_same is None]
            rows, vectors = [rows[position] for position in new], [vectors[position] for position in new if vectors]
        return self.sql.import_rows(tenant, table, rows, now=now, vectors=vectors, text=text)

    def _check_log(self, tenant: str) -> None:
        """Check before a change of the file that its event can be written to the audit log. Raises: ReadOnly."""
        refuse_foreign(self.sql.audit_head(tenant).hash, self.sql.audit_key)


def route_notes(sql: SqlStore, workspace: Path, *, max_notes: int, suspicious: str) -> SqlStore:
    """Return a store that keeps notes in the file of a workspace and everything else in `sql`.

    Raises: Invalid when the workspace is not a folder.
    """
    notes = NotesStore(workspace, TrustRows(sql, workspace), max_notes=max_notes, suspicious=suspicious)
    return RoutedStore(sql, notes)


def _belongs_in_file(memory: Memory) -> bool:
    """Return True for notes whose fields the file has: none of low trust, on hold, of a user or with metadata."""
    is_plain = memory.held_at is None and memory.user is None and not memory.metadata
    return memory.kind is Kind.NOTE and not is_low(memory.origin) and is_plain


def _newest(memories: Sequence[Memory], limit: int) -> Sequence[Memory]:
    return nlargest(limit, memories, key=lambda memory: memory_seq(memory.id) or 0)


def _summarize(seq: int, note: Memory) -> MemorySummary:
    return MemorySummary(seq, note.text, note.importance, note.created_at, note.since, lambda: note)


def _row(note: Memory) -> Sequence[object]:
    values = memory_values(note, memory_seq(note.id) or 0)
    return [values[column] for column in BY_NAME[MEMORIES].columns]


def _is_same(note: Memory, row: Json) -> bool:
    return row["kind"] == Kind.NOTE and moment(row["created_at"]) == note.created_at
