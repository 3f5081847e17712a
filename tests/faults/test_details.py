"""Texts of details in a SQLite file: what a kill, a full disk and a crowd leave behind."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.conformance.examples import LATER, add_detail, detail
from tests.conformance.test_details import LONG, whole
from tests.processes import CLEAN
from wellkept.compression import zstd
from wellkept.errors import Invalid, StoreError
from wellkept.model import Owner
from wellkept.providers.archives import read_lines
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import CHUNK_CHARS, ContentDraft, decompress_chunk

OLD_ARCHIVE = "28b52ffd04584900007b2261223a20317d0a3387dfc3"

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.proves("D4")

WRITER = """
import itertools, os, sys, threading
from pathlib import Path
from tests.conformance.examples import add_detail, detail
from tests.faults.test_details import opened
from wellkept.model import Owner

store, ann = opened(Path(sys.argv[1])), Owner("crash", "ann")
numbers = itertools.count()

def store_for_ever() -> None:
    while True:
        number = next(numbers)
        key = f"{sys.argv[2]}-{number}"
        text = f"text {sys.argv[2]} {number % 7}\\n" * 20_000  # some are the same
        add_detail(store, detail(key, ann), *(text[at : at + 50_000] for at in range(0, len(text), 50_000)))
        os.write(1, f"{key}\\n".encode())
        if number % 5 == 0:
            dropped = store.delete_detail(ann, key)
            store.drop_content("crash", dropped.content_hash)

for _ in range(3):
    threading.Thread(target=store_for_ever).start()
"""


def opened(path: Path) -> SqlStore:
    return open_store(f"sqlite:///{path}", busy_timeout=100, pool_size=1, index_cache_mb=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqlStore]:
    store = opened(path)
    yield store
    store.close()


def count_texts(path: Path) -> int:
    connection = apsw.Connection(str(path))
    rows: Any = connection.execute("SELECT count(*) FROM detail_contents").fetchall()
    connection.close()
    return int(rows[0][0])


def test_a_killed_writer_leaves_no_detail_without_its_text(path: Path) -> None:
    ann, heard = Owner("crash", "ann"), 0
    for life in range(4):
        command = [sys.executable, "-c", WRITER, str(path), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(3 + 5 * life)]
            child.kill()
            lines += child.stdout.readlines()
        heard += len(lines)
        store = opened(path)
        stored = store.list_details(ann, limit=10_000)
        acknowledged = {line.decode().strip() for line in lines if line.endswith(b"\n")}
        assert {key for key in acknowledged if int(key.partition("-")[2]) % 5} <= {each.key for each in stored}
        for each in stored:
            text = whole(store.open_content(ann, each.key))
            life_of, number = each.key.split("-")
            assert text == f"text {life_of} {int(number) % 7}\n" * 20_000
        store.close()
    assert heard >= 12


def test_a_killed_draft_leaves_nothing_and_a_living_one_is_not_swept(store: SqlStore, path: Path, ann: Owner) -> None:
    add_detail(store, detail("kept", ann), "kept")
    script = (
        "import os, sys; from pathlib import Path; from wellkept.store.tables.details import ContentDraft; "
        "draft = ContentDraft(); draft.feed('x' * 500_000); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], cwd=ROOT, check=False).returncode == 9
    living = ContentDraft()
    living.feed(LONG)

    assert store.sweep_contents(ann.tenant, stored_before=LATER) == 0
    store.add_detail(detail("late", ann), living)
    living.close()

    assert whole(store.open_content(ann, "late")) == LONG
    assert count_texts(path) == 2
    assert {each.name for each in path.parent.iterdir()} <= {"memory.db", "memory.db-wal", "memory.db-shm"}


def test_only_the_chunk_that_is_damaged_cannot_be_read(store: SqlStore, path: Path, ann: Owner) -> None:
    add_detail(store, detail("spoilt", ann), LONG)
    add_detail(store, detail("sound", ann), "sound")
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE detail_chunks SET frame = substr(frame, 2) WHERE position = 0 AND length(frame) > 1000")
    connection.close()

    content = store.open_content(ann, "spoilt")
    with pytest.raises(StoreError, match=r"is damaged in the store\. Other details are whole; store this one again"):
        content.chunk(0)
    assert content.chunk(1) == LONG[CHUNK_CHARS : 2 * CHUNK_CHARS]
    assert whole(store.open_content(ann, "sound")) == "sound"
    add_detail(store, detail("again", ann), LONG)
    assert whole(store.open_content(ann, "again")) == whole(store.open_content(ann, "spoilt")) == LONG


def test_what_the_package_zstandard_wrote_can_be_read(tmp_path: Path) -> None:
    """Read files of earlier releases, byte by byte."""
    archive = tmp_path / "archive.zst"
    archive.write_bytes(bytes.fromhex(OLD_ARCHIVE) * 2)

    assert [line for line, _ in read_lines(archive, max_bytes=100)] == [b'{"a": 1}\n'] * 2
    archive.write_bytes(bytes.fromhex(OLD_ARCHIVE)[:-2])
    with pytest.raises(Invalid, match="cut off or damaged"):
        list(read_lines(archive, max_bytes=100))


def test_the_largest_chunk_can_be_read_and_a_larger_frame_is_refused() -> None:
    def compress(text: str) -> bytes:
        return bytes(zstd.compress(text.encode()))

    assert decompress_chunk(compress("🦉" * CHUNK_CHARS), chars=CHUNK_CHARS) == "🦉" * CHUNK_CHARS
    for frame in (compress("🦉" * CHUNK_CHARS + "x" * 9), compress("x")[:-1]):
        with pytest.raises(StoreError, match="is damaged"):
            decompress_chunk(frame, chars=CHUNK_CHARS)


def test_a_text_swept_between_its_writing_and_its_row_is_put_back(store: SqlStore, path: Path, ann: Owner) -> None:
    store.delete_detail(ann, add_detail(store, detail("other", ann), "the same").key)
    draft = ContentDraft()
    draft.feed("the same")
    draft.seal()
    assert store.sweep_contents(ann.tenant, stored_before=LATER + timedelta(days=36500)) == 1

    store.add_detail(detail("late", ann), draft)
    draft.close()
    assert whole(store.open_content(ann, "late")) == "the same"


def test_a_thousand_who_store_the_same_at_once_store_it_once(store: SqlStore, path: Path, ann: Owner) -> None:
    with ThreadPoolExecutor(32) as threads:
        added = list(
            threads.map(lambda number: add_detail(store, detail(f"d-{number}", ann), LONG[:9000]), range(1000))
        )

    assert len({each.content_hash for each in added}) == 1
    assert count_texts(path) == 1
    assert len(store.list_details(ann, limit=2000)) == 1000
    assert {whole(store.open_content(ann, each.key)) for each in added[::100]} == {LONG[:9000]}


def refuses_what_does_not_fit(path: str, owner: Owner) -> None:
    """In a process whose files may have 600 KB: the database has room for a row, a text of random letters has none."""
    store = opened(Path(path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    with pytest.raises(StoreError, match="the disk may be full, or a file as large as this process may make it"):
        add_detail(store, detail("big", owner), os.urandom(1_000_000).hex())
    add_detail(store, detail("small", owner), "fits")
    store.close()


def test_a_text_that_does_not_fit_on_the_disk_is_refused(path: Path, ann: Owner) -> None:
    opened(path).close()
    child = CLEAN.Process(target=refuses_what_does_not_fit, args=(str(path), ann))
    child.start()
    child.join()

    assert child.exitcode == 0
    store = opened(path)
    assert [each.key for each in store.list_details(ann)] == ["small"]
    assert count_texts(path) == 1
    store.close()


MEASURED = """
import re, sys
from pathlib import Path
from wellkept import Wellkept

def most():  # of this program; what getrusage tells begins with that of the program which started it
    return int(re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[0])

path, megabytes = Path(sys.argv[1]), 30
line = "2026-03-01T12:00:00Z worker INFO request {:09} handled in 12 ms, status 200, all is well, no news is good\\n"
def lines():
    number = 0
    for _ in range(megabytes):
        yield "".join(line.format(number + each) for each in range(10_000))
        number += 10_000
with Wellkept(f"sqlite:///{path}") as store:
    ann = store.agent("ann")
    for key in [ann.details.store("warm up\\n" * 100_000).key]:
        ann.details.read(key, grep="warm"), ann.details.read(key, tail=3)
    before = most()
    detail = ann.details.store(lines(), description="a long log")
    assert detail.size > 30_000_000, detail.size
    for part in ({"offset": 15_000_000}, {"tail": 100}, {"lines": "150000-150100"}, {"grep": "000123456"}):
        assert "request" in ann.details.read(detail.key, **part).content
    print((most() - before) // 1024)
"""


@pytest.mark.proves("D3")
def test_a_long_log_is_stored_and_read_in_little_memory(path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert int(child.stdout) < 20  # megabytes, for a text of more than thirty
