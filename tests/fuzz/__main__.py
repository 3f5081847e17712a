"""Fuzz a server on this machine: no request may break it, hang, or touch another tenant.

    python -m tests.fuzz --requests 100000 [--seed N] [--engine sqlite|postgres]
    python -m tests.fuzz --seed N --only 1234          sends one request again

A tenth of the requests comes from schemathesis, the rest are single bytes and values changed by our own fuzzer.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.fuzz.requests import make
from tests.fuzz.running import Outcome, send_all
from tests.fuzz.server import FuzzedServer, fuzzed_server
from tests.postgres_server import PostgresServer

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
ROUND = 2_000
"""Requests between two looks at the server."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--only", type=int, help="send this one request of the seed")
    parser.add_argument("--max-minutes", type=float, default=180.0)
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}, {wanted.engine}", flush=True)
    with _database(wanted.engine) as url, fuzzed_server(url) as server:
        before = server.canary()
        problems = _fuzz(server, wanted)
        if server.process.poll() is not None:
            problems.append(f"The server has ended with {server.process.returncode}.")
        elif server.canary() != before:
            problems.append("The other tenant's data have changed.")
        problems += [f"The server logged: {line}" for line in server.complaints()]
        if problems:
            kept = Path(tempfile.gettempdir()) / f"wellkept-fuzz-{wanted.seed}.log"
            kept.write_text(server.log.read_text(errors="replace"))
            print(f"The server's log: {kept}")
    for problem in problems[:50]:
        print(problem)
    print("failed" if problems else "ok")
    return 1 if problems else 0


@contextmanager
def _database(engine: str) -> Iterator[str]:
    if engine == "sqlite":
        yield ""
        return
    with PostgresServer.start() as server:
        yield server.create_database()


def _fuzz(server: FuzzedServer, wanted: argparse.Namespace) -> list[str]:
    started, problems, sent = time.monotonic(), [], 0
    own = wanted.requests * 9 // 10
    numbers = [range(wanted.only, wanted.only + 1)] if wanted.only is not None else []
    numbers = numbers or [range(start, min(start + ROUND, own)) for start in range(0, own, ROUND)]
    total = Outcome()
    for part in numbers:
        world = server.world()
        outcome = asyncio.run(send_all(world.port, part, partial(make, world, wanted.seed)))
        total.statuses += outcome.statuses
        problems += outcome.failures
        seconds = time.monotonic() - started
        print(f"{total.sent} requests in {seconds:.0f} s: {dict(sorted(total.statuses.items()))}", flush=True)
        if outcome.failures:
            print("\n".join(outcome.failures), flush=True)
        if len(problems) > 50 or server.process.poll() is not None or seconds > 60 * wanted.max_minutes:
            return problems
    if wanted.only is None:
        first = server.count_requests(server.world().keys[0])
        for number in range(1_000):
            key = server.world().keys[number % 3 + 1]
            sent = server.count_requests(server.world().keys[0]) - first
            if sent >= wanted.requests - own or time.monotonic() - started > 60 * wanted.max_minutes:
                break
            problems += _schemathesis(server.address, key, wanted.seed + number, sent == 0)
            print(f"{sent} requests by schemathesis", flush=True)
        print(f"{total.sent} requests of our own and {sent} by schemathesis", flush=True)
    return problems


def _schemathesis(address: str, key: str, seed: int, is_first: bool) -> list[str]:
    phases = "examples,coverage,fuzzing,stateful" if is_first else "fuzzing,stateful"
    command = [
        *(str(SCHEMATHESIS), "run", f"{address}/openapi.json", "--checks", "not_a_server_error", "--phases", phases),
        *("--header", f"Authorization: Bearer {key}", "--max-examples", "20", "--workers", "1", "--seed", str(seed)),
        *("--warnings", "off", "--request-timeout", "30", "--suppress-health-check", "all", "--no-color"),
        *("--exclude-path", "/agent/run", "--exclude-path", "/agent/vision"),  # no model: these say 502, as they should
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600, check=False)
    return [] if run.returncode == 0 else [f"schemathesis, seed {seed}: {run.stdout[-4000:]}{run.stderr[-1000:]}"]


if __name__ == "__main__":
    sys.exit(main())
