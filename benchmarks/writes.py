"""What `remember`, `remember_many` and `log_turn` cost a program that calls them, with the default settings.

Times are of the processor, so a busy machine changes little. What a commit waits for the disk is added to both sides: a
tenth of a millisecond for a quick disk, two and a half for a slow one. Each side makes one fsync for each commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

from benchmarks.corpus import sentences
from benchmarks.floors import BareSqlite, BareTranscript
from benchmarks.measure import Line, best_of_turns, processor_seconds
from recollect import AgentMemory, Recollect, Settings

WARM = 1_000
PER_TURN = 50
TURNS = 30
THREADS = 16
BULK = 10_000
QUICK, SLOW = 0.0001, 0.0025
"""Seconds of an fsync."""

LONG, SHORT = 5_000, 50
"""Turns of conversations."""

_WORDS = """the customer asked about a refund for the blue order that arrived late in Berlin because Anna moved from
Hamburg last week and prefers email over phone contact when possible please call back tomorrow after lunch""".split()


def measured(folder: Path) -> Iterator[Line]:
    with Recollect(settings=Settings(url=f"sqlite:///{folder / 'writes.db'}")) as recollect:
        yield from _remember(recollect.agent("atlas"), BareSqlite(folder / "writes-floor.db"))
        yield from _remember_from_threads(recollect.agent("team"))
        yield from _remember_many(recollect.agent("bulk"))
        yield from _log_turn(recollect.agent("talk"), BareTranscript(folder / "turns-floor.db"))


def _remember(agent: AgentMemory, floor: BareSqlite) -> Iterator[Line]:
    texts = _sentences()
    agent.remember_many([next(texts) for _ in range(WARM)])
    floor.add_many([next(texts) for _ in range(WARM)])
    ours, least = _least([lambda: agent.remember(next(texts)), lambda: floor.add(next(texts))])
    for fsync, most, disk in ((QUICK, 2.5, "quick"), (SLOW, 1.2, "slow")):
        yield _ratio(f"remember a note, {disk} disk", ours + fsync, least + fsync, most)
    yield Line("remember a note, of the processor", _ms(ours), _ms(least), ours / least, "<= 0.5 ms", ours <= 0.0005)


def _remember_from_threads(agent: AgentMemory) -> Iterator[Line]:
    texts = _sentences()

    def one() -> None:
        for _ in range(PER_TURN):
            agent.remember(next(texts))

    def many() -> None:
        threads = [threading.Thread(target=one) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    alone, together = best_of_turns([one, many], turns=5)
    gain = alone * THREADS / together
    rates = [f"{PER_TURN / alone:,.0f}/s", f"{PER_TURN * THREADS / together:,.0f}/s"]
    yield Line(f"remember from {THREADS} threads, against one", rates[1], rates[0], gain, ">= 2.5", gain >= 2.5)


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
        lambda: agent.conversation("long", limit=50),
        lambda: agent.conversation("short", limit=50),
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
