"""A log of 100 MB: what it costs in memory to store and read it, and how long any part of it takes."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import Line, seconds
from wellkept import Settings, Wellkept

MEGABYTE = 1_000_000
SIZE = 100 * MEGABYTE
PAGES = 200
TURNS = 5
MOST_MEMORY = 32
LONGEST_PAGE = 0.020
LINE = "2026-03-01T12:00:00Z worker-{:02} INFO request {:010} handled in {:3} ms, status 200, path /api/items/{:05}\n"


def log() -> Iterator[str]:
    """About 100 MB, in parts."""
    chance, number, written = random.Random(7), 0, 0
    while written < SIZE:
        numbers = range(number, number + 10_000)
        part = "".join(
            LINE.format(chance.randrange(16), each, chance.randrange(999), chance.randrange(99_999)) for each in numbers
        )
        yield part
        number, written = number + 10_000, written + len(part)


def measured(folder: Path) -> Iterator[Line]:
    url = f"sqlite:///{folder / 'details.db'}"
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.details", url], capture_output=True, text=True, check=True
    )
    key, took, memory, iterated = child.stdout.split()
    yield Line(
        "storing a log of 100 MB, memory beyond what a short one takes",
        f"{memory} MB, {float(took):.1f} s",
        f"{float(iterated):.1f} s (making the text)",
        float(took) / float(iterated),
        f"<= {MOST_MEMORY} MB",
        int(memory) <= MOST_MEMORY,
    )
    with Wellkept(url, settings=Settings(embedder="off")) as store:
        yield from _reading(store, key)


def _reading(store: Wellkept, key: str) -> Iterator[Line]:
    agent, chance = store.agent(), random.Random(3)
    total = agent.details.read(key).total
    short = agent.details.store(LINE.format(1, 1, 1, 1) * 100).key
    floor = min(seconds(lambda: agent.details.read(short)) for _ in range(PAGES))
    parts: dict[str, list[dict[str, Any]]] = {
        "any page": [{"offset": chance.randrange(total)} for _ in range(PAGES)],
        "any 50 lines": [{"lines": f"{first}-{first + 50}"} for first in chance.sample(range(1, 900_000), PAGES)],
        "the last lines": [{"tail": count} for count in range(1, PAGES)],
    }
    for what, wanted in parts.items():
        times = [min(seconds(partial(agent.details.read, key, **each)) for _ in range(TURNS)) for each in wanted]
        yield Line(
            f"reading {what} of a log of 100 MB, the longest of {PAGES}",
            f"{max(times) * 1000:.1f} ms",
            f"{floor * 1000:.1f} ms (of 10 KB)",
            max(times) / floor,
            f"<= {LONGEST_PAGE * 1000:.0f} ms",
            max(times) <= LONGEST_PAGE,
        )
    took = min(seconds(lambda: agent.details.read(key, grep="no such words")) for _ in range(3))
    walked = min(seconds(lambda: _walk(store, key)) for _ in range(3))
    yield Line(
        "looking through all of a log of 100 MB",
        f"{took:.2f} s",
        f"{walked:.2f} s (unpacking it)",
        took / walked,
        "<= 5",
        took / walked <= 5,
    )


def _walk(store: Wellkept, key: str) -> None:
    agent = store.agent()
    total = agent.details.read(key).total
    for offset in range(0, total, MEGABYTE):
        agent.details.read(key, offset=offset, limit=MEGABYTE)


def main(url: str) -> None:
    """In a process of its own, whose memory is its own."""
    with Wellkept(url, settings=Settings(embedder="off")) as store:
        agent = store.agent()
        agent.details.read(agent.details.store(part for part, _ in zip(log(), range(2), strict=False)).key, tail=3)
        iterated = seconds(lambda: sum(map(len, log())))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        keys: list[str] = []
        took = seconds(lambda: keys.append(agent.details.store(log(), description="long log").key))
        for part in ({"offset": SIZE // 2}, {"tail": 50}, {"lines": "500000-500050"}):
            agent.details.read(keys[0], **part)
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(keys[0], took, memory, iterated)


if __name__ == "__main__":
    main(sys.argv[1])
