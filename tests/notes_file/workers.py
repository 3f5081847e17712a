"""What the tests of the notes file share: records, paths, and the programs that run beside the test."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from tests.conformance import examples
from wellkept.model import Memory, Owner
from wellkept.store.notes.file import NotesFile

ANN = Owner("default", "ann")
KEEP = 100_000
"""More notes than any test makes."""


def note(text: str, **changes: object) -> Memory:
    return examples.note(text, ANN, **changes)


def add(notes: NotesFile, *texts: str, keep: int = KEEP, floor: int = 0) -> Sequence[Memory]:
    return notes.add_memories([note(text) for text in texts], keep=keep, floor=floor)


def correct(notes: NotesFile, id: str, text: str) -> Sequence[Memory]:
    """Replace a note by another one, as a correction does."""
    return notes.add_memories([note(text)], keep=KEEP, replacing=[int(id[2:])])


def file_in(workspace: Path) -> Path:
    return workspace / ".aegis" / "memory" / "memories.jsonl"


def lock_in(workspace: Path) -> Path:
    return workspace / ".aegis" / "memory" / "memories.lock"


def line(seq: int | str, text: str = "a", **fields: object) -> str:
    """A line as another program might write it."""
    id = f"m-{seq}" if isinstance(seq, int) else seq
    return json.dumps({"id": id, "scope": "user", "text": text, "tags": [], "ts": "2026-02-26T12:00:00Z", **fields})


def put(workspace: Path, content: str | bytes) -> Path:
    """The file as another program left it."""
    file = file_in(workspace)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def add_and_delete(workspace: str, worker: int, rounds: int) -> tuple[list[str], list[str]]:
    """Add a note in each round and delete some of one's own; all ids given, and those still there."""
    notes, dice = NotesFile(Path(workspace), ANN, busy_timeout=60), random.Random(worker)
    given: list[str] = []
    mine: list[str] = []
    for number in range(rounds):
        id = add(notes, f"{worker}/{number}")[0].id
        given.append(id)
        mine.append(id)
        if dice.random() < 0.5:
            notes.delete_memory(mine.pop(dice.randrange(len(mine))))
    notes.close()
    return given, mine


def append_without_lock(file: str, ids: Sequence[int], written: Synchronized[int]) -> None:
    """A plain program that knows nothing of the lock, and counts its lines."""
    for id in ids:
        with open(file, "a", encoding="utf-8") as out:
            out.write(line(id, f"foreign {id}") + "\n")
        written.value += 1
        os.sched_yield()
