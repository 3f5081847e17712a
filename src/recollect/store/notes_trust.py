"""Which notes of a workspace's file came with it, and so are trusted no more than an import.

The file has no field for where a note came from. What it holds when a database first meets it was written by somebody
else, perhaps by whoever published the repository it was cloned with. So the highest id is remembered at that moment;
notes up to it are imports until they are approved. What is written later, by us or by programs on this machine, is the
user's. The database remembers it, not the workspace: what comes along with a clone cannot vouch for itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from recollect.lazy import LazyModule
from recollect.model import Memory, Origin, Owner
from recollect.policy.names import memory_seq
from recollect.policy.trust import SUSPICIOUS
from recollect.store.embeddings import NOBODY
from recollect.store.notes_disk import FOLDERS
from recollect.store.units import Units

if TYPE_CHECKING:
    from recollect.policy import instructions
else:
    instructions = LazyModule("recollect.policy.instructions")

CAME_WITH_IT = "came with the workspace"
FOR_GOOD = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Imported:
    """The notes that count as imports: those up to a number, but for the ones that were approved."""

    through: int = 0
    approved: frozenset[int] = frozenset()

    def __contains__(self, seq: int) -> bool:
        return seq <= self.through and seq not in self.approved

    def __str__(self) -> str:
        return " ".join(map(str, (self.through, *sorted(self.approved))))

    @classmethod
    def parse(cls, text: str) -> Self:
        through, *approved = map(int, text.split())
        return cls(through, frozenset(approved))


def as_import(note: Memory, mode: str) -> Memory:
    """Return the note as an import that waits for approval; `mode` is the setting `suspicious`."""
    rule = None if mode == "show" else instructions.find_instruction("\n".join([note.text, *note.tags]))
    flag = CAME_WITH_IT if rule is None else f"{CAME_WITH_IT}; {SUSPICIOUS}: {rule}"
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
        """Remember that notes up to `highest` came with the file, unless another process was first."""
        values = {"name": _name(owner, workspace), "holder": str(Imported(highest)), "until": FOR_GOOD}
        # In a transaction of nobody's, if it needs one: it is not what the current request is for, so it must not take
        # the request's idempotency key.
        tenant = NOBODY if self._unit(owner.tenant) is None else owner.tenant
        self._write(tenant, lambda unit: unit.run("add_lease", **values))
        return self.find_imported(owner, workspace) or Imported(highest)

    def set_imported(self, owner: Owner, workspace: Path, imported: Imported) -> None:
        """Remember what is left to approve."""
        values = {"name": _name(owner, workspace), "holder": str(imported)}
        self._write(owner.tenant, lambda unit: unit.run("set_lease", **values))


def approving(imported: Imported, note: Memory) -> Imported:
    """Return the imports without this note."""
    return replace(imported, approved=imported.approved | {memory_seq(note.id) or 0})


def _name(owner: Owner, workspace: Path) -> str:
    """Name the folder by its path and its inode: another one at the same path is another workspace."""
    folder = workspace.joinpath(*FOLDERS).resolve()
    inode = folder.stat().st_ino if folder.exists() else 0
    place = hashlib.sha256(f"{owner.agent}\0{folder}\0{inode}".encode()).hexdigest()[:32]
    return f"notes {owner.tenant} {place}"
