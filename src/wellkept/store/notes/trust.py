"""Trust in the notes of a workspace's file.

The file has no field for the origin of a note. Whatever it holds when a database first sees it was written by someone
else, perhaps by the publisher of a cloned repository. So the database records the highest id at that moment: notes up
to it are imports until they are approved. Notes added later, by wellkept or by programs on this machine, are the
user's. For each note that was approved or written by wellkept, the database records a hash: if the line changes, as
after a `git pull`, the note is an import again. All of this is kept in the database and not in the workspace, because
a clone must not vouch for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from wellkept.language.names import memory_seq
from wellkept.memory import rules_trust as instructions
from wellkept.memory.rules_trust import SUSPICIOUS
from wellkept.model import Memory, Origin, Owner
from wellkept.store.engine import Unit, Units
from wellkept.store.notes.disk import CLAIM, FOLDERS
from wellkept.store.notes.lines import hash_note
from wellkept.store.tables.rows import NO_OWNER

CAME_WITH_IT = "came with the workspace"
CHANGED = "changed in the workspace's file"
NEVER = datetime(9000, 1, 1, tzinfo=UTC)
SPARE = 100
"""Number of hashes of missing notes that may pile up before they are dropped."""


@dataclass(frozen=True, slots=True)
class NoteTrust:
    """Trusted notes of one file: all above a number, and those that still have the recorded hash.

    Stored as text that only grows at its end: the number, then `id:hash` for each note. The last entry of an id counts.
    """

    through: int = 0
    hashes: Mapping[int, str] = field(default_factory=dict)

    def find_reason(self, seq: int, digest: str) -> str | None:
        """Return why a note is an import; None if it is the user's."""
        known = self.hashes.get(seq)
        if known is None:
            return CAME_WITH_IT if seq <= self.through else None
        return None if known == digest else CHANGED

    def __str__(self) -> str:
        return f"{self.through}{_format_entries(self.hashes)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the stored text."""
        through, *entries = text.split()
        # An id without a hash was approved before hashes were recorded, so its text at that time is unknown.
        pairs = (entry.split(":") for entry in entries if ":" in entry)
        return cls(int(through), {int(seq): digest for seq, digest in pairs})


def mark_as_import(note: Memory, mode: str, reason: str) -> Memory:
    """Return the note as an import that waits for approval; `mode` is the setting `suspicious`."""
    rule = None if mode == "show" else instructions.find_instruction("\n".join([note.text, *note.tags]))
    flag = reason if rule is None else f"{reason}; {SUSPICIOUS}: {rule}"
    held_at = note.created_at if mode == "hold" and rule is not None else None
    return replace(note, origin=Origin.IMPORT, flag=flag, held_at=held_at)


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
            unit.put("extend_lease", name=row["name"], more=_format_entries(hashes))

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


def _format_entries(hashes: Mapping[int, str]) -> str:
    return "".join(f" {seq}:{digest}" for seq, digest in hashes.items())
