"""Store over the database and the notes of a workspace.

A line of the file names no agent, and agents do not read each other's notes. So the first agent that uses the file
claims it, by a small file beside it. Its notes live in the file, and everything else in the database. The store asks
both and merges the answers. Ids stay unique: before either side gives a number, it learns how far the other has
counted.

The file has no field for the origin of a note. Whatever it holds when a database first sees it was written by someone
else, perhaps by the publisher of a cloned repository. So the database records the highest id at that moment: notes up
to it are imports until they are approved. Notes added later, by wellkept or by programs on this machine, are the
user's. For each note that was approved or written by wellkept, the database records a hash: if the line changes, as
after a `git pull`, the note is an import again. All of this is kept in the database and not in the workspace, because
a clone must not vouch for itself.

A file cannot be part of a database transaction. Notes are added to it inside the transaction, and a note that a
transaction corrects stays until its correction is stored: a correction in the file replaces it in the same step, and a
correction in the database removes it after the commit. So a failure leaves the old note, the new one or both.
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wellkept.errors import Invalid, StoreError
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import content_hash, index_terms, terms
from wellkept.memory.rules_filters import Condition, is_matching
from wellkept.memory.rules_trust import is_low
from wellkept.model import Erased, Json, Key, Kind, Match, Memory, MemoryVersion, Origin, Owner, State, Trace
from wellkept.model.stored import EmbedTexts, Encoded, MemorySummary, Vector
from wellkept.recall.rules_features import Evidence
from wellkept.store.engine import IndexQuery, RegisteredEmbedder, Unit, Units
from wellkept.store.notes.disk import (
    CLAIM,
    FILE_NAME,
    FOLDERS,
    OWNER_ONLY_FILE,
    check_regular,
    find_paths,
    make_private,
    translate_os_errors,
)
from wellkept.store.notes.file import NotesFile, NoteTrust, format_entries, hash_note
from wellkept.store.search.encoding import encode_terms, encode_vector
from wellkept.store.search.index import OwnerIndex
from wellkept.store.search.memory_search import NO_EMBEDDER, merge_matches
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import ContentDraft
from wellkept.store.tables.erasure import NOTES_FILE
from wellkept.store.tables.history import refuse_foreign
from wellkept.store.tables.rows import NO_OWNER, memory_values, moment, number_of
from wellkept.store.tables.transfer import BY_NAME, export_row
from wellkept.transfer.rules import KEYS

NOT_EDITED = "A note that lives in a file is not edited in place; delete it and store the new text."
STILL_THERE = "The correction is stored, but the notes file still has {ids}. {error} Then delete {ids}."
MEMORIES = "memories"
AFTER_MEMORIES = tuple(KEYS)[tuple(KEYS).index(MEMORIES) + 1 :]
"""Tables that follow the memories in an export."""

EMBEDDER_ID = 1
MAX_CLAIM_CHARS = 1000
CORRECTED = "corrected notes"
"""Key of the numbers of notes that a transaction corrects, in `Unit.memo`."""


class NotesIndex:
    """Index of the notes of one file. Only new texts are embedded."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Drop every note; the next search reads and embeds them again."""
        with self._lock:
            self._vectors: dict[str, Vector | None] = {}
            # True if the next search can embed more notes: each embeds only some.
            self._is_growing = False
            self._indexed: tuple[Sequence[Memory], OwnerIndex] = ((), OwnerIndex(NO_EMBEDDER))

    def current(self, notes: Sequence[Memory]) -> OwnerIndex:
        """Return the index of these notes, of which only some may have vectors."""
        with self._lock:
            known, index = self._indexed
            if known != notes or self._is_growing:
                index = self._build(notes)
                self._indexed = (notes, index)
            return index

    def _build(self, notes: Sequence[Memory]) -> OwnerIndex:
        unseen = list(dict.fromkeys(note.text for note in notes if self._vectors.get(note.text) is None))
        fresh = dict(zip(unseen, self._embed(unseen), strict=True)) if unseen else {}
        found = sum(vector is not None for vector in fresh.values())
        self._is_growing = 0 < found < len(fresh)
        self._vectors = {note.text: fresh.get(note.text, self._vectors.get(note.text)) for note in notes}
        dimensions = next((len(vector) for vector in self._vectors.values() if vector is not None), 0)
        index = OwnerIndex(RegisteredEmbedder(EMBEDDER_ID, "file", dimensions))
        index.append([self._row(note) for note in reversed(notes)])
        return index

    def _row(self, note: Memory) -> tuple[object, ...]:
        vector = self._vectors[note.text]
        encoded = None if vector is None else encode_vector(vector)
        words, since = encode_terms(index_terms(note.text)), int(note.created_at.timestamp())
        return memory_seq(note.id), 1, note.kind.value, None, words, EMBEDDER_ID, encoded, None, note.role.value, since


if TYPE_CHECKING:
    # Type checkers compare its methods with those it takes the place of.
    Delegate = SqlStore
else:
    # No subclass: inside the SQL store, `self` is the database alone.
    Delegate = object


class NotesStore(Delegate):
    """A store over a database and the notes file of a workspace. What it does not define is the database's."""

    def __init__(self, sql: SqlStore, workspace: Path, *, max_notes: int, suspicious: str) -> None:
        """Open the workspace; `suspicious` is the setting of that name.

        Raises: Invalid when the workspace is not a folder.
        """
        if not workspace.is_dir():
            raise Invalid(f"The workspace {workspace} is not a folder; create it, or correct the setting.")
        self.sql = sql
        self._workspace = workspace
        self._trust = TrustRows(sql, workspace)
        self._max_notes = max_notes
        self._suspicious = suspicious
        self._lock = threading.Lock()
        self._files: dict[Owner, NotesFile] = {}
        self._index = NotesIndex(lambda texts: [None] * len(texts))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self.sql, name)

    def read_together(self, tenant: str, work: Callable[[], Any]) -> Any:
        # A snapshot of the database cannot include the file, and trust rows are read and written on their own.
        return work()

    def embed_notes_with(self, embed: EmbedTexts) -> None:
        self._index = NotesIndex(embed)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self.sql.close()

    def add_memory(self, memory: Memory, vector: Vector | None = None) -> Memory:
        return self.add_memories([memory], [vector])[0]

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Encoded]) -> Sequence[Memory]:
        notes = [memory for memory in memories if _belongs_in_file(memory)]
        file = self._find_file(memories[0].owner, is_writing=bool(notes)) if memories else None
        if file is None:
            return self.sql.add_memories(memories, vectors)
        others = [(m, v) for m, v in zip(memories, vectors, strict=True) if not _belongs_in_file(m)]
        owner, now = memories[0].owner, memories[0].created_at
        self._check_log(owner.tenant)
        floor = self.sql.raise_counter(owner, file.last_seq(), now=now)
        added = self._add_notes(file, owner, notes, floor)
        if added:
            self.sql.raise_counter(owner, file.last_seq(), now=now)
        in_file = iter(added)
        in_rows = iter(self.sql.add_memories([m for m, _ in others], [v for _, v in others]))
        return [next(in_file if _belongs_in_file(memory) else in_rows) for memory in memories]

    def _add_notes(self, file: NotesFile, owner: Owner, notes: Sequence[Memory], floor: int) -> Sequence[Memory]:
        """Add notes with ids above `floor`, remove those that they correct in the same step, and trust them."""
        corrected = self._corrected(owner)
        replacing = corrected & {memory_seq(note.supersedes) for note in notes if note.supersedes is not None}
        added = file.add_memories(notes, keep=self._max_notes, floor=floor, replacing=replacing)
        corrected -= replacing
        if added:
            self._trust.trust_notes(owner, added, through=file.trust.through)
            self._trust.drop_missing(owner, file.seqs(), spare=SPARE)
        return added

    def get_memory(self, owner: Owner, id: str) -> Memory:
        found = self._find_note(owner, id)
        return self.sql.get_memory(owner, id) if found is None else found[1]

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        return {**self.sql.find_memories(owner, seqs), **self._find_notes(owner, seqs)}

    def find_summaries(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, MemorySummary]:
        in_file = {seq: _summarize(seq, note) for seq, note in self._find_notes(owner, seqs).items()}
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
        page: dict[str, Any] = {"now": now, "is_past": is_past, "before": before, "limit": limit}
        in_rows = self.sql.list_memories(owner, kind=kind, needle=needle, where=where, state=state, **page)
        file = self._find_file(owner)
        if file is None or kind not in (None, Kind.NOTE) or state not in (None, State.LIVE, State.HELD):
            return in_rows
        is_held, corrected = None if state is None else state is State.HELD, self._corrected(owner)
        in_file = [
            note
            for note in file.list_memories(needle=needle, where=where, is_held=is_held, before=before)
            if memory_seq(note.id) not in corrected and not (is_past and note.created_at > now)
        ]
        return nlargest(limit, [*in_rows, *in_file], key=number_of)

    def list_for_review(self, owner: Owner, *, limit: int = 100) -> Sequence[Memory]:
        flagged = [note for note in self._list_notes(owner) if note.flag is not None]
        return nlargest(limit, [*self.sql.list_for_review(owner, limit=limit), *flagged], key=number_of)

    def approve_notes(self, owner: Owner) -> int:
        file = self._find_file(owner)
        if file is None:
            return self.sql.approve_notes(owner)
        notes = [note for note in file.all() if note.origin is Origin.IMPORT]
        self._trust.trust_notes(owner, notes, through=file.trust.through)
        return len(notes)

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        notes = self._list_notes(owner) if kind is Kind.NOTE and not owner.user else ()
        expected = content_hash(text)
        same = next((note for note in notes if content_hash(note.text) == expected), None)
        return same or self.sql.find_same_memory(owner, kind, text, now=now)

    def update_memory(
        self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime, whole: str | None = None
    ) -> Memory:
        owner = memory.owner
        found = self._find_note(owner, memory.id)
        if found is None:
            return self.sql.update_memory(memory, vector, replaced_at=replaced_at, whole=whole)
        file, note = found
        if note.flag and memory == replace(note, held_at=None, flag=None):
            self._trust.trust_notes(owner, [memory], through=file.trust.through)
            return replace(memory, origin=Origin.USER)
        if memory.valid_to is None:
            raise Invalid(NOT_EDITED)
        self._check_log(owner.tenant)
        # A correction takes its place: the file keeps no past.
        if not self.sql.is_in_transaction(owner.tenant):
            file.delete_memories([memory_seq(memory.id) or 0])
            return memory
        corrected = self._corrected(owner)
        if not corrected:
            self.sql._after_commit(lambda: _remove_corrected(file, corrected))
        corrected.add(memory_seq(memory.id) or 0)
        return memory

    def can_hide(self, memory: Memory) -> bool:
        # The file keeps no past to restore from.
        return self._find_note(memory.owner, memory.id) is None

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        if self._find_note(owner, id) is not None:
            return []
        return self.sql.list_versions(owner, id, before=before, limit=limit)

    def delete_memory(self, owner: Owner, id: str) -> None:
        # A user's view reads the notes of the file, but does not change them.
        found = None if owner.user else self._find_note(owner, id)
        if found is None:
            return self.sql.delete_memory(owner, id)
        self._check_log(owner.tenant)
        return found[0].delete_memory(id)

    def delete_agent(self, owner: Owner) -> None:
        self.sql.delete_agent(owner)
        file = self._find_file(owner)
        if file is not None and (seqs := file.seqs()):
            self._check_log(owner.tenant)
            file.delete_memories(seqs, is_missing_ok=True)

    def find_damaged_notes(self, owner: Owner) -> Sequence[str] | None:
        claimant = self._find_claimant()
        file = NotesFile(self._workspace, owner) if claimant is None else self._peek_file(owner)
        return None if file is None else [f"line {each.line}: {each.reason}" for each in file.damaged()]

    def count_memories(self, owner: Owner) -> Mapping[Kind, int]:
        return self._add_count(owner, self.sql.count_memories(owner))

    def count_memories_by_agent(self, tenant: str, agents: Collection[str]) -> Mapping[str, Mapping[Kind, int]]:
        counts = self.sql.count_memories_by_agent(tenant, agents)
        return {agent: self._add_count(Owner(tenant, agent), each) for agent, each in counts.items()}

    def _add_count(self, owner: Owner, counts: Mapping[Kind, int]) -> Mapping[Kind, int]:
        file = self._peek_file(owner)
        return counts if file is None else {**counts, Kind.NOTE: counts[Kind.NOTE] + len(file.seqs())}

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
        # The notes may have no vectors yet.
        has_vectors = vector is not None and index.embedder.dimensions == len(vector)
        until = int(now.timestamp()) if is_past else None
        in_file = index.evidence(IndexQuery(terms=terms, vector=vector if has_vectors else None, until=until))
        if vector is not None and not has_vectors:
            in_file = replace(in_file, cosines=np.full(len(in_file.seqs), np.nan, np.float32))
        if where is not None:
            seqs = in_file.seqs.tolist()
            notes = self._find_notes(owner, seqs)
            allowed = [seq in notes and is_matching(where, notes[seq], now) for seq in seqs]
            in_file = replace(in_file, allowed=np.array(allowed, np.bool_))
        return in_rows.with_more(in_file) if len(in_rows.seqs) else in_file

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
            file = self._find_file(Owner(tenant, agent))
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
            owner = Owner(tenant, agent)
            file = self._find_file(owner)
            if file is not None:
                seqs = {int(each.key[0]) for each in in_rows if (each.table, each.agent) == (MEMORIES, agent)}
                names = {str(each.key[0]) for each in gone if (each.table, each.agent) == (NOTES_FILE, agent)}
                notes += file.erase(seqs, names)
                self._trust.drop_missing(owner, file.seqs())
                lines += len(names)
        erased = self.sql.erase_traces(tenant, in_rows, cleared, sealing=sealing)
        removed = {**erased.removed, MEMORIES: erased.removed.get(MEMORIES, 0) + notes, NOTES_FILE: lines}
        return replace(erased, removed={table: count for table, count in removed.items() if count})

    def forget_cached(self, tenant: str) -> None:
        self.sql.forget_cached(tenant)
        self._index.forget()

    def export_rows(self, tenant: str, take: Callable[[str, Json], None], *, user: str | None = None) -> None:
        if user is not None:
            self.sql.export_rows(tenant, take, user=user)
            return
        notes = self._list_tenant_notes(tenant)
        if notes:
            # Another program may have added notes that the agent's counter, or the agent's row, does not know yet.
            self.sql.raise_counter(notes[0].owner, max(map(number_of, notes)), now=notes[0].created_at)
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
        return self.sql.has_rows(tenant, table) or (table == MEMORIES and bool(self._list_tenant_notes(tenant)))

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        found = self.sql.find_rows(tenant, table, rows)
        if table != MEMORIES:
            return found
        notes = {(note.owner.agent, note.id): note for note in self._list_tenant_notes(tenant)}
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

    def _find_file(self, owner: Owner, *, is_writing: bool = False) -> NotesFile | None:
        """Return the file if this agent has it. An unclaimed file is claimed if it exists or is about to be written.

        Its notes belong to no user.

        Raises: StoreError.
        """
        if not owner.has(None):
            return None
        owner = owner.whole
        with self._lock:
            if owner not in self._files:
                if not _claim(self._workspace, owner, is_writing=is_writing):
                    return None
                self._files[owner] = NotesFile(self._workspace, owner, suspicious=self._suspicious)
            file = self._files[owner]
        # Outside the lock: a thread that holds a row of the database may be waiting for this lock.
        file.trust = self._trust.find(owner) or self._trust.register(owner, max(file.seqs(), default=0))
        return file

    def _peek_file(self, owner: Owner) -> NotesFile | None:
        """Return the file if this agent has claimed it. Raises: StoreError."""
        return self._find_file(owner) if self._find_claimant() == owner.whole else None

    def _find_claimant(self) -> Owner | None:
        """Return the agent that has the file; None if it is unclaimed. Raises: StoreError."""
        with translate_os_errors(self._workspace.joinpath(*FOLDERS, FILE_NAME), action="used"):
            found = _read_claim(find_paths(self._workspace).folder / CLAIM)
        if found is None:
            return None
        tenant, _, agent = found.rstrip("\n").partition("/")
        return Owner(tenant, agent)

    def _find_notes(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Return the notes that exist, by number."""
        file, corrected = self._find_file(owner), self._corrected(owner)
        return file.find_memories([seq for seq in seqs if seq not in corrected]) if file is not None else {}

    def _find_note(self, owner: Owner, id: str) -> tuple[NotesFile, Memory] | None:
        """Return the file and the note with this id."""
        file, seq = self._find_file(owner), memory_seq(id) or 0
        note = None if file is None or seq in self._corrected(owner) else file.find_memories([seq]).get(seq)
        return None if file is None or note is None else (file, note)

    def _list_notes(self, owner: Owner) -> Sequence[Memory]:
        """Return every note, newest first."""
        file, corrected = self._find_file(owner), self._corrected(owner)
        return [note for note in file.all() if memory_seq(note.id) not in corrected] if file is not None else []

    def _list_tenant_notes(self, tenant: str) -> Sequence[Memory]:
        """Return every note, newest first, if the agent that has the file belongs to this tenant. Claim nothing."""
        owner = self._find_claimant()
        return self._list_notes(owner) if owner is not None and owner.tenant == tenant else []

    def _find_index(self, owner: Owner, kinds: Collection[Kind]) -> OwnerIndex | None:
        """Return the search index of every note that is not held; None if this agent does not have the file."""
        file = self._find_file(owner) if Kind.NOTE in kinds else None
        return self._index.current(file.live()) if file is not None else None

    def _corrected(self, owner: Owner) -> set[int]:
        """Return the numbers of the agent's notes that the transaction on this thread has corrected."""
        unit = self.sql._unit(owner.tenant)
        found: set[int] = set() if unit is None else unit.memo.setdefault((CORRECTED, owner.agent), set())
        return found

    def _check_log(self, tenant: str) -> None:
        """Check before a change of the file that its event can be written to the audit log. Raises: ReadOnly."""
        refuse_foreign(self.sql.audit_head(tenant).hash, self.sql.audit_key)


def _remove_corrected(file: NotesFile, seqs: set[int]) -> None:
    """Remove the corrected notes that no added note has replaced: their corrections are in the database.

    Raises: StoreError; the correction is stored all the same.
    """
    try:
        # Another program may have removed some of them meanwhile.
        if seqs:
            file.delete_memories(seqs, is_missing_ok=True)
            seqs.clear()
    except StoreError as error:
        ids = ", ".join(map(memory_id, sorted(seqs)))
        raise StoreError(STILL_THERE.format(ids=ids, error=error)) from error


def _belongs_in_file(memory: Memory) -> bool:
    """Return True for notes whose fields the file has: none of low trust, on hold, of a user or with metadata."""
    is_plain = memory.held_at is None and memory.user is None and not memory.metadata
    return memory.kind is Kind.NOTE and not is_low(memory.origin) and is_plain


def _summarize(seq: int, note: Memory) -> MemorySummary:
    return MemorySummary(seq, note.text, note.importance, note.created_at, note.since, lambda: note)


def _row(note: Memory) -> Sequence[object]:
    values = memory_values(note, number_of(note))
    return [values[column] for column in BY_NAME[MEMORIES].columns]


def _is_same(note: Memory, row: Json) -> bool:
    return row["kind"] == Kind.NOTE and moment(row["created_at"]) == note.created_at


def _claim(workspace: Path, owner: Owner, *, is_writing: bool) -> bool:
    """Return True if the notes of the workspace are this agent's. Claim them if they have no owner, and the file exists
    or is about to be written.

    Raises: StoreError.
    """
    with translate_os_errors(workspace.joinpath(*FOLDERS, FILE_NAME), action="used"):
        paths = find_paths(workspace)
        claim, name = paths.folder / CLAIM, f"{owner.tenant}/{owner.agent}\n"
        if (found := _read_claim(claim)) is not None:
            return found == name
        if not is_writing and not paths.file.exists():
            return False
        make_private(paths.folder)
        return _write_claim(claim, name)


def _write_claim(claim: Path, name: str) -> bool:
    """Write the claim file, unless another process was first; return True if it holds `name`."""
    draft = claim.parent / f".{CLAIM}.{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, OWNER_ONLY_FILE), "w", encoding="utf-8") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    try:
        # Like a rename, a link never shows half a file; unlike a rename, it fails if the name exists.
        os.link(draft, claim)
    except FileExistsError:
        return _read_claim(claim) == name
    finally:
        draft.unlink()
    return True


def _read_claim(claim: Path) -> str | None:
    """Return the content of the claim file, or None if there is none. Never follow a link to another file."""
    try:
        fd = os.open(claim, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, encoding="utf-8") as file:
        check_regular(fd)
        return file.read(MAX_CLAIM_CHARS)


NEVER = datetime(9000, 1, 1, tzinfo=UTC)
SPARE = 100
"""Number of hashes of missing notes that may pile up before they are dropped."""


class TrustRows:
    """Rows that record the trust in workspaces, in the table of leases. Such a lease never expires."""

    def __init__(self, units: Units, workspace: Path) -> None:
        self._units = units
        self._workspace = workspace

    def find(self, owner: Owner) -> NoteTrust | None:
        """Return the record of this workspace; None if the database has not seen it yet."""
        name = self._name(owner)
        row = self._units.read(owner.tenant, lambda unit: unit.one("find_lease", name=name))
        return None if row is None else NoteTrust.parse(row[0])

    def register(self, owner: Owner, highest: int) -> NoteTrust:
        """Record that notes up to `highest` came with the file, unless another process was first.

        Inside a transaction, write nothing: a transaction that has locked the agent's counter may read notes, and one
        that adds notes locks the counter after this. `trust_notes` then writes the row, in the order all writers keep.
        """
        if self._units.is_in_transaction(owner.tenant):
            return NoteTrust(highest)
        values = self._row(owner, highest)
        # In a transaction of no tenant: this is not what the current request is for, so it must not take the request's
        # idempotency key.
        self._units.write(NO_OWNER, lambda unit: unit.run("add_lease", **values))
        return self.find(owner) or NoteTrust(highest)

    def trust_notes(self, owner: Owner, notes: Sequence[Memory], *, through: int) -> None:
        """Trust the current text of these notes; notes up to `through` came with the file."""
        hashes = {memory_seq(note.id) or 0: hash_note(note) for note in notes}
        row = self._row(owner, through)

        def write(unit: Unit) -> None:
            unit.put("add_lease", **row)
            # Appended in one statement, so that two processes do not overwrite each other's entries.
            unit.put("extend_lease", name=row["name"], more=format_entries(hashes))

        if hashes:
            self._units.write(owner.tenant, write)

    def drop_missing(self, owner: Owner, present: Collection[int], *, spare: int = 0) -> None:
        """Drop the hashes of notes that are no longer in the file, if there are more than `spare` of them."""
        name = self._name(owner)

        def drop(unit: Unit) -> None:
            row = unit.one("find_lease", name=name)
            entries = [] if row is None else row[0].split()[1:]
            if row is None or len(entries) <= len(present) + spare:
                return
            known = NoteTrust.parse(row[0])
            kept = NoteTrust(known.through, {seq: known.hashes[seq] for seq in known.hashes if seq in present})
            # If another process has added an entry meanwhile, this changes nothing, and the next call tries again.
            unit.put("replace_lease", name=name, known=row[0], holder=str(kept))

        self._units.write(owner.tenant, drop)

    def _row(self, owner: Owner, through: int) -> Mapping[str, Any]:
        return {"name": self._name(owner), "holder": str(NoteTrust(through)), "until": NEVER}

    def _name(self, owner: Owner) -> str:
        """Name the folder by its path, inode and time of claim, which tell it from another folder at the same path.

        The inode alone is not enough: a folder created after another was removed often gets the same one.
        """
        folder = self._workspace.joinpath(*FOLDERS).resolve()
        claim = folder / CLAIM
        inode = folder.stat().st_ino if folder.exists() else 0
        claimed = claim.lstat().st_mtime_ns if claim.exists() else 0
        place = hashlib.sha256(f"{owner.agent}\0{folder}\0{inode}\0{claimed}".encode()).hexdigest()[:32]
        return f"notes {owner.tenant} {place}"
