"""Many writers share one commit, and nothing else: not their failures, not a full disk, not the end of the store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, ids, note, owner, texts
from wellkept.errors import Conflict, StoreBusy, StoreError
from wellkept.model import Owner
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore

ROOT = Path(__file__).parent.parent.parent
THREADS = 16


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("sqlite", f"sqlite:///{tmp_path / 'memory.db'}")


def run_child(program: str, *arguments: str) -> str:
    """What a fresh Python prints; its warnings are its own."""
    command = [sys.executable, "-c", program, *arguments]
    child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert child.returncode == 0, child.stderr
    return child.stdout


class Stop(BaseException):
    """As unlike an ordinary error as can be."""


@pytest.mark.parametrize(
    "failure", [Conflict("mine"), ValueError("mine"), Stop("mine")], ids=lambda each: type(each).__name__
)
def test_a_failing_writer_takes_nobody_with_it(place: Place, ann: Owner, failure: BaseException) -> None:
    store = place.open()

    def fail() -> None:
        store.add_memory(note("fails", ann))
        raise failure

    def write(number: int) -> str:
        if number % 4:
            return store.add_memory(note(f"note {number}", ann)).text
        with pytest.raises(type(failure), match="mine"):
            store.transaction(ann.tenant, fail)
        return ""

    with ThreadPoolExecutor(THREADS) as threads:
        written = [text for text in threads.map(write, range(200)) if text]

    assert sorted(texts(store.list_memories(ann, now=NOW, limit=1000))) == sorted(written)
    assert len(written) == 150
    store.close()


def test_a_write_the_database_refuses_takes_nobody_with_it(place: Place, ann: Owner) -> None:
    store = place.open()

    def write(number: int) -> bool:
        importance = float("nan") if number % 4 == 0 else 0.5  # refused when the row is written
        try:
            store.add_memory(note(f"note {number}", ann, importance=importance))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as threads:
        assert sum(threads.map(write, range(200))) == 150
    assert ids(store.list_memories(ann, now=NOW, limit=1000)) == [f"m-{number}" for number in range(150, 0, -1)]
    store.close()


def test_each_thread_is_told_its_own_outcome(place: Place, ann: Owner) -> None:
    store = place.open()

    with ThreadPoolExecutor(THREADS) as threads:
        jobs = {threads.submit(store.add_memory, note(f"note {number}", ann)): number for number in range(100)}
        for job in as_completed(jobs):
            assert job.result().text == f"note {jobs[job]}"
    store.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda store, ann: store.add_memory(note("late", ann)),
        lambda store, ann: store.list_memories(ann, now=NOW),
        lambda store, ann: store.transaction(ann.tenant, lambda: None),
        lambda store, ann: store.search_memories(ann, "late", kinds=["note"], now=NOW),
    ],
    ids=["write", "read", "transaction", "search"],
)
def test_a_closed_store_says_so(place: Place, ann: Owner, call: Callable[[SqlStore, Owner], object]) -> None:
    store = place.open()
    store.close()
    store.close()

    with pytest.raises(StoreError, match="This store is closed"):
        call(store, ann)


def test_closing_ends_every_writer_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    for attempt in range(20):
        place, ann = Place("sqlite", f"sqlite:///{tmp_path / f'{attempt}.db'}"), owner()
        store = place.open()
        acknowledged: list[Any] = []

        def write(store: SqlStore = store, ann: Owner = ann, acknowledged: list[str] = acknowledged) -> None:
            try:
                while True:
                    acknowledged.append(store.add_memory(note("a", ann)).id)
            except StoreError:
                return

        threads = [threading.Thread(target=write, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        threading.Event().wait(0.001 * attempt)
        store.close()
        for thread in threads:
            thread.join(100)

        assert not [thread for thread in threads if thread.is_alive()], "a writer waits for ever"
        again = place.open()
        assert sorted(ids(again.list_memories(ann, now=NOW, limit=100_000))) == sorted(acknowledged)
        again.close()


FORK = """
import os, sys
from wellkept.errors import StoreError
from tests.conformance.conftest import Place
from tests.conformance.examples import NOW, note, owner

store, ann = Place("", sys.argv[1]).open(), owner()
store.add_memory(note("before", ann))
if os.fork() == 0:
    for call in (lambda: store.add_memory(note("child", ann)), lambda: store.list_memories(ann, now=NOW)):
        try:
            call()
        except StoreError as error:
            os.write(1, f"{error}\\n".encode())
    store.close()
    os._exit(0)
os.wait()
store.add_memory(note("after", ann))
os.write(1, repr([memory.text for memory in store.list_memories(ann, now=NOW)]).encode())
store.close()
"""


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_forked_child_is_refused_with_a_sentence(engine: str, place: Place, request: pytest.FixtureRequest) -> None:
    url = place.url if engine == "sqlite" else request.getfixturevalue("postgres_url")

    said = run_child(FORK, url).splitlines()

    sentence = "This store was opened before a fork; open a new one in the child process."
    assert said == [sentence, sentence, "['after', 'before']"]


FULL = """
import json, resource, sys
from wellkept.errors import StoreError
from tests.conformance.conftest import Place
from tests.conformance.examples import note, owner

store, ann = Place("", sys.argv[1]).open(), owner("ann", tenant="full")
acknowledged = []
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, most))
try:
    while True:
        acknowledged.append(store.add_memory(note("word " * 200, ann)).id)
except StoreError as error:
    said = [type(error).__name__, str(error)]
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
afterwards = store.add_memory(note("afterwards", ann)).id
store.close()
print(json.dumps([acknowledged, said, afterwards]))
"""


def test_a_full_disk_fails_the_write_and_loses_nothing_acknowledged(place: Place) -> None:
    acknowledged, (kind, sentence), afterwards = json.loads(run_child(FULL, place.url))

    assert kind == "DiskFull"
    assert "disk" in sentence
    assert "full" in sentence
    assert len(acknowledged) > 20
    store = place.open()
    stored = ids(store.list_memories(owner("ann", tenant="full"), now=NOW, limit=10_000))
    assert stored == [*reversed([*acknowledged, afterwards])]
    store.close()


def test_a_busy_file_is_a_reason_to_try_again(place: Place, ann: Owner) -> None:
    holding, waiting = place.open(), open_store(place.url, busy_timeout=0.2, pool_size=1, index_cache_mb=1)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        leave.wait(100)

    holder = threading.Thread(target=holding.transaction, args=(ann.tenant, hold))
    holder.start()
    assert inside.wait(100)
    with pytest.raises(StoreBusy) as caught:
        waiting.add_memory(note("now", ann))
    leave.set()
    holder.join()

    assert (caught.value.retry_after or 0) > 0
    assert waiting.add_memory(note("then", ann)).id == "m-1"
    waiting.close()
    holding.close()
