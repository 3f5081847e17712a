"""`python -m benchmarks.writers`: writes of one tenant to a PostgreSQL server that is 10 ms away.

A proxy, in a process of its own, holds back every byte in both directions. Some threads write for a while, each to an
agent of its own: first all in one tenant, then each in its own. Exits 1 if one tenant gets fewer writes than the aim.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import threading
import time
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from benchmarks.corpus import sentences
from tests.postgres_server import PostgresServer
from wellkept import Wellkept
from wellkept.settings import Settings

DELAY = 0.010
"""Seconds by which a byte is late, each way."""

WRITERS = 24
LEAST_RATE = 300.0
MOST_P95 = 150.0
"""Writes in a second and milliseconds that are aimed at."""


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a stream, each piece `DELAY` seconds after it came."""
    loop = asyncio.get_running_loop()
    try:
        while piece := await reader.read(65536):
            loop.call_later(DELAY, writer.write, piece)
    finally:
        loop.call_later(DELAY, writer.close)


def run_proxy(port: int, pipe: Connection) -> None:
    """Pass on connections to a port of this machine until the process is ended; send the port to connect to."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, to_server), pass_on(from_server, writer), return_exceptions=True)

    async def serve() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def measure(url: str, *, seconds: float, has_own_tenants: bool) -> tuple[float, list[float]]:
    """Return the writes in a second, and the milliseconds of each."""
    texts, times, end = sentences(20_000, seed=3), list[float](), 0.0

    def write(number: int) -> None:
        tenant = f"t{number}" if has_own_tenants else "acme"
        agent = wellkept.agent(f"a{number}", tenant=tenant)
        agent.remember("The first write creates the agent.", kind="episode")
        ready.wait()
        for text in texts[number::WRITERS]:
            began = time.perf_counter()
            if began > end:
                return
            agent.remember(text, kind="episode")
            times.append(1000 * (time.perf_counter() - began))

    settings = Settings(url=url, pool_size=WRITERS + 2, maintenance_interval=0)
    with Wellkept(settings=settings) as wellkept:
        ready = threading.Barrier(WRITERS + 1)
        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        end = time.perf_counter() + 3600
        for thread in threads:
            thread.start()
        ready.wait()
        began = time.perf_counter()
        end = began + seconds
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        for tenant in (f"t{number}" for number in range(WRITERS)) if has_own_tenants else ("acme",):
            assert wellkept.tenant(tenant).audit.verify().is_intact
    return len(times) / took, times


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.writers", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    context = multiprocessing.get_context("spawn")
    with PostgresServer.start(durable=True) as server:
        url = server.create_database(has_tables=True)
        parts = urlsplit(url)
        pipe, other = context.Pipe()
        proxy = context.Process(target=run_proxy, args=(parts.port, other), daemon=True)
        proxy.start()
        far = url.replace(f":{parts.port}/", f":{pipe.recv()}/")
        is_reached = True
        for has_own_tenants in (False, True):
            spent = time.process_time()
            rate, times = measure(far, seconds=seconds, has_own_tenants=has_own_tenants)
            spent = 1000 * (time.process_time() - spent) / len(times)
            p95 = statistics.quantiles(times, n=20)[-1]
            where = "each in its own tenant" if has_own_tenants else "in one tenant"
            print(
                f"{WRITERS} writers {where}, {1000 * DELAY:g} ms each way: {rate:.0f}/s, "
                f"p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms, our processor time {spent:.1f} ms each",
                flush=True,
            )
            is_reached &= has_own_tenants or (rate >= LEAST_RATE and p95 <= MOST_P95)
        proxy.terminate()
    print("" if is_reached else f"The aim is missed: {LEAST_RATE:g}/s and p95 {MOST_P95:g} ms in one tenant.")
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
