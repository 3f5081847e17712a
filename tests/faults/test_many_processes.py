"""Several processes on one SQLite file: nothing is lost, and all see what any of them wrote."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, note, owner, seqs
from tests.processes import CLEAN
from wellkept.model import Kind

PROCESSES = 4
WRITES = 50
SHARED = owner("ann", tenant="shared")


def write_many(url: str, name: str, gate: Barrier, said: Any) -> None:
    """What each process does: write, edit one in ten, and say what it did."""
    store = Place("sqlite", url).open()
    gate.wait()
    for number in range(WRITES):
        memory = store.add_memory(note(f"{name}x{number}", SHARED))
        if number % 10 == 0:
            memory = store.update_memory(replace(memory, text=f"{name}y{number}"), replaced_at=NOW)
        said.put((memory.id, memory.text))
    store.close()


def test_four_processes_write_one_file_and_a_fifth_sees_it_all(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    watching = Place("sqlite", url).open()
    assert watching.search_memories(SHARED, "p0x0", kinds=[Kind.NOTE], now=NOW) == []
    gate, said = CLEAN.Barrier(PROCESSES, timeout=100), CLEAN.Queue()
    processes = [CLEAN.Process(target=write_many, args=(url, f"p{number}", gate, said)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    acknowledged = []
    for _ in range(PROCESSES * WRITES):
        id, text = said.get(timeout=100)
        acknowledged.append((id, text))
        if len(acknowledged) % 20 == 0:  # while the others go on writing
            found = watching.search_memories(SHARED, text, kinds=[Kind.NOTE], now=NOW)
            assert [f"m-{seq}" for seq in seqs(found)] == [id]
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert len({id for id, _ in acknowledged}) == PROCESSES * WRITES
    stored = watching.list_memories(SHARED, now=NOW, limit=1000)
    assert sorted((memory.id, memory.text) for memory in stored) == sorted(acknowledged)
    for id, text in acknowledged:
        assert [f"m-{seq}" for seq in seqs(watching.search_memories(SHARED, text, kinds=[Kind.NOTE], now=NOW))] == [id]
    watching.close()
