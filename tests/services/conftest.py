"""The library on every engine: real stores, a clock the test sets, and nothing of our own replaced.

Each module has one database of each engine, and one store on it; a test keeps to itself by working in a fresh tenant.
What looks at every tenant at once, as maintenance does, gets a database of its own: `fresh_place`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tests.postgres_server import PostgresServer
from wellkept import Settings, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory

ENGINES = ("sqlite", "postgres-18")
on_one_engine = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
"""For many cases of what is decided before anything reaches a store."""
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

_fresh = itertools.count(1)


@dataclass
class Clock:
    """A clock that stands still until the test moves it."""

    moment: datetime = START

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, **time: float) -> None:
        self.moment += timedelta(**time)


@dataclass(frozen=True)
class Place:
    """Where a store is kept, so that a test can open it again, or look into it past the library."""

    engine: str
    url: str
    admin_url: str = ""
    files: Path = field(default_factory=Path)  # SQLite only: the database's own folder

    def open(self, clock: Clock, *, model: Any = None, own_embedder: Any = None, **settings: Any) -> Wellkept:
        settings = {"pool_size": 4, "busy_timeout": 100, **settings}
        return Wellkept(self.url, settings=Settings(**settings), clock=clock, model=model, embedder=own_embedder)

    def sql(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """Run a statement as somebody with the database in their hands: no library, no row-level security."""
        if self.engine == "sqlite":
            connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
            connection.set_busy_timeout(100_000)
            try:
                return connection.execute(statement).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.admin_url) as admin:
            cursor = admin.execute(statement)
            return cursor.fetchall() if cursor.description else []


def break_steps(place: Place) -> None:
    """Have whoever reads the index of workflow steps fail, though nothing is missing."""
    failing = "json('{') IS NULL" if place.engine == "sqlite" else "1 / 0 = 1"
    place.sql("ALTER TABLE step_index RENAME TO elsewhere")
    place.sql(f"CREATE VIEW step_index AS SELECT * FROM elsewhere WHERE {failing}")
    if place.engine != "sqlite":
        place.sql("GRANT SELECT ON step_index TO PUBLIC")


@contextmanager
def hanging_steps(place: Place) -> Iterator[None]:
    """Have reads of the index of workflow steps never end: PostgreSQL waits for a lock, SQLite counts for ever."""
    if place.engine != "sqlite":
        with psycopg.connect(place.admin_url) as admin:
            admin.execute("LOCK TABLE step_index IN ACCESS EXCLUSIVE MODE")
            yield
        return
    endless = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n) > 0"
    place.sql("ALTER TABLE step_index RENAME TO elsewhere")
    place.sql(f"CREATE VIEW step_index AS SELECT * FROM elsewhere WHERE {endless}")
    yield
    place.sql("DROP VIEW step_index")
    place.sql("ALTER TABLE elsewhere RENAME TO step_index")


def made(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(request.param, f"sqlite:///{folder / 'memory.db'}", files=folder)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(has_tables=True)
        yield Place(request.param, url, server.admin_url(url))
        server.drop_database(url)


@pytest.fixture(scope="module", params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from made(request, tmp_path_factory.mktemp("store"))


@pytest.fixture(params=ENGINES)
def fresh_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database with nothing in it."""
    folder = tmp_path / "store"
    folder.mkdir()
    yield from made(request, folder)


@pytest.fixture(scope="module")
def module_clock() -> Clock:
    return Clock()


@pytest.fixture
def clock(module_clock: Clock) -> Clock:
    """The clock of the module's store, and of those a test opens; each test begins at the same moment."""
    module_clock.moment = START
    return module_clock


@pytest.fixture(scope="module")
def module_store(place: Place, module_clock: Clock) -> Iterator[Wellkept]:
    with place.open(module_clock) as opened:
        yield opened


@pytest.fixture
def wellkept(module_store: Wellkept, clock: Clock) -> Wellkept:
    """The module's store: to open one for each test would cost more than most tests do."""
    return module_store


@pytest.fixture
def own_store(place: Place, clock: Clock) -> Iterator[Wellkept]:
    """For modules about what a process keeps in memory or does in the background: each test begins without it."""
    with place.open(clock) as opened:
        yield opened


@pytest.fixture
def tenant_id() -> str:
    """A tenant nobody else has."""
    return f"tenant-{next(_fresh)}"


@pytest.fixture
def tenant(wellkept: Wellkept, tenant_id: str) -> TenantMemory:
    return wellkept.tenant(tenant_id)


@pytest.fixture
def ann(tenant: TenantMemory) -> AgentMemory:
    """An agent of a tenant of its own."""
    return tenant.agent("ann")


@pytest.fixture
def bob(tenant: TenantMemory) -> AgentMemory:
    """Another agent of ann's tenant."""
    return tenant.agent("bob")
