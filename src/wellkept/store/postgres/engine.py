"""PostgreSQL engine: a connection pool and one short transaction for each unit of work.

Row-level security backs up the `tenant_id = …` of every statement. Each transaction starts by setting its tenant with
`SET LOCAL` (a plain literal, because Citus forwards nothing else to its workers), which lasts until the transaction
ends; without it no row is visible. Roles that bypass row-level security (superusers, BYPASSRLS) are refused at start.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import IO, TypeVar

import psycopg
from psycopg import errors

from wellkept.errors import Invalid, StoreAway, StoreError
from wellkept.language.names import check_tenant
from wellkept.model import BackupReport, ClusterNode
from wellkept.store.engine import (
    FORKED,
    Progress,
    RegisteredEmbedder,
    Snapshots,
    Unit,
)
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.postgres.failures import (
    build_outage,
    is_from_node,
    is_shutdown,
    translate_admin_errors,
    translate_errors,
)
from wellkept.store.postgres.index import MAX_INDEXED_DIMENSIONS, PostgresIndex
from wellkept.store.postgres.link import Connection, PostgresLink, check_alive, connect_once
from wellkept.store.postgres.migrate import prepare_schema
from wellkept.store.postgres.nodes import ClusterNodes
from wellkept.store.postgres.roles import check_role, check_tables
from wellkept.store.postgres.scrub import scrub_tables
from wellkept.store.postgres_unit import PostgresUnit, open_pipeline
from wellkept.store.queries import as_pyformat, load_queries

T = TypeVar("T")

READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Makes Citus send `SET LOCAL` to its workers; without Citus it has no effect. Each transaction sets it, because a
pooler may give the next one another connection."""

INDEX_LOCK_TIMEOUT_MS = 1_000

NO_INDEX = (
    "The approximate index for large knowledge is missing and cannot be created now (%s); searches return the same, "
    "only slower. `wellkept doctor` shows the statement that creates it."
)

log = logging.getLogger("wellkept")

READ_BROKE = "The connection to the database broke during this read. Try again in a moment."
WRITE_BROKE = (
    "The connection to the database broke before this change was committed, so it was not stored; earlier changes of "
    "the same call may be. Try again in a moment."
)
COMMIT_BROKE = (
    "The connection to the database broke while this change was committed, so it may be stored or not. Check before "
    "you try again; a request that is repeated with its Idempotency-Key writes nothing twice."
)


class PostgresEngine:
    """One PostgreSQL database with pgvector."""

    name = "postgres"
    has_single_writer = False
    content_folder = None

    def __init__(
        self,
        url: str,
        *,
        busy_timeout: float,
        pool_size: int,
        prepare_threshold: int,
        index_cache_bytes: int,
        owner_url: str = "",
    ) -> None:
        """Connect, create or upgrade the schema, and check that row-level security is effective.

        A role that does not own the tables changes no schema; `owner_url` is the role that does.

        Raises: StoreError, SchemaMismatch.
        """
        self._templates = {name: as_pyformat(sql) for name, sql in load_queries(self.name).items()}
        self._queries = self._templates
        self._owner_url = owner_url
        self._pid = os.getpid()
        self._snapshots: Snapshots[PostgresUnit] = Snapshots()
        self._cut_off: set[str] = set()  # tenants of a cluster whose node did not answer the last time
        self._link = PostgresLink(
            url, busy_timeout=busy_timeout, pool_size=pool_size, prepare_threshold=prepare_threshold
        )
        try:
            with translate_admin_errors(), self._link.connect() as connection:
                check_role(connection)
                prepare_schema(connection, owner_url=owner_url)
                check_tables(connection)
            with translate_errors():
                self._link.open()
        except BaseException:
            self._link.close()
            raise
        self._nodes = ClusterNodes(self._connection)
        self.index = PostgresIndex(self.read, numbers=self.numbers, max_bytes=index_cache_bytes)
        self._link.on_other_server = self.index.clear

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        shared = self._snapshots.find(tenant)
        if shared is None:
            return self._run(tenant, work, begin=(READING,))
        with translate_errors():
            shared.begin_again_if_failed()
            try:
                return work(shared)
            except psycopg.OperationalError as error:
                if is_from_node(error):
                    self._cut_off.add(tenant)
                    shared.is_cut_off = True
                raise

    def read_together(self, tenant: str, work: Callable[[], T]) -> T:
        def read_all(unit: Unit) -> T:
            assert isinstance(unit, PostgresUnit)
            with self._snapshots.share(unit):
                done = work()
            unit.end_if_failed()
            return done

        if self._snapshots.find(tenant) is not None:
            return work()
        # BEGIN takes no snapshot; the first query does.
        return self._run(tenant, read_all, begin=(READING,), then=("SELECT 1",))

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        return self._run(tenant, work, begin=(WRITING,), is_write=True)

    def numbers(self, seqs: Sequence[int]) -> list[int]:
        return list(seqs)

    def texts(self, texts: Sequence[str]) -> list[str]:
        return list(texts)

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        # The approximate index has a fixed vector length and serves only statements that name the same length.
        self._queries = {name: _fill_in(sql, embedder) for name, sql in self._templates.items()}
        self.index.use(embedder)
        if self.own_indexes(embedder):
            with translate_errors(), self._connection() as connection:
                self._make_chunk_index(connection)

    def own_indexes(self, embedder: RegisteredEmbedder) -> Mapping[str, str]:
        if not 0 < embedder.dimensions <= MAX_INDEXED_DIMENSIONS:
            return {}
        makes_it = _fill_in(self._templates["make_nearest_index"], embedder)
        return {f"chunk_index_nearest_{embedder.id}": " ".join(makes_it.split())}

    def _make_chunk_index(self, connection: Connection) -> None:
        """Make the approximate index of passages if there is none, and this role or the owner's may.

        The statements return the same rows without the index, only slower.
        """
        row = PostgresUnit(connection, self._queries, "", link=self._link).one("find_nearest_index")
        if row is None or row[0]:
            return
        is_owner = bool(row[1])
        if not is_owner and not self._owner_url:
            # By design of whoever runs the database; `doctor` says it, too.
            log.info(NO_INDEX, "this role does not own the tables")
            return
        try:
            with nullcontext(connection) if is_owner else connect_once(self._owner_url) as owner, owner.transaction():
                owner.execute(PROPAGATE)
                owner.execute(f"SET LOCAL lock_timeout = {INDEX_LOCK_TIMEOUT_MS}")
                owner.execute(self._queries["make_nearest_index"])
        except errors.LockNotAvailable:
            log.warning(NO_INDEX, "others hold a lock on the table")
        except (errors.UniqueViolation, errors.DuplicateTable):
            # Another server created it at the same moment.
            return

    def forget(self, tenant: str) -> None:
        self.index.forget(tenant)

    def scrub(self, tables: Sequence[str], *, compact: bool | None) -> Sequence[str]:
        with translate_errors(), self._connection() as connection:
            return scrub_tables(connection, tables, compact=bool(compact))

    def back_up(self, file: IO[bytes], *, scratch: Path, now: datetime, progress: Progress | None) -> BackupReport:
        raise Invalid(
            "This store is on PostgreSQL, which has its own backups: run pg_dump as a role that bypasses row-level "
            "security, or `wellkept export FILE --tenant ID` for each tenant (docs/operations.md)."
        )

    def problems(self) -> Sequence[str]:
        """Return current problems as sentences, without asking the database."""
        cut_off = len(self._cut_off)
        away = f"A node of the database cluster is away; tenants that cannot be served: {cut_off}."
        return [*self._nodes.problems(), *([away] if cut_off else [])]

    def check_nodes(self) -> Sequence[ClusterNode]:
        return self._nodes.check()

    def close(self) -> None:
        # A forked child would close its parent's connections.
        if os.getpid() == self._pid:
            self.index.close()
            self._link.close()

    def _connection(self) -> AbstractContextManager[Connection]:
        # Two processes on one connection would read each other's answers.
        if os.getpid() != self._pid:
            raise StoreError(FORKED)
        return self._link.connection()

    def _run(
        self,
        tenant: str,
        work: Callable[[Unit], T],
        *,
        begin: Sequence[str],
        then: Sequence[str] = (),
        is_write: bool = False,
    ) -> T:
        """Run `work` in a transaction.

        A connection that broke while it was idle, as all do when the server restarts, is found before anything is done.
        Then the next one is tried.
        """
        # Registries belong to no tenant and are read without one.
        if tenant:
            begin = (*begin, PROPAGATE, f"SET LOCAL {TENANT_SETTING} = '{check_tenant(tenant)}'", *then)
        with translate_errors():
            for _ in range(self._link.pool_size + 1):
                # An error that leaves this block rolls the transaction back.
                with self._connection() as connection:
                    unit = None
                    try:
                        check_alive(connection)
                        with open_pipeline(connection) if is_write else nullcontext() as pipeline:
                            begun = PostgresUnit(
                                connection, self._queries, tenant, link=self._link, begin=begin, pipeline=pipeline
                            )
                            begun.begin()
                            unit = begun
                            done = work(unit)
                            unit.commit()
                        unit.check_committed()
                        if not unit.is_cut_off:
                            self._cut_off.discard(tenant)
                        return done
                    except psycopg.OperationalError as error:
                        if not connection.broken and not is_shutdown(error):
                            if is_from_node(error):
                                self._cut_off.add(tenant)
                            raise
                        if unit is not None:
                            broke = COMMIT_BROKE if unit.is_ending else WRITE_BROKE if is_write else READ_BROKE
                            raise build_outage(broke) from error
            raise StoreAway("The PostgreSQL server hangs up on every connection; check its log.")


def _fill_in(sql: str, embedder: RegisteredEmbedder) -> str:
    return sql.replace("{dimensions}", str(embedder.dimensions)).replace("{embedder_id}", str(embedder.id))
