"""How long readers and writers wait while a PostgreSQL database of the first edition is migrated.

Two threads read and write one row at a time beside the migration. Their slowest call includes waiting for every lock
that the migration holds or queues for. The floor is their slowest call in the seconds before it, on the same machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import psycopg

from benchmarks.measure import Line, seconds
from benchmarks.searches import milliseconds
from tests.postgres_server import PostgresServer
from wellkept.store import open_store
from wellkept.store.migrations import TENANT_SETTING, load_migrations
from wellkept.store.postgres import schema

MEMORIES = 1_000_000
FIRST_EDITION = 15
"""Number of its last migration."""

BEFORE = 5.0
MOST = 0.1
"""Seconds that a statement beside the migration may wait."""

FILL = """
INSERT INTO memories (tenant_id, agent_id, seq, kind, text, folded, tags, folded_tags, scope, role, importance, origin,
  created_at, version, content_hash)
SELECT 'acme', 'atlas', seq, CASE WHEN seq % 10 = 0 THEN 'note' ELSE 'episode' END, t, t, '[]', '', 'user', 'user', 0.5,
  'user', now(), 1, md5(t)
FROM generate_series(1, {}) seq, LATERAL (SELECT 'Memory ' || seq || ' of somebody about ' || md5(seq::text) AS t) texts
"""
READ = "SELECT text FROM memories WHERE tenant_id = 'acme' AND agent_id = 'atlas' AND seq = 77"
WRITE = "UPDATE memories SET importance = 0.6 WHERE tenant_id = 'acme' AND agent_id = 'atlas' AND seq = 78"


class Probe(threading.Thread):
    """Runs one statement again and again, and keeps its slowest time."""

    def __init__(self, url: str, statement: str) -> None:
        super().__init__()
        self.slowest = 0.0
        self.is_over = threading.Event()
        self._url, self._statement = url, statement

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"SET {TENANT_SETTING} = 'acme'")
            while not self.is_over.wait(0.002):
                self.slowest = max(self.slowest, seconds(lambda: connection.execute(self._statement)))


def measured(folder: Path) -> Iterator[Line]:
    with PostgresServer.start(durable=True) as server:
        url = server.create_database()
        first_edition = [each for each in load_migrations("postgres") if each.number <= FIRST_EDITION]
        with mock.patch.object(schema, "load_migrations", return_value=first_edition):
            open_store(url, busy_timeout=100, pool_size=1, index_cache_mb=1).close()
        _fill(url)
        floors = _probe(url, lambda: time.sleep(BEFORE))
        took = _probe(url, lambda: open_store(url, busy_timeout=100, pool_size=1, index_cache_mb=1).close())
    for what, ours, floor in zip(("slowest read", "slowest write"), took, floors, strict=True):
        name = f"{what} beside the migration of {MEMORIES:,} memories"
        yield Line(
            name, milliseconds(ours), milliseconds(floor), ours / floor, f"<= {milliseconds(MOST)}", ours <= MOST
        )


def _fill(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"SET {TENANT_SETTING} = 'acme'")
        connection.execute("INSERT INTO tenants VALUES ('acme', now())")
        connection.execute(
            "INSERT INTO agents (tenant_id, id, name, created_at, updated_at, last_seq) "
            f"VALUES ('acme', 'atlas', 'Atlas', now(), now(), {MEMORIES})"
        )
        connection.execute(FILL.format(MEMORIES))


def _probe(url: str, work: Callable[[], object]) -> list[float]:
    """Return the slowest read and write beside a work."""
    probes = [Probe(url, statement) for statement in (READ, WRITE)]
    for probe in probes:
        probe.start()
    try:
        work()
    finally:
        for probe in probes:
            probe.is_over.set()
            probe.join()
    return [probe.slowest for probe in probes]
