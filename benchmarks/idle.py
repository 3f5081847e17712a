"""`python -m benchmarks.idle`: what tenants that nobody uses cost the whole store.

Two databases of each engine, with few and with many tenants of one agent and one memory, which maintenance has nothing
to do for. Counted are the processor times of this process and of the database. Exits 1 if something costs more beside
many.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy

from benchmarks.scale import Case, _connect, _copy, _list_columns, spend_in_database
from tests.postgres_server import PostgresServer
from wellkept import Wellkept
from wellkept.settings import Settings

FEW = 10
MAX_GROWTH = 1.1
NOISE = 5.0
"""Milliseconds below which a difference is not counted."""

TABLES = ("tenants", "agents", "memories", "memory_index")
TURNS = 3
VISIT = "maintenance, one tenant due"
DATE = "%Y-%m-%dT%H:%M:%S.%fZ"
"""Format of times in SQLite."""


class Far:
    """An embedder that the program takes for a remote one."""

    name = "far"
    dimensions = 8
    is_remote = True

    def embed(self, texts: Sequence[str]) -> Any:
        return numpy.ones((len(texts), self.dimensions), dtype=numpy.float32)


class Clock:
    """A clock that can be moved."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def fill(case: Case, tenants: int) -> None:
    """Create the tenants by SQL, as copies of the first."""
    with Wellkept(settings=Settings(url=case.url), embedder=Far()) as wellkept:
        wellkept.agent("a", tenant="t0").remember("The harbour opens at six.")
        while wellkept.embedding.count_waiting():
            time.sleep(0.05)
        # The first run makes every tenant due.
        wellkept.maintain()
    with closing(_connect(case)) as connection:
        for table in TABLES:
            changed = {"tenant_id": "'t' || copy", "due_at": f"'{datetime.now(UTC) + timedelta(days=5):{DATE}}'"}
            _copy(connection, table, _list_columns(connection, table), changed, tenants - 1)
        connection.commit()


def spend(case: Case, call: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of processor time of a call, here and in the database."""
    database, ours = spend_in_database(case), time.process_time()
    call()
    ours = time.process_time() - ours
    return 1000 * ours, 1000 * (spend_in_database(case) - database)


def measure(case: Case, seconds: float) -> dict[str, tuple[float, float]]:
    """Return the cost of each piece of work over all tenants."""
    clock = Clock()
    costs: dict[str, tuple[float, float]] = {}
    settings = Settings(url=case.url, pool_size=1)
    with Wellkept(settings=settings, embedder=Far(), clock=clock) as wellkept:

        def remember() -> None:
            wellkept.agent("a", tenant="t0").remember(f"The harbour opens at {time.monotonic()}.")
            while wellkept.embedding.count_waiting():
                time.sleep(0.02)

        remember()
        run = partial(wellkept._services.maintain, is_automatic=True)
        costs[VISIT] = spend(case, run)
        clock.ahead += timedelta(hours=2)
        run()
        work: dict[str, Callable[[], object]] = {
            "maintenance, nothing due": run,
            "/metrics": wellkept.maintenance.read_totals,
            "valid key at the start": wellkept.keys.is_any_valid,
            "remember, remote embedder": remember,
        }
        for name, call in work.items():
            turns = [spend(case, call) for _ in range(TURNS)]
            costs[name] = (min(turn[0] for turn in turns), min(turn[1] for turn in turns))
        wellkept.maintenance.start()
        ours, database = spend(case, lambda: time.sleep(seconds))
        costs["a minute of doing nothing"] = (ours * 60 / seconds, database * 60 / seconds)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__.splitlines()[0])
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of doing nothing (default 20)")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), help="only this one")
    options = parser.parse_args()
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="wellkept-idle-") as folder, PostgresServer.start() as server:
        for engine in ["sqlite", "postgres"] if options.engine is None else [options.engine]:
            found = []
            for count in (FEW, options.tenants):
                url = f"sqlite:///{folder}/{count}.db" if engine == "sqlite" else server.create_database()
                case = Case(engine, count, 1, url, "" if engine == "sqlite" else server.admin_url(url))
                fill(case, count)
                found.append(measure(case, options.seconds))
            print(f"{engine}: milliseconds of ours / of the database, with {FEW} and with {options.tenants:,} tenants")
            for name, few in found[0].items():
                many = found[1][name]
                print(f"{name:29}{few[0]:10.1f} /{few[1]:7.1f}{many[0]:12.1f} /{many[1]:7.1f}", flush=True)
                # It adds up the counts of all tenants, once in a run.
                if name != VISIT and sum(many) > max(MAX_GROWTH * sum(few), sum(few) + NOISE):
                    problems.append(f"{engine}: {name} grows with the number of tenants.")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
