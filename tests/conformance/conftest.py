"""Every test here runs on every engine: a fixture gives it a store, and the test uses owners nobody else has.

Each module has one database of each engine; a test keeps to itself by working in fresh tenants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.conformance.examples import DIMENSIONS, EMBEDDER, owner
from tests.postgres_server import PostgresServer
from wellkept.model import Owner
from wellkept.store import open_store
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.sqlstore import SqlStore

PLACES = ("sqlite", "memory", "postgres-18")
OLDER = "postgres-16"  # only for modules that set ALSO_ON_OLDER


@dataclass(frozen=True)
class Place:
    """Where a store is kept, so that a test can open it a second time."""

    name: str
    url: str

    def open(self, *, pool_size: int = 4) -> SqlStore:
        return open_store(self.url, busy_timeout=100, pool_size=pool_size, index_cache_mb=64)

    @property
    def is_lasting(self) -> bool:
        return self.url != ":memory:"


def set_tenant(connection: psycopg.Connection[Any], tenant: str) -> None:
    """Set the tenant of a transaction as the store does: Citus forwards nothing but `SET LOCAL` to its workers."""
    connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
    connection.execute(sql.SQL("SET LOCAL {} = {}").format(sql.SQL(TENANT_SETTING), sql.Literal(tenant)))


def hold_indexes(store: SqlStore) -> None:
    """Load the index of every agent at its first search; PostgreSQL does so only for agents that are asked often."""
    indexes = store._engine.index._indexes
    indexes.find = indexes.current  # type: ignore[method-assign]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        names = [*PLACES, *([OLDER] if getattr(metafunc.module, "ALSO_ON_OLDER", False) else ())]
        if "lasting_place" in metafunc.fixturenames:
            names.remove("memory")  # it is gone once closed, as it should be
        if only := metafunc.definition.get_closest_marker("only_on"):
            names = [name for name in names if name.startswith(only.args)]
        places = [pytest.param(name, marks=pytest.mark.slow) if name == OLDER else name for name in names]
        metafunc.parametrize("place", places, indirect=True, scope="module")


@pytest.fixture(scope="session")
def postgres_16_server() -> Iterator[PostgresServer]:
    """The oldest PostgreSQL we promise to run on."""
    with PostgresServer.start(16) as server:
        yield server


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    name: str = request.param
    if name == "memory":
        yield Place(name, ":memory:")
    elif name == "sqlite":
        yield Place(name, f"sqlite:///{tmp_path_factory.mktemp('store') / 'memory.db'}")
    else:
        server = request.getfixturevalue("postgres_server" if name == "postgres-18" else "postgres_16_server")
        url = server.create_database(has_tables=True)
        yield Place(name, url)
        server.drop_database(url)


@pytest.fixture
def lasting_place(place: Place) -> Place:
    """A place that outlives its store."""
    return place


@pytest.fixture(scope="module")
def store(place: Place) -> Iterator[SqlStore]:
    """One store for the whole module, which knows the embedder of `examples.vector`."""
    store = place.open()
    store.use_embedder(EMBEDDER, DIMENSIONS)
    yield store
    store.close()


@pytest.fixture
def ann() -> Owner:
    """An agent of a tenant of its own."""
    return owner("ann")


@pytest.fixture
def bob(ann: Owner) -> Owner:
    """Another agent of ann's tenant."""
    return Owner(ann.tenant, "bob")


@pytest.fixture
def stranger() -> Owner:
    """An agent called ann as well, of another tenant."""
    return owner("ann")
