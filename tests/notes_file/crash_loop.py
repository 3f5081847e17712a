"""Kill writers again and again, and look for lost notes, deleted ones that came back, and ids given twice.

python -m tests.notes_file.crash_loop --cycles 100
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from recollect.store.notes_file import NotesFile
from tests.notes_file.workers import ANN, KEEP, note

WRITERS = 2
ROOT = Path(__file__).resolve().parents[2]


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


def write(workspace: Path, seed: int) -> None:
    """Add and delete until killed, saying so before and after."""
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


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


def start(workspace: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.notes_file.crash_loop", "--write", str(workspace), "--seed", str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def run(workspace: Path, cycles: int, *, seed: int = 0) -> Known:
    """Each cycle: writers start, work for a moment, and are killed; then everything they were told must be true."""
    known, dice = Known(), random.Random(seed)
    for cycle in range(cycles):
        writers = [start(workspace, seed + cycle * WRITERS + number) for number in range(WRITERS)]
        first = [writer.stdout.readline() for writer in writers if writer.stdout]  # they are at work
        time.sleep(dice.uniform(0, 0.06))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        begun: dict[str, str] = {}
        for line, writer in zip(first, writers, strict=True):
            rest, _ = writer.communicate()
            for report in (line + rest).splitlines(keepends=True):
                if report.endswith("\n"):
                    known.take(report.split(), begun)
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
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write, arguments.seed)
    with tempfile.TemporaryDirectory() as workspace:
        known = run(Path(workspace), arguments.cycles, seed=arguments.seed)
    print(f"{arguments.cycles} cycles, {known.acknowledged} acknowledged writes, {len(known.gone)} deletions: all kept")


if __name__ == "__main__":
    main()
