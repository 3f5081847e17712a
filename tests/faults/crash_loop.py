"""Kill a writer with SIGKILL again and again, and look for anything it said was done that is not there.

A child process writes notes from several threads: one by one, in batches, edits and deletions. It announces what it is
about to change and says what is done, one line each, on a pipe. The parent kills it at a random moment, opens the file
and compares: what was acknowledged must be there, what was only announced may be, a batch is whole or absent.

    python -m tests.faults.crash_loop --cycles 100
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np

from wellkept.model import Kind, Memory, Owner
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore

ROOT = Path(__file__).parent.parent.parent
OWNER = Owner("crash", "writer")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
VECTOR = np.full(16, 0.25, np.float32)
BATCH = 7
CYCLES_PER_FILE = 20  # then a new one, or reading it all would take most of the time
LEAST = Counter(added=100, deleted=2)  # what the first child of a file says, however long that takes
CHECKED_BY_SEARCH = 150  # of the newest: searching for each of many thousands would take most of the time


def open_file(path: Path) -> SqlStore:
    store = open_store(f"sqlite:///{path}", busy_timeout=100, pool_size=1, index_cache_mb=64)
    store.use_embedder("crash", len(VECTOR))
    return store


# --- the child


def write_for_ever(path: Path, life: str) -> None:
    """What the child does until it is killed. A memory's text is one word nobody else uses."""
    store, numbers = open_file(path), itertools.count()

    def word(kind: str) -> str:
        return f"{kind}x{life}x{next(numbers)}"

    def alone() -> None:
        memory = store.add_memory(_note(word("alone")), VECTOR)
        _say("added", memory.id, memory.text)

    def together() -> None:
        text = word("batch")
        added = store.add_memories([_note(text)] * BATCH, [VECTOR] * BATCH)
        for memory in added:
            _say("added", memory.id, text)

    def edited() -> None:
        memory = store.add_memory(_note(word("draft")), VECTOR)
        _say("added", memory.id, memory.text)
        for _ in range(3):
            wanted = replace(memory, text=word("edit"))
            _say("editing", memory.id, wanted.text)
            memory = store.update_memory(wanted, VECTOR, replaced_at=NOW)
            _say("edited", memory.id, memory.text)

    def deleted() -> None:
        memory = store.add_memory(_note(word("brief")), VECTOR)
        _say("added", memory.id, memory.text)
        _say("deleting", memory.id, memory.text)
        store.delete_memory(OWNER, memory.id)
        _say("deleted", memory.id, memory.text)

    threads = [threading.Thread(target=_repeat, args=(each,)) for each in (alone, alone, together, edited, deleted)]
    for thread in threads:
        thread.start()


def _repeat(work: Callable[[], None]) -> None:
    while True:
        work()


def _say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())  # so short a write is never torn, nor mixed with another thread's


def _note(text: str) -> Memory:
    return Memory(owner=OWNER, kind=Kind.NOTE, text=text, created_at=NOW)


# --- the parent


@dataclass
class Ledger:
    """What the children said, over all their lives."""

    texts: dict[str, str] = field(default_factory=dict)  # acknowledged, by id
    announced: dict[str, str] = field(default_factory=dict)  # edits that may or may not have happened
    leaving: set[str] = field(default_factory=set)  # deletions that may or may not have happened
    gone: set[str] = field(default_factory=set)
    last: int = 0  # the highest id known to have been given, by anybody

    def note(self, line: str) -> None:
        what, id, text = line.split()
        if what == "added":
            assert id not in self.texts, f"{id} was given twice"
            self.texts[id] = text
        elif what == "editing":
            self.announced[id] = text
        elif what == "edited":
            self.texts[id] = text
        elif what == "deleting":
            self.leaving.add(id)
        elif what == "deleted":
            self.gone.add(id)


def live_and_die(path: Path, ledger: Ledger, *, least: Counter[str], seconds: float, life: str) -> int:
    """Let a child say `least` and then write for a while, kill it, and write down what it said; how many lines."""
    command = [sys.executable, "-m", "tests.faults.crash_loop", "--write", str(path), "--life", life]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        lines: list[bytes] = []
        assert child.stdout is not None
        said: Counter[str] = Counter()
        while not said or not said >= least:
            lines.append(child.stdout.readline())
            assert lines[-1], "the child ended by itself"
            said[lines[-1].split()[0].decode()] += 1
        reader = threading.Thread(target=lines.extend, args=(child.stdout,))
        reader.start()
        reader.join(seconds)
        assert child.poll() is None, "the child ended by itself"
        child.kill()
        reader.join()
    for line in lines:
        ledger.note(line.decode())
    return len(lines)


def check(path: Path, ledger: Ledger) -> None:
    """Raises: AssertionError when something acknowledged is missing, or something is there by half."""
    before = ledger.last
    with closing(open_file(path)) as store:
        stored = {memory.id: memory for memory in every_memory(store)}
        _check_acknowledged(stored, ledger)
        _check_batches(stored)
        for memory in list(stored.values())[:CHECKED_BY_SEARCH]:
            found = store.search_memories(OWNER, memory.text, kinds=[Kind.NOTE], now=NOW, limit=BATCH + 1)
            same = [each.id for each in stored.values() if each.text == memory.text]
            assert sorted(f"m-{match.seq}" for match in found) == sorted(same), memory
        near = store.nearest_memories(OWNER, VECTOR, kinds=[Kind.NOTE], now=NOW, limit=len(stored) + 1)
        assert len(near) == len(stored)
        ledger.last = _number(store.add_memory(_note("afterwards"), VECTOR).id)
        assert ledger.last > max([before, *map(_number, stored), *map(_number, ledger.texts)])
        store.delete_memory(OWNER, f"m-{ledger.last}")
    _check_file(path)


def every_memory(store: SqlStore) -> Iterator[Memory]:
    """Newest first."""
    before = None
    while page := store.list_memories(OWNER, state=None, now=NOW, before=before, limit=1000):
        yield from page
        before = _number(page[-1].id)


def _check_acknowledged(stored: dict[str, Memory], ledger: Ledger) -> None:
    for id, text in ledger.texts.items():
        if id in ledger.gone:
            assert id not in stored, f"{id} was deleted and is back"
        elif id in stored:
            assert stored[id].text in (text, ledger.announced.get(id)), f"{id} lost an acknowledged edit"
        else:
            assert id in ledger.leaving, f"{id} was acknowledged and is lost"
    for id in ledger.leaving - set(stored):
        ledger.gone.add(id)
    ledger.texts.update({id: stored[id].text for id in ledger.texts if id in stored})


def _check_batches(stored: dict[str, Memory]) -> None:
    sizes = Counter(memory.text for memory in stored.values() if memory.text.startswith("batch"))
    assert set(sizes.values()) <= {BATCH}, "part of a batch is there"


def _check_file(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        unpaired = connection.execute(
            "SELECT count(*) FROM memories m FULL JOIN memory_index i USING (tenant_id, agent_id, seq) "
            "WHERE m.version IS NULL OR i.version IS NULL OR m.version <> i.version"
        ).fetchall()
        assert unpaired == [(0,)], "a memory without its index entry, or the other way round"
        untold = connection.execute(
            "SELECT count(*) FROM memories m WHERE version - 1 <> (SELECT count(*) FROM memory_versions v "
            "WHERE v.tenant_id = m.tenant_id AND v.agent_id = m.agent_id AND v.seq = m.seq)"
        ).fetchall()
        assert untold == [(0,)], "an edit without its history, or the other way round"


def crash_loop(folder: Path, *, cycles: int, seed: int) -> list[tuple[Path, Ledger]]:
    """Every file that was written, and what was acknowledged of it.

    Raises: AssertionError.
    """
    chance = random.Random(seed)
    files: list[tuple[Path, Ledger]] = []
    for cycle in range(cycles):
        if cycle % CYCLES_PER_FILE == 0:
            files.append((folder / f"{cycle}.db", Ledger()))
        path, ledger = files[-1]
        least = Counter() if ledger.texts else LEAST
        heard = live_and_die(path, ledger, least=least, seconds=chance.uniform(0, 0.5), life=str(cycle))
        check(path, ledger)
        print(f"cycle {cycle + 1}: {heard:,} lines heard, {len(ledger.texts):,} memories in this file, none lost")
    return files


def _number(id: str) -> int:
    return int(id.removeprefix("m-"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a writer again and again and look for lost memories.")
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="to repeat a run")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--life", default="0", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_for_ever(given.write, given.life)
        return
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory() as folder:
        files = crash_loop(Path(folder), cycles=given.cycles, seed=given.seed)
    total = sum(len(ledger.texts) for _, ledger in files)
    print(f"{given.cycles} kills, {total:,} acknowledged memories, nothing lost and nothing by half")


if __name__ == "__main__":
    main()
