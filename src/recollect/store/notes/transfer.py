"""Moving a tenant whose notes live in a workspace's file: they leave with the rest, and are not brought in again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from recollect.model import Json, Kind, Memory, Owner
from recollect.policy.names import memory_seq
from recollect.policy.transfer import KEYS
from recollect.ports import ContentDraft, Vector
from recollect.store.notes.claim import claimant
from recollect.store.notes.file import NotesFile
from recollect.store.rows import memory_values, moment
from recollect.store.sqlstore import SqlStore
from recollect.store.transfer_tables import BY_NAME, portable

MEMORIES = "memories"
BEHIND = tuple(KEYS)[tuple(KEYS).index(MEMORIES) + 1 :]
"""The tables of an export that come behind the memories."""


class WorkspaceTransfer(SqlStore):
    """`ports.TransferStore` with notes in a file. Those that are imported are kept in the database."""

    _workspace: Path

    @abstractmethod
    def notes_of(self, owner: Owner, *, is_writing: bool = False) -> NotesFile | None:
        """The file of this agent, if it is the one that has it."""

    def export_rows(self, tenant: str, take: Callable[[str, Json], None]) -> None:
        notes = self._notes_in(tenant)
        if notes:  # the file may be ahead of the counter, if another program wrote to it, or of the agent itself
            highest = max(memory_seq(note.id) or 0 for note in notes)
            self.raise_counter(notes[0].owner, highest, now=notes[0].created_at)
        waiting = [portable(BY_NAME[MEMORIES], _row(note)) for note in reversed(notes)]

        def take_notes(table: str, row: Json) -> None:
            if table in BEHIND and (table != "shelves" or row["shelf"] != "audit"):
                while waiting:
                    take(MEMORIES, waiting.pop(0))
            take(table, row)

        super().export_rows(tenant, take_notes)
        for row in waiting:
            take(MEMORIES, row)

    def has_rows(self, tenant: str, table: str) -> bool:
        return super().has_rows(tenant, table) or (table == MEMORIES and bool(self._notes_in(tenant)))

    def find_rows(self, tenant: str, table: str, rows: Sequence[Json]) -> Sequence[bool | None]:
        found = super().find_rows(tenant, table, rows)
        if table != MEMORIES:
            return found
        notes = {(note.owner.agent, note.id): note for note in self._notes_in(tenant)}
        in_file = (notes.get((row["agent_id"], f"m-{row['seq']}")) for row in rows)
        return [
            there if note is None else _is_same(note, row)
            for there, note, row in zip(found, in_file, rows, strict=True)
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
        if table == MEMORIES:
            there = self.find_rows(tenant, table, rows)
            new = [place for place, is_same in enumerate(there) if is_same is None]
            rows, vectors = [rows[place] for place in new], [vectors[place] for place in new]
        return super().import_rows(tenant, table, rows, now=now, vectors=vectors, text=text)

    def _notes_in(self, tenant: str) -> Sequence[Memory]:
        """The notes of the file, newest first, if they are of this tenant."""
        owner = claimant(self._workspace)
        file = self.notes_of(owner) if owner is not None and owner.tenant == tenant else None
        return [] if file is None else file.all()


def _row(note: Memory) -> Sequence[object]:
    values = memory_values(note, memory_seq(note.id) or 0)
    return [values[column] for column in BY_NAME[MEMORIES].columns]


def _is_same(note: Memory, row: Json) -> bool:
    return row["kind"] == Kind.NOTE and moment(row["created_at"]) == note.created_at
