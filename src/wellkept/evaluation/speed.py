"""Speed of the public verbs with default settings, beside a floor that does the least with the same engine.

Ours and the floor run in turns, so that both meet the same load of the machine. The ratio compares processor time of
this process, which hardly depends on what else runs; calls per second include waiting for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Protocol

from wellkept.api.wellkept import AgentMemory

BATCH = 100
SHOWN = 5
READ = 20
MIN_TURNS = 3

_SUBJECTS = (
    "Ann|Bob|Mara|Oluwaseun|Yuki|The customer|Our team|The build server|The landlord|My sister|The vendor|Legal|"
    "Marketing|The intern|Grandmother|The plumber|Accounting|The pilot|Doctor Weiss|The neighbour|Priya|The school"
).split("|")
_VERBS = (
    "prefers|moved|cancelled|asked about|paid for|finished|postponed|approved|forgot|renamed|reviewed|lost|repaired|"
    "recommended|ordered|sold|photographed|translated|restarted|measured|inherited|painted|misplaced|scheduled"
).split("|")
_OBJECTS = (
    "the weekly report|a window seat|the billing service|oat milk|the deploy to Oslo|two spaces over tabs|the lease|"
    "the contract with Acme|a dentist appointment|the staging database|the red bicycle|piano lessons|the audit|"
    "a passport|the garden fence|an invoice over 400 euros|the login page|vegetarian meals|the night train to Vienna|"
    "a faulty sensor|the wedding cake|the backup tapes|a second monitor|the quarterly budget|the hiking boots|"
    "an allergy test|the mobile app|chess club|the coffee machine|a scholarship|the firewall rules|an old violin|"
    "the recycling bins|the search index|a parking permit|the summer house|the onboarding guide|a flu vaccine"
).split("|")
_WHEN = (
    "on Monday|last week|in May|before lunch|twice|for the third time|without a reason|after the call|at the airport|"
    "because of the rain|with a discount|by mistake|during the holidays|on behalf of the board|at midnight"
).split("|")


class Floor(Protocol):
    """A store that only stores and searches."""

    def add(self, text: str) -> None: ...

    def add_many(self, texts: Sequence[str]) -> None: ...

    def search(self, query: str, limit: int) -> object: ...

    def read(self, count: int) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbSpeed:
    """Speed of one verb. Times are medians over the turns, in milliseconds for one call."""

    verb: str
    calls: int
    per_second: float
    cpu_ms: float
    floor_cpu_ms: float
    floor: str  # what the floor does

    @property
    def ratio(self) -> float:
        """Processor time divided by that of the floor."""
        return self.cpu_ms / self.floor_cpu_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A verb and its floor."""

    verb: str
    ours: Callable[[], object]
    bare: Callable[[], object]
    floor: str
    calls: int = 20  # in a turn


def make_texts(seed: int = 1) -> Iterator[str]:
    """Yield short sentences, each different, the same ones for a seed."""
    combined = [" ".join(each) for each in product(_SUBJECTS, _VERBS, _OBJECTS, _WHEN)]
    Random(seed).shuffle(combined)
    for turn in count():
        yield from (f"{each}." if not turn else f"{each}, {turn + 1} times." for each in combined)


def measure_speed(
    agent: AgentMemory,
    floor: Floor,
    *,
    memories: int,
    seconds: float,
    progress: Callable[[int], None] = lambda more: None,
) -> Sequence[VerbSpeed]:
    """Store `memories` memories on both sides, then measure each verb for its share of `seconds`.

    `progress` is called after each verb with 1.
    """
    texts = make_texts()
    for start in range(0, memories, BATCH):
        batch = [next(texts) for _ in range(min(BATCH, memories - start))]
        agent.remember_many([{"text": text, "kind": "episode"} for text in batch])
        floor.add_many(batch)
    agent.recall(next(texts))
    pairs, found = _list_pairs(agent, floor, texts), list[VerbSpeed]()
    for pair in pairs:
        found.append(_measure(pair, seconds / len(pairs)))
        progress(1)
    return found


def _list_pairs(agent: AgentMemory, floor: Floor, texts: Iterator[str]) -> Sequence[_Pair]:
    def remember_many() -> None:
        agent.remember_many([{"text": next(texts), "kind": "episode"} for _ in range(BATCH)])

    def build_floor_context() -> None:
        floor.search(next(texts), SHOWN)
        floor.read(READ)

    return (
        # Those that read come first: the others make the store larger.
        _Pair(
            verb="recall",
            ours=lambda: agent.recall(next(texts), limit=SHOWN),
            bare=lambda: floor.search(next(texts), SHOWN),
            floor=f"FTS5, best {SHOWN} by BM25",
        ),
        _Pair(
            verb="context",
            ours=lambda: agent.context(next(texts), session="bench"),
            bare=build_floor_context,
            floor=f"FTS5, and read {READ} rows",
        ),
        _Pair(
            verb="remember",
            ours=lambda: agent.remember(next(texts), kind="episode"),
            bare=lambda: floor.add(next(texts)),
            floor="insert a row and its words, commit",
        ),
        _Pair(
            verb="log_turn",
            ours=lambda: agent.log_turn("bench", user=next(texts), assistant=next(texts)),
            bare=lambda: floor.add_many([next(texts), next(texts)]),
            floor="insert 2 rows, commit",
        ),
        _Pair(
            verb=f"remember_many ({BATCH})",
            ours=remember_many,
            bare=lambda: floor.add_many([next(texts) for _ in range(BATCH)]),
            floor=f"insert {BATCH} rows, commit",
            calls=2,
        ),
    )


def _measure(pair: _Pair, seconds: float) -> VerbSpeed:
    """Run a verb and its floor in turns until the time is over."""
    pair.ours()
    pair.bare()
    until = perf_counter() + seconds
    walls, ours, bare = list[float](), list[float](), list[float]()
    while len(ours) < MIN_TURNS or perf_counter() < until:
        for work, times in ((pair.ours, ours), (pair.bare, bare)):
            began, cpu = perf_counter(), process_time()
            for _ in range(pair.calls):
                work()
            times.append((process_time() - cpu) / pair.calls)
            if work is pair.ours:
                walls.append((perf_counter() - began) / pair.calls)
    return VerbSpeed(
        verb=pair.verb,
        calls=len(ours) * pair.calls,
        per_second=1 / median(walls),
        cpu_ms=1_000 * median(ours),
        floor_cpu_ms=1_000 * median(bare),
        floor=pair.floor,
    )
