"""Notes of the agent that claimed a workspace: the file, its search index, and the rows that record trust.

A line of the file names no agent, and agents do not read each other's notes. So the first agent that uses the file
claims it, by a small file beside it. The notes of every other agent stay in the database.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from wellkept.errors import Invalid, StoreError
from wellkept.language.names import memory_id, memory_seq
from wellkept.language.text import content_hash, index_terms
from wellkept.model import Memory, Origin, Owner
from wellkept.model.stored import EmbedTexts, Vector
from wellkept.store.engine import RegisteredEmbedder
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
from wellkept.store.notes.file import NotesFile
from wellkept.store.notes.trust import SPARE, NoteTrust, TrustRows
from wellkept.store.search.encoding import encode_terms, encode_vector
from wellkept.store.search.index import OwnerIndex

EMBEDDER_ID = 1


class NotesIndex:
    """Index of the notes of one file. Only new texts are embedded."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed
        self._lock = threading.Lock()
        self._vectors: dict[str, Vector | None] = {}
        # True if the next search can embed more notes: each embeds only some.
        self._is_growing = False
        self._indexed: tuple[Sequence[Memory], OwnerIndex] = ((), OwnerIndex(RegisteredEmbedder(0, "", 0)))

    def forget(self) -> None:
        """Drop every note; the next search reads and embeds them again."""
        with self._lock:
            self._vectors, self._indexed = {}, ((), OwnerIndex(RegisteredEmbedder(0, "", 0)))

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


MAX_CLAIM_CHARS = 1000
STILL_THERE = "The correction is stored, but the notes file still has {ids}. {error} Then delete {ids}."

Superseded = dict[Owner, set[int]]
"""Numbers of notes that a transaction corrects, by agent."""


class _Pending(threading.local):
    """Superseded notes of the transaction on this thread; None outside a transaction."""

    superseded: Superseded | None = None


class NotesStore:
    """Notes in the file of one workspace. Methods answer for an agent without the file as if it had no notes."""

    def __init__(self, workspace: Path, trust: TrustRows, *, max_notes: int, suspicious: str) -> None:
        """Open the workspace; `suspicious` is the setting of that name.

        Raises: Invalid when the workspace is not a folder.
        """
        if not workspace.is_dir():
            raise Invalid(f"The workspace {workspace} is not a folder; create it, or correct the setting.")
        self._workspace = workspace
        self._trust = trust
        self._max_notes = max_notes
        self._suspicious = suspicious
        self._lock = threading.Lock()
        self._files: dict[Owner, NotesFile] = {}
        self._index = NotesIndex(lambda texts: [None] * len(texts))
        self._pending = _Pending()

    def embed_with(self, embed: EmbedTexts) -> None:
        """Set the function that embeds notes, because the file has no place for vectors."""
        self._index = NotesIndex(embed)

    def find_file(self, owner: Owner, *, is_writing: bool = False) -> NotesFile | None:
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
        file.trust = self._find_trust(owner, file)
        return file

    def peek_file(self, owner: Owner, *, if_unclaimed: bool = False) -> NotesFile | None:
        """Return the file if this agent has it, without claiming it; with `if_unclaimed`, also a file without a claim.

        Raises: StoreError.
        """
        claimant = self.find_claimant()
        if claimant is None:
            return NotesFile(self._workspace, owner) if if_unclaimed else None
        return self.find_file(owner) if claimant == owner.whole else None

    def find_claimant(self) -> Owner | None:
        """Return the agent that has the file; None if it is unclaimed. Raises: StoreError."""
        with translate_os_errors(self._workspace.joinpath(*FOLDERS, FILE_NAME), action="used"):
            found = _read_claim(find_paths(self._workspace).folder / CLAIM)
        if found is None:
            return None
        tenant, _, agent = found.rstrip("\n").partition("/")
        return Owner(tenant, agent)

    @contextmanager
    def collect_superseded(self, superseded: Superseded) -> Iterator[None]:
        """Collect the notes that `supersede` is called for on this thread, and hide them from reads, instead of
        removing them at once."""
        self._pending.superseded = superseded
        try:
            yield
        finally:
            self._pending.superseded = None

    @property
    def is_collecting(self) -> bool:
        """True inside `collect_superseded` on this thread."""
        return self._pending.superseded is not None

    def supersede(self, owner: Owner, id: str) -> None:
        """Remove a note that a correction replaces; inside `collect_superseded`, together with adding the correction.

        Raises: NotFound, StoreError.
        """
        seq, superseded = memory_seq(id) or 0, self._pending.superseded
        if superseded is not None:
            superseded.setdefault(owner, set()).add(seq)
        elif (file := self.find_file(owner)) is not None:
            file.delete_memories([seq])

    def remove_superseded(self, superseded: Superseded) -> None:
        """Remove the collected notes that no added note has replaced: their corrections are in the database.

        Raises: StoreError; the correction is stored all the same.
        """
        for owner, seqs in superseded.items():
            file = self.find_file(owner) if seqs else None
            if file is None:
                continue
            try:
                # Another program may have removed some of them meanwhile.
                file.delete_memories(seqs, is_missing_ok=True)
            except StoreError as error:
                ids = ", ".join(map(memory_id, sorted(seqs)))
                raise StoreError(STILL_THERE.format(ids=ids, error=error)) from error

    def add(self, file: NotesFile, owner: Owner, notes: Sequence[Memory], *, floor: int) -> Sequence[Memory]:
        """Add notes with ids above `floor`, remove the collected notes they correct in the same step, and trust them.

        Raises: Invalid, StoreError; NotFound when a corrected note has gone meanwhile.
        """
        pending = (self._pending.superseded or {}).get(owner, set())
        replacing = pending & {memory_seq(note.supersedes) for note in notes if note.supersedes is not None}
        added = file.add_memories(notes, keep=self._max_notes, floor=floor, replacing=replacing)
        pending -= replacing
        if added:
            self.approve(file, owner, added)
            self._trust.drop_missing(owner, file.seqs(), spare=SPARE)
        return added

    def approve(self, file: NotesFile, owner: Owner, notes: Sequence[Memory]) -> None:
        """Trust the current text of these notes."""
        self._trust.trust_notes(owner, notes, through=file.trust.through)

    def approve_all(self, file: NotesFile, owner: Owner) -> int:
        """Trust all notes that count as imports; return how many there were."""
        notes = [note for note in file.all() if note.origin is Origin.IMPORT]
        self.approve(file, owner, notes)
        return len(notes)

    def erase(self, file: NotesFile, owner: Owner, seqs: Collection[int], lines: Collection[str]) -> int:
        """Remove notes, damaged lines and the hashes of missing notes; return how many of the notes existed."""
        count = file.erase(seqs, lines)
        self._trust.drop_missing(owner, file.seqs())
        return count

    def find(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Return the notes that exist, by number."""
        file = self.find_file(owner)
        hidden = self.hidden(owner)
        return file.find_memories([seq for seq in seqs if seq not in hidden]) if file is not None else {}

    def find_with_file(self, owner: Owner, id: str) -> tuple[NotesFile, Memory] | None:
        """Return the file and the note with this id."""
        file, seq = self.find_file(owner), memory_seq(id) or 0
        if file is None or seq in self.hidden(owner):
            return None
        note = file.find_memories([seq]).get(seq)
        return None if note is None else (file, note)

    def find_same(self, owner: Owner, text: str) -> Memory | None:
        """Return the newest note with the same text, up to case and white space."""
        expected = content_hash(text)
        return next((note for note in self.all(owner) if content_hash(note.text) == expected), None)

    def all(self, owner: Owner) -> Sequence[Memory]:
        """Return every note, newest first."""
        file, hidden = self.find_file(owner), self.hidden(owner)
        return [note for note in file.all() if memory_seq(note.id) not in hidden] if file is not None else []

    def all_of_tenant(self, tenant: str) -> Sequence[Memory]:
        """Return every note, newest first, if the agent that has the file belongs to this tenant. Claim nothing."""
        owner = self.find_claimant()
        return self.all(owner) if owner is not None and owner.tenant == tenant else []

    def find_index(self, owner: Owner) -> OwnerIndex | None:
        """Return the search index of every note; None if this agent does not have the file."""
        file = self.find_file(owner)
        return self._index.current(file.live()) if file is not None else None

    def forget_cached(self) -> None:
        """Drop what the search index holds in memory."""
        self._index.forget()

    def close(self) -> None:
        """Collect late lines of other programs, and close the files."""
        for file in self._files.values():
            file.close()

    def _find_trust(self, owner: Owner, file: NotesFile) -> NoteTrust:
        known = self._trust.find(owner)
        if known is None:
            highest = max((memory_seq(note.id) or 0 for note in file.all()), default=0)
            known = self._trust.register(owner, highest)
        return known

    def hidden(self, owner: Owner) -> Collection[int]:
        """Return the numbers of notes that the transaction on this thread has superseded."""
        return (self._pending.superseded or {}).get(owner.whole, ())


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
