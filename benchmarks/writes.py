"""What `remember`, `remember_many` and `log_turn` cost a program that calls them, with the default settings.

Times are of the processor, so a busy machine changes little. What a commit waits for the disk is added to both sides: a
tenth of a millisecond for a quick disk, two and a half for a slow one. Each side makes one fsync for each commit.

An agent that has as many notes as it may keep deletes the oldest with each new one. The bare insert deletes nothing.
Threads are timed by the clock, on files in memory if there is such a folder, with the same waits after each commit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from random import Random

import apsw

from benchmarks.corpus import sentences
from benchmarks.floors import BareSqlite, BareTranscript
from benchmarks.measure import Line, best_of_turns, processor_seconds
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory

WARM = 1_000
PER_TURN = 50
TURNS = 30
THREADS = 16
CLOCKED_TURNS = 5
BULK = 10_000
ROOM = 400
"""Notes of an agent that stays below the limit of 500."""

PAGES_BETWEEN_CHECKPOINTS = 1_000
IN_MEMORY = Path("/dev/shm")
QUICK, SLOW = 0.0001, 0.0025
"""Seconds of an fsync."""

LONG, SHORT = 5_000, 50
"""Turns of conversations."""

_WORDS = """the customer asked about a refund for the blue order that arrived late in Berlin because Anna moved from
Hamburg last week and prefers email over phone contact when possible please call back tomorrow after lunch""".split()


def measured(folder: Path) -> Iterator[Line]:
    with Wellkept(settings=Settings(url=f"sqlite:///{folder / 'writes.db'}")) as wellkept:
        yield from _remember(wellkept, BareSqlite(folder / "writes-floor.db"))
        yield from _remember_many(wellkept.agent("bulk"))
        yield from _log_turn(wellkept.agent("talk"), BareTranscript(folder / "turns-floor.db"))
    for seconds, least, disk in ((QUICK, 2.5, "quick"), (SLOW, 6, "slow")):
        with (
            tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else folder) as own,
            _waiting_disk(seconds),
            Wellkept(settings=Settings(url=f"sqlite:///{own}/threads.db")) as wellkept,
        ):
            yield _remember_from_threads(wellkept.agent("team"), least, disk)


def _remember(wellkept: Wellkept, floor: BareSqlite) -> Iterator[Line]:
    texts, full, calls = _sentences(), wellkept.agent("full"), count()
    full.remember_many([next(texts) for _ in range(WARM)])
    floor.add_many([next(texts) for _ in range(WARM)])
    # Each agent gets fewer notes than it may keep.
    some = [wellkept.agent(f"atlas-{number}") for number in range(1 + (TURNS + 1) * PER_TURN // ROOM)]
    ours, at_limit, least = _least(
        [
            lambda: some[next(calls) // ROOM].remember(next(texts)),
            lambda: full.remember(next(texts)),
            lambda: floor.add(next(texts)),
        ]
    )
    for fsync, most, disk in ((QUICK, 2.5, "quick"), (SLOW, 1.2, "slow")):
        yield _ratio(f"remember a note, {disk} disk", ours + fsync, least + fsync, most)
        yield _ratio(f"remember a note at the limit, {disk} disk", at_limit + fsync, least + fsync, most)
    yield Line("remember a note, of the processor", _ms(ours), _ms(least), ours / least, "<= 0.5 ms", ours <= 0.0005)


@contextmanager
def _waiting_disk(seconds: float) -> Iterator[None]:
    """Let each commit of databases that are opened now wait this long, as for a disk."""

    def wait(connection: apsw.Connection, name: str, pages: int) -> int:
        time.sleep(seconds)
        # The hook takes the place of SQLite's own, which does this.
        if pages >= PAGES_BETWEEN_CHECKPOINTS:
            connection.wal_checkpoint(name)
        return apsw.SQLITE_OK

    def hook(connection: apsw.Connection) -> None:
        connection.set_wal_hook(wait)

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def _remember_from_threads(agent: AgentMemory, least: float, disk: str) -> Line:
    # Threads may share the iterator of a list, and not a generator.
    texts = iter(list(islice(_sentences(), (1 + THREADS) * PER_TURN * CLOCKED_TURNS)))

    def one() -> None:
        for _ in range(PER_TURN):
            agent.remember(next(texts))

    def many() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(one) for _ in range(THREADS)]:
                done.result()

    alone, together = best_of_turns([one, many], turns=CLOCKED_TURNS)
    gain = alone * THREADS / together
    rates = [f"{PER_TURN / alone:,.0f}/s", f"{PER_TURN * THREADS / together:,.0f}/s"]
    what = f"remember from {THREADS} threads, against one, {disk} disk"
    return Line(what, rates[1], rates[0], gain, f">= {least:g}", gain >= least)


def _remember_many(agent: AgentMemory) -> Iterator[Line]:
    texts = [{"text": text, "kind": "episode"} for text in sentences(BULK)]
    rate = BULK / min(processor_seconds(lambda: agent.remember_many(texts)) for _ in range(3))
    yield Line("remember_many, a second of the processor", f"{rate:,.0f}/s", "", 1, ">= 5,000/s", rate >= 5_000)


def _log_turn(agent: AgentMemory, floor: BareTranscript) -> Iterator[Line]:
    texts = _sentences()
    ours, least = _least(
        [
            lambda: agent.log_turn("s", user=next(texts), assistant=next(texts)),
            lambda: floor.add(next(texts), next(texts)),
        ]
    )
    yield _ratio("log_turn, quick disk", ours + QUICK, least + QUICK, 2)
    for session, turns in (("long", LONG), ("short", SHORT)):
        for _ in range(turns):
            agent.log_turn(session, user=next(texts), assistant=next(texts))
    read: list[Callable[[], object]] = [
        lambda: agent.sessions.conversation("long", limit=50),
        lambda: agent.sessions.conversation("short", limit=50),
    ]
    ours, least = _least(read)
    yield _ratio(f"the newest 50 of {2 * LONG:,} messages, against of {2 * SHORT}", ours, least, 1.5)


def _least(works: list[Callable[[], object]]) -> list[float]:
    """Return the seconds of the processor that a call takes in its best turn; the calls take turns."""

    def repeat(work: Callable[[], object]) -> None:
        for _ in range(PER_TURN):
            work()

    for work in works:
        repeat(work)
    times = [[processor_seconds(lambda work=work: repeat(work)) for work in works] for _ in range(TURNS)]  # type: ignore[misc]
    return [min(column) / PER_TURN for column in zip(*times, strict=True)]


def _sentences() -> Iterator[str]:
    """Yield different English sentences without end."""
    draw = Random(1)
    return (f"{' '.join(draw.choices(_WORDS, k=14))} number {number}." for number in count())


def _ratio(what: str, ours: float, floor: float, most: float) -> Line:
    return Line(what, _ms(ours), _ms(floor), ours / floor, f"<= {most:g}", ours <= most * floor)


def _ms(each: float) -> str:
    return f"{each * 1000:.3f} ms"
