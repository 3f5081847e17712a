"""Whose notes a workspace's file holds.

A line of the file names no agent, and agents do not read each other's notes. So the first agent that uses the file has
it to itself, by a small file beside it; the notes of any other agent stay in the database.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from recollect.model import Owner
from recollect.store.notes_disk import FILE_NAME, FOLDERS

CLAIM = "memories.agent"


def is_claimed_by(workspace: Path, owner: Owner, *, is_writing: bool) -> bool:
    """Whether the workspace's notes are this agent's; claims them if they are nobody's and there is something to claim.

    Raises: OSError.
    """
    folder = workspace.joinpath(*FOLDERS)
    claim, name = folder / CLAIM, f"{owner.tenant}/{owner.agent}\n"
    try:
        return claim.read_text("utf-8") == name
    except FileNotFoundError:
        if not is_writing and not (folder / FILE_NAME).exists():
            return False
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{CLAIM}.{uuid.uuid4().hex}"
    with draft.open("w", encoding="utf-8") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, claim)  # unlike a rename it fails if somebody was first, and like one it is never seen half done
    except FileExistsError:
        return claim.read_text("utf-8") == name
    finally:
        draft.unlink()
    return True


def claimant(workspace: Path) -> Owner | None:
    """Whose the workspace's notes are, if they are anybody's; claims nothing.

    Raises: OSError.
    """
    try:
        tenant, _, agent = workspace.joinpath(*FOLDERS, CLAIM).read_text("utf-8").rstrip("\n").partition("/")
    except FileNotFoundError:
        return None
    return Owner(tenant, agent)
