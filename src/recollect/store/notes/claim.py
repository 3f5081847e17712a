"""Whose notes a workspace's file holds.

A line of the file names no agent, and agents do not read each other's notes. So the first agent that uses the file has
it to itself, by a small file beside it; the notes of any other agent stay in the database.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from recollect.model import Owner
from recollect.store.notes.disk import FILE_NAME, FOLDERS, OWNER_ONLY_FILE, OWNER_ONLY_FOLDER, place_in, regular, told

CLAIM = "memories.agent"
MAX_CLAIM_CHARS = 1000


def is_claimed_by(workspace: Path, owner: Owner, *, is_writing: bool) -> bool:
    """Return True if the workspace's notes are this agent's. Claim them if they are nobody's and there is something
    to claim.

    Raises: StoreError.
    """
    with told(workspace.joinpath(*FOLDERS, FILE_NAME), doing="used"):
        return _is_claimed_by(workspace, owner, is_writing=is_writing)


def _is_claimed_by(workspace: Path, owner: Owner, *, is_writing: bool) -> bool:
    place = place_in(workspace)
    claim, name = place.folder / CLAIM, f"{owner.tenant}/{owner.agent}\n"
    if (found := _read_claim(claim)) is not None:
        return found == name
    if not is_writing and not place.file.exists():
        return False
    # `mkdir(parents=True)` would give the outer folder default rights.
    for folder in reversed(place.folders[:-1]):
        folder.mkdir(OWNER_ONLY_FOLDER, exist_ok=True)
    draft = place.folder / f".{CLAIM}.{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, OWNER_ONLY_FILE), "w", encoding="utf-8") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, claim)  # unlike a rename it fails if somebody was first, and like one it is never seen half done
    except FileExistsError:
        return _read_claim(claim) == name
    finally:
        draft.unlink()
    return True


def claimant(workspace: Path) -> Owner | None:
    """Return the agent the workspace's notes belong to, or None. Claim nothing.

    Raises: StoreError.
    """
    with told(workspace.joinpath(*FOLDERS, FILE_NAME), doing="used"):
        found = _read_claim(place_in(workspace).folder / CLAIM)
    if found is None:
        return None
    tenant, _, agent = found.rstrip("\n").partition("/")
    return Owner(tenant, agent)


def _read_claim(claim: Path) -> str | None:
    """Return the content of the claim file, or None if there is none. Never follow a link to another file."""
    try:
        fd = os.open(claim, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, encoding="utf-8") as file:
        regular(fd)
        return file.read(MAX_CLAIM_CHARS)
