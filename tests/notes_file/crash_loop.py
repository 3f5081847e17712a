"""Kill writers again and again, and look for lost notes, deleted ones that came back, and ids given twice.

python -m tests.notes_file.crash_loop --cycles 100
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.notes_file.workers import ANN, KEEP, note
from tests.processes import CLEAN
from wellkept.store.notes.file import NotesFile

WRITERS = 2


@dataclass
class Known:
    """What the writers were told, and what they had begun."""

    there: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    acknowledged: int = 0

    def take(self, words: list[str], begun: dict[str, str]) -> None:
        """One line of a writer's report; `begun` are the notes whose removal is not yet acknowledged."""
        match words:
            case ["added", id, text]:
                assert id not in self.given, f"{id} was given twice"
                self.given.add(id)
                self.there[id] = text
                self.acknowledged += 1
            case ["deleting", id]:
                begun[id] = self.there.pop(id)
            case ["deleted", id]:
                del begun[id]
                self.gone.add(id)
                self.acknowledged += 1

    def check(self, notes: NotesFile) -> None:
        found = {memory.id: memory.text for memory in notes.all()}
        lost = {id: text for id, text in self.there.items() if found.get(id) != text}
        assert not lost, f"lost: {lost}"
        assert not self.gone & set(found), f"came back: {self.gone & set(found)}"
        assert notes.last_seq() >= max((int(id[2:]) for id in self.given), default=0)


def write(workspace: Path, seed: int, out: Connection) -> None:
    """Add and delete until killed, saying so before and after."""

    def say(*words: str) -> None:
        os.write(out.fileno(), (" ".join(words) + "\n").encode())

    notes, dice, mine = NotesFile(workspace, ANN, busy_timeout=60), random.Random(seed), []
    while True:
        count = dice.choice((1, 1, 1, 3))
        texts = [f"{seed}/{dice.random()}" for _ in range(count)]
        for memory in notes.add_memories([note(text) for text in texts], keep=KEEP):
            say("added", memory.id, memory.text)
            mine.append(memory.id)
        while len(mine) > 5 or (mine and dice.random() < 0.4):
            id = mine.pop(dice.randrange(len(mine)))
            say("deleting", id)
            notes.delete_memory(id)
            say("deleted", id)


class Writer:
    """A process that writes until it is killed, and what it says."""

    def __init__(self, workspace: Path, seed: int) -> None:
        self._reports, out = CLEAN.Pipe(duplex=False)
        self._process = CLEAN.Process(target=write, args=(workspace, seed, out), daemon=True)
        self._process.start()
        out.close()

    def wait_for_work(self) -> None:
        self._reports.poll(None)

    def work_for(self, seconds: float) -> None:
        """Let it work for a while, or until it ends by itself."""
        self._process.join(seconds)

    def kill(self) -> None:
        self._process.kill()

    def reports(self) -> Iterator[list[str]]:
        """All it said before it died; a sentence it was killed in does not count."""
        self._process.join()
        said = b""
        while part := os.read(self._reports.fileno(), 1 << 16):
            said += part
        self._reports.close()
        for line in said.decode().split("\n")[:-1]:
            yield line.split()


def run(workspace: Path, cycles: int, *, seed: int = 0) -> Known:
    """Each cycle: writers start, work for a moment, and are killed; then everything they were told must be true."""
    known, dice = Known(), random.Random(seed)
    for cycle in range(cycles):
        writers = [Writer(workspace, seed + cycle * WRITERS + number) for number in range(WRITERS)]
        for writer in writers:
            writer.wait_for_work()
        writers[0].work_for(dice.uniform(0, 0.1))
        for writer in writers:
            writer.kill()
        begun: dict[str, str] = {}
        for writer in writers:
            for words in writer.reports():
                known.take(words, begun)
        notes = NotesFile(workspace, ANN)
        known.check(notes)
        found = {memory.id: memory.text for memory in notes.all()}
        known.there = found  # also what was written but not acknowledged: from now on it must stay
        known.given |= set(found)
        assert not notes.damaged(), notes.damaged()
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as workspace:
        known = run(Path(workspace), arguments.cycles, seed=arguments.seed)
    print(f"{arguments.cycles} cycles, {known.acknowledged} acknowledged writes, {len(known.gone)} deletions: all kept")


if __name__ == "__main__":
    main()
