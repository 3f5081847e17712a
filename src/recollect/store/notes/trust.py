"""Which notes of a workspace's file are trusted no more than an import.

The file has no field for where a note came from. What it holds when a database first meets it was written by somebody
else, perhaps by whoever published the repository it was cloned with. So the highest id is remembered at that moment;
notes up to it are imports until they are approved. What is added later, by us or by programs on this machine, is the
user's. Of notes that were approved, and of those we wrote, a hash is remembered: once such a line says something else,
as after a `git pull`, it is an import again. The database remembers it, not the workspace: what comes along with a
clone cannot vouch for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from recollect.lazy import LazyModule
from recollect.model import Memory, Origin, Owner
from recollect.policy.names import memory_seq
from recollect.policy.trust import SUSPICIOUS
from recollect.store.embeddings import NOBODY
from recollect.store.engine import Unit
from recollect.store.notes.disk import FOLDERS
from recollect.store.notes.lines import digest_of
from recollect.store.units import Units

if TYPE_CHECKING:
    from recollect.policy import instructions
else:
    instructions = LazyModule("recollect.policy.instructions")

CAME_WITH_IT = "came with the workspace"
CHANGED = "changed in the workspace's file"
FOR_GOOD = datetime(9000, 1, 1, tzinfo=UTC)
SPARE = 100
"""How many hashes of notes that are gone may be kept, before they are dropped."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The notes that count as imports: those up to a number, and those that no longer say what is vouched for.

    It is written as text that grows at its end: the number, then `id:hash` for each note. Of two with the same id the
    last one counts.
    """

    through: int = 0
    vouched: Mapping[int, str] = field(default_factory=dict)

    def find_reason(self, seq: int, digest: str) -> str | None:
        """Return why a note is an import; None if it is the user's."""
        known = self.vouched.get(seq)
        if known is None:
            return CAME_WITH_IT if seq <= self.through else None
        return None if known == digest else CHANGED

    def __str__(self) -> str:
        return f"{self.through}{_entries(self.vouched)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        through, *entries = text.split()
        # An id without a hash was approved before there were any, so nobody knows which text.
        pairs = (entry.split(":") for entry in entries if ":" in entry)
        return cls(int(through), {int(seq): digest for seq, digest in pairs})


def as_import(note: Memory, mode: str, reason: str = CAME_WITH_IT) -> Memory:
    """Return the note as an import that waits for approval; `mode` is the setting `suspicious`."""
    rule = None if mode == "show" else instructions.find_instruction("\n".join([note.text, *note.tags]))
    flag = reason if rule is None else f"{reason}; {SUSPICIOUS}: {rule}"
    held_at = note.created_at if mode == "hold" and rule is not None else None
    return replace(note, origin=Origin.IMPORT, flag=flag, held_at=held_at)


class WorkspaceTrust(Units):
    """Remembers the imports of workspaces, in the table of leases: each is a row nobody else takes."""

    def find_imported(self, owner: Owner, workspace: Path) -> Imported | None:
        """Return what is known about the file; None if this database has not met it."""
        name = _name(owner, workspace)
        row = self._read(owner.tenant, lambda unit: unit.one("find_lease", name=name))
        return None if row is None else Imported.parse(row[0])

    def meet_workspace(self, owner: Owner, workspace: Path, highest: int) -> Imported:
        """Remember that notes up to `highest` came with the file, unless another process was first.

        Inside a transaction nothing is written: a transaction that has locked the agent's counter may read notes, and
        one that adds notes locks the counter after this. `vouch_for` writes it then, in the order all writers keep.
        """
        if self._unit(owner.tenant) is not None:
            return Imported(highest)
        values = _row(owner, workspace, highest)
        # In a transaction of nobody's: this is not what the current request is for, so it must not take the request's
        # idempotency key.
        self._write(NOBODY, lambda unit: unit.run("add_lease", **values))
        return self.find_imported(owner, workspace) or Imported(highest)

    def vouch_for(self, owner: Owner, workspace: Path, notes: Sequence[Memory], *, through: int) -> None:
        """Trust what these notes say now, and only that; notes up to `through` came with the file."""
        vouched = {memory_seq(note.id) or 0: digest_of(note) for note in notes}
        row = _row(owner, workspace, through)

        def vouch(unit: Unit) -> None:
            unit.run("add_lease", **row)
            # Added at the end in one statement, so that two processes do not undo each other's.
            unit.run("extend_lease", name=row["name"], more=_entries(vouched))

        if vouched:
            self._write(owner.tenant, vouch)

    def drop_gone(self, owner: Owner, workspace: Path, there: Collection[int], *, spare: int = 0) -> None:
        """Forget the hashes of notes that are not in the file any more, if there are more of them than `spare`."""
        name = _name(owner, workspace)

        def drop(unit: Unit) -> None:
            row = unit.one("find_lease", name=name)
            entries = [] if row is None else row[0].split()[1:]
            if row is None or len(entries) <= len(there) + spare:
                return
            known = Imported.parse(row[0])
            kept = Imported(known.through, {seq: known.vouched[seq] for seq in known.vouched if seq in there})
            # If somebody has added to it meanwhile, nothing is dropped before the next time.
            unit.run("replace_lease", name=name, known=row[0], holder=str(kept))

        self._write(owner.tenant, drop)


def _entries(vouched: Mapping[int, str]) -> str:
    return "".join(f" {seq}:{digest}" for seq, digest in vouched.items())


def _row(owner: Owner, workspace: Path, through: int) -> Mapping[str, Any]:
    return {"name": _name(owner, workspace), "holder": str(Imported(through)), "until": FOR_GOOD}


def _name(owner: Owner, workspace: Path) -> str:
    """Name the folder by its path and its inode: another one at the same path is another workspace."""
    folder = workspace.joinpath(*FOLDERS).resolve()
    inode = folder.stat().st_ino if folder.exists() else 0
    place = hashlib.sha256(f"{owner.agent}\0{folder}\0{inode}".encode()).hexdigest()[:32]
    return f"notes {owner.tenant} {place}"
