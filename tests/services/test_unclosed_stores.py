"""A program that ends without closing its store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.services.conftest import START, Clock, Place
from wellkept import Settings, Wellkept
from wellkept.upkeep import background

OPENED = """import os, sys, atexit
from datetime import datetime
from wellkept import AsyncWellkept, Wellkept
from wellkept.upkeep import background
background.PAUSE = 600  # so that nothing is written before the end
"""
AT = f"clock = lambda: datetime.fromisoformat('{START.isoformat()}')\n"
RECALL = "agent.recall('tabs or spaces?')\nagent.context('which indentation?', session='s-1')\n"
PROGRAMS = {
    "kept": "store = Wellkept(sys.argv[1], clock=clock)\nagent = store.agent('atlas')\n" + RECALL,
    "let go of": "agent = Wellkept(sys.argv[1], clock=clock).agent('atlas')\n" + RECALL,
    "awaited": """
import asyncio

async def main():
    agent = AsyncWellkept(sys.argv[1], clock=clock).agent('atlas')
    await agent.recall('tabs or spaces?')
    await agent.context('tabs or spaces?', session='s-1')

asyncio.run(main())
""",
    "recalling at the very end": """
@atexit.register  # before the store does, so it is called when the store has left
def last_words():
    use(store.agent('atlas'))

def use(agent):
    agent.recall('tabs or spaces?')
    agent.context('tabs or spaces?', session='s-1')

store = Wellkept(sys.argv[1], clock=clock)
use(store.agent('bob'))
""",
    "forking": """
agent = Wellkept(sys.argv[1], clock=clock).agent('atlas')
"""
    + RECALL
    + """
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.proves("E4")
@pytest.mark.parametrize(
    ("place", "program"),
    [*(("sqlite", program) for program in PROGRAMS), ("postgres-18", "kept"), ("postgres-18", "forking")],
    indirect=["place"],
)
def test_what_was_to_be_written_a_little_later_is_written(
    place: Place, clock: Clock, program: str, tmp_path: Path
) -> None:
    with place.open(clock) as store:
        memory = store.agent("atlas").remember(f"Prefers tabs over spaces, says the {program} one").id
        store.agent("bob").remember("Prefers tabs over spaces")
        before = len(store.agent("atlas").prompts.list())

    script = OPENED + AT + PROGRAMS[program]
    ended = subprocess.run(
        [sys.executable, "-c", script, place.url],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    with place.open(clock) as store:
        assert store.agent("atlas").get(memory).last_retrieved_at == START
        assert len(store.agent("atlas").prompts.list()) == before + 1


def test_a_store_that_takes_nothing_any_more_at_the_end_is_told_of_in_one_sentence(
    fresh_place: Place, clock: Clock
) -> None:
    with fresh_place.open(clock) as store:
        store.agent("atlas").remember("Prefers tabs over spaces")
    script = OPENED + "agent = Wellkept(sys.argv[1]).agent('atlas')\nagent.recall('tabs?')\nprint()\ninput()\n"

    with subprocess.Popen(
        [sys.executable, "-c", script, fresh_place.url], text=True, stdin=PIPE, stdout=PIPE, stderr=PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        fresh_place.sql("ALTER TABLE memories RENAME COLUMN last_retrieved_at TO gone")
        _, told = running.communicate("\n", timeout=100)

    assert running.returncode == 0
    assert told.startswith("Recalled memories could not be marked as such: ")
    assert len(told.splitlines()) == 1


def test_a_store_that_can_only_be_read_is_recalled_from_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "PAUSE", 1000.0)  # it is tried here, and not by the thread at the same moment
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with Wellkept(url) as store:
        memory = store.agent("atlas").remember("Prefers tabs over spaces")
    only_to_be_read(tmp_path / "memory.db")

    with Wellkept(url, settings=Settings(context_calls_kept=0)) as store:
        hits = store.agent("atlas").recall("which indentation: tabs?")
        store.agent("atlas").context("tabs?", session="s-1")
        store._services.retrieval_marks.flush()

    assert [hit.id for hit in hits] == [memory.id]
    failed = "Recalled memories could not be marked as such"
    reason = "The database file cannot be written to; check its permissions."
    assert caplog.messages == [f"{failed}: {reason}"]


def only_to_be_read(file: Path) -> None:
    """Have SQLite refuse to write, whoever asks: what was written by a later format may only be read."""
    with file.open("r+b") as opened:
        opened.seek(18)  # the version needed to write
        opened.write(b"\x03")
