"""`make scale`: print what one agent costs beside few and many others, and with few and many memories of its own.

Each case is a database of its own with a process of its own, and all take turns, so that a busy moment of the machine
meets each of them. The first agent's memories come through `remember_many`; the other rows are copies of them, made
by SQL. Counted for each call are the processor time of our process and of the database, the bytes that the database
sends (SQLite: that are read from its file), the memory of indexes and that of the process. Exits 1 if the cost of an
agent grows with the number of the others, or if recalls of agents that do not fit into memory take too long.

`--memories` limits the size of a case, so that the default takes some minutes; a million takes an hour.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.corpus import sentences
from tests.postgres_server import PostgresServer
from wellkept import Wellkept
from wellkept.settings import Settings
from wellkept.store.search import memory_search

CROWDS = (1, 100, 1_000, 10_000)
EACH = 100
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LARGEST_BASE = 1_000
"""Memories that `remember_many` stores; larger agents have copies of them."""

LARGEST = SIZES[-1]
MAX_LARGE_MS, MAX_LARGE_MB = 30.0, 400.0
"""Processor time of a recall of `LARGEST` memories of one agent, and most memory of the process."""

VERBS = ("recall, cold", "recall, warm", "remember", "list")
CALLS = 20
TURNS = 5
MAX_GROWTH = 1.1
NOISE = {"ours": 0.15, "database": 0.15, "bytes": 64.0}
"""Milliseconds, milliseconds and bytes of a call below which a difference is not counted."""

COLD_SIZE = 10_000
HELD_SHARE = 0.05
INDEX_MB = 4
"""Megabytes of the index of `COLD_SIZE` memories, rounded up."""

MAX_COLD_MS = 100.0
"""Milliseconds of processor time of our process that 95 of 100 recalls stay below."""

UNCHANGED: dict[str, Any] = {"maintenance_interval": 0}
"""Settings without maintenance, which would archive episodes above the quota and take processor time meanwhile."""

TABLES = ("agents", "memories", "memory_index")
TCP_BYTES_RECEIVED = slice(128, 136)
"""Place of `tcpi_bytes_received` in the `tcp_info` of Linux."""


@dataclass(frozen=True, slots=True)
class Case:
    """A database: agents `a0`, `a1`… with the same number of memories each."""

    engine: str
    agents: int
    memories: int
    url: str
    admin_url: str = ""

    @property
    def name(self) -> str:
        return f"{self.engine} {self.agents:,} x {self.memories:,}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds and bytes of a call."""

    ours: float
    database: float
    bytes: float

    def exceeds(self, other: Cost) -> list[str]:
        """Return the names of the figures that are more than `MAX_GROWTH` of another cost."""
        return [
            name
            for name, noise in NOISE.items()
            if getattr(self, name) > max(MAX_GROWTH * getattr(other, name), getattr(other, name) + noise)
        ]


def fill(case: Case) -> None:
    """Store the memories of the first agent, and copy its rows for the others."""
    base = min(case.memories, LARGEST_BASE)
    with Wellkept(settings=Settings(url=case.url, **UNCHANGED)) as wellkept:
        drafts = [{"text": text, "kind": "episode"} for text in sentences(base)]
        for start in range(0, base, 500):
            wellkept.agent("a0").remember_many(drafts[start : start + 500])
    with closing(_connect(case)) as connection:
        for table in TABLES:
            columns = _list_columns(connection, table)
            if case.memories > base and table != "agents":
                _copy(connection, table, columns, {"seq": f"seq + copy * {base}"}, case.memories // base - 1)
            name = "id" if table == "agents" else "agent_id"
            if case.agents > 1:
                _copy(connection, table, columns, {name: "'a' || copy"}, case.agents - 1)
        connection.execute(f"UPDATE agents SET last_seq = {case.memories}, revision = revision + 1")
        connection.commit()
        if not case.admin_url:
            connection.execute("ANALYZE")
            return
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
        # Parallel workers end with their query, so nobody could count their time.
        name = urlsplit(case.admin_url).path[1:]
        connection.execute(f'ALTER DATABASE "{name}" SET max_parallel_workers_per_gather = 0')


def _connect(case: Case) -> Any:
    return psycopg.connect(case.admin_url) if case.admin_url else sqlite3.connect(urlsplit(case.url).path[1:])


def _list_columns(connection: Any, table: str) -> list[str]:
    return [each[0] for each in connection.execute(f"SELECT * FROM {table} LIMIT 0").description]


def _copy(connection: Any, table: str, columns: Sequence[str], changed: dict[str, str], copies: int) -> None:
    numbers = f"WITH RECURSIVE n(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM n WHERE copy < {copies})"
    values = ", ".join(changed.get(each, each) for each in columns)
    connection.execute(f"{numbers} INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, n")


class Worker:
    """A process that asks one database. Its memory is its own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=answer_orders, args=(case, other), daemon=True)
        self._process.start()

    def ask(self, order: Any) -> Any:
        self._pipe.send(order)
        return self._pipe.recv()

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


def answer_orders(case: Case, pipe: Connection) -> None:
    """Measure each verb that the pipe names, until it names none."""
    settings = Settings(url=case.url, pool_size=1, index_cache_mb=4_000, recall_deadline=60, **UNCHANGED)
    with Wellkept(settings=settings) as wellkept:
        questions = iter(sentences(100_000, seed=9, words=8))
        for verb in iter(pipe.recv, None):
            if verb == "memory":
                index: Any = wellkept._services.store._engine.index
                pipe.send((index._indexes._total / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))
            else:
                pipe.send(measure(case, prepare(wellkept, verb, questions)))


def prepare(wellkept: Wellkept, verb: str, questions: Iterator[str]) -> Callable[[], object]:
    """Return a function that calls the verb, in the state that its name says."""
    agent, store = wellkept.agent("a0"), wellkept._services.store

    def recall() -> object:
        found = agent.recall(next(questions), sources=["memory"], min_relevance=0.0)
        assert found
        assert not found.unanswered
        return found

    if verb == "remember":
        return lambda: agent.remember(next(questions), kind="episode")
    if verb == "list":
        return lambda: agent.list(limit=20)
    if verb == "recall, cold":
        # No number of questions is enough for an index.
        memory_search.MIN_ASKED = sys.maxsize

        def recall_cold() -> object:
            store.forget_cached("default")
            return recall()

        return recall_cold
    memory_search.MIN_ASKED = 1
    recall()
    while not store._engine.index._indexes._cached:
        time.sleep(0.05)
    return recall


def measure(case: Case, call: Callable[[], object]) -> Cost:
    """Return the cost of a call, as the mean of several."""
    call()
    received, spent, began = count_bytes(case), spend_in_database(case), time.process_time()
    for _ in range(CALLS):
        call()
    ours = time.process_time() - began
    database, sent = spend_in_database(case) - spent, count_bytes(case) - received
    return Cost(1000 * ours / CALLS, 1000 * database / CALLS, sent / CALLS)


def count_bytes(case: Case) -> int:
    """Count the bytes that came over all open connections or, with SQLite, that this process has read."""
    if not case.admin_url:
        return int(Path("/proc/self/io").read_text().split()[1])
    total, port = 0, urlsplit(case.url).port
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.getpeername()[1:] == (port,):
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    total += int.from_bytes(info[TCP_BYTES_RECEIVED], sys.byteorder)
    return total


def spend_in_database(case: Case) -> float:
    """Return the seconds of processor time of the server's processes for this database."""
    if not case.admin_url:
        return 0.0
    with psycopg.connect(case.admin_url) as admin:
        clients = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in clients) / 1e9


def find_missed(case: Case, verb: str, cost: Cost, process: float) -> list[str]:
    """Describe the promises on a million memories of one agent that are not kept."""
    if case.memories < LARGEST or verb != "recall, warm":
        return []
    missed = []
    if cost.ours > MAX_LARGE_MS:
        missed.append(f"MISSED: {case.name}: a recall takes {cost.ours:.0f} ms, not {MAX_LARGE_MS:g}")
    if process > MAX_LARGE_MB:
        missed.append(f"MISSED: {case.name}: the process takes up to {process:.0f} MB, not {MAX_LARGE_MB:g}")
    return missed


def compare(cases: Sequence[Case]) -> dict[tuple[Case, str], Cost]:
    """Measure all verbs in all databases, in turns, and return the least of each figure."""
    workers = [Worker(case) for case in cases]
    best: dict[tuple[Case, str], Cost] = {}
    print(f"{'':24}{'':14}{'our ms':>10}{'database ms':>14}{'KB from it':>12}{'index MB':>10}{'process MB':>12}")
    for verb in VERBS:
        turns = [[worker.ask(verb) for worker in workers] for _ in range(TURNS)]
        for worker, costs in zip(workers, zip(*turns, strict=True), strict=True):
            least = Cost(*(min(getattr(each, name) for each in costs) for name in ("ours", "database", "bytes")))
            best[worker.case, verb] = least
            index, process = worker.ask("memory")
            print(
                f"{worker.case.name:24}{verb:14}{least.ours:10.2f}{least.database:14.2f}{least.bytes / 1000:12.1f}"
                f"{index:10.1f}{process:12.0f}",
                *find_missed(worker.case, verb, least, process),
                sep="\n",
                flush=True,
            )
    for worker in workers:
        worker.close()
        check_size(worker.case)
    return best


def check_size(case: Case) -> None:
    """Fail if the first agent lost memories meanwhile: the figures would be those of a smaller one."""
    with closing(_connect(case)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM memory_index WHERE agent_id = 'a0'").fetchall()
    if count < case.memories:
        raise SystemExit(f"{case.name}: the agent has only {count:,} memories, so its figures are wrong.")


def find_growth(best: dict[tuple[Case, str], Cost]) -> list[str]:
    """Describe the verbs whose cost for one agent depends on the others."""
    problems = []
    for (case, verb), cost in best.items():
        alone = next(each for each in best if each[0].engine == case.engine and each[0].agents == 1 and each[1] == verb)
        for name in cost.exceeds(best[alone]):
            values = f"{getattr(cost, name):.2f} beside {getattr(best[alone], name):.2f}"
            problems.append(f"{case.name}: {verb}: {name} grows with the number of agents: {values} for one agent")
    return problems


def measure_cold(case: Case, recalls: int) -> list[str]:
    """Ask agents at random, of which a twentieth fits into memory."""
    held = max(round(HELD_SHARE * case.agents), 1)
    with Wellkept(settings=Settings(url=case.url, index_cache_mb=held * INDEX_MB, **UNCHANGED)) as wellkept:
        rng, questions, times = random.Random(5), sentences(recalls, seed=11, words=8), list[float]()
        spent, received = spend_in_database(case), count_bytes(case)
        for question in questions:
            began = time.process_time()
            found = wellkept.agent(f"a{rng.randrange(case.agents)}").recall(question, sources=["memory"])
            times.append(1000 * (time.process_time() - began))
            assert not found.unanswered
        database, sent = spend_in_database(case) - spent, count_bytes(case) - received
        total = wellkept._services.store._engine.index._indexes._total / 2**20
    check_size(case)
    p95 = statistics.quantiles(times, n=20)[-1]
    print(
        f"{case.name}, memory for {held} of them ({held * INDEX_MB} MB, used {total:.0f}): {recalls} recalls, our ms: "
        f"mean {statistics.fmean(times):.1f}, p95 {p95:.1f}; database {1000 * database / recalls:.1f} ms and "
        f"{sent / recalls / 1000:.0f} KB each"
    )
    return [] if p95 <= MAX_COLD_MS else [f"{case.name}: 95 of 100 recalls take up to {p95:.0f} ms, not {MAX_COLD_MS}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000, help="most memories of a database (default 100000)")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), help="only this one")
    parser.add_argument("--cold", type=int, default=20, help="agents of 10,000 to ask at random (default 20; 0: none)")
    options = parser.parse_args()
    crowds = [(agents, EACH) for agents in CROWDS if agents * EACH <= options.memories]
    sizes = [(1, size) for size in SIZES if size <= options.memories]
    problems = []
    with tempfile.TemporaryDirectory(prefix="wellkept-scale-") as folder, PostgresServer.start() as server:

        def make(engine: str, agents: int, memories: int) -> Case:
            url = f"sqlite:///{folder}/{agents}x{memories}.db" if engine == "sqlite" else server.create_database()
            case = Case(engine, agents, memories, url, "" if engine == "sqlite" else server.admin_url(url))
            fill(case)
            return case

        for engine in ["sqlite", "postgres"] if options.engine is None else [options.engine]:
            problems += find_growth(compare([make(engine, *each) for each in crowds]))
            compare([make(engine, *each) for each in sizes])
        if options.cold and options.engine != "sqlite":
            problems += measure_cold(make("postgres", options.cold, COLD_SIZE), recalls=10 * options.cold)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
