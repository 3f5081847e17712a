"""PostgreSQL engine: a connection pool and one short transaction for each unit of work.

Row-level security backs up the `tenant_id = …` of every statement. Each transaction starts by setting its tenant with
`SET LOCAL` (a plain literal, because Citus forwards nothing else to its workers), which lasts until the transaction
ends; without it no row is visible. Roles that bypass row-level security (superusers, BYPASSRLS) are refused at start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolTimeout

from recollect.deadline import READ_TIMED_OUT, is_read_overdue, read_seconds_left
from recollect.errors import (
    Conflict,
    DiskFull,
    Invalid,
    ReadOnly,
    RecollectError,
    SchemaMismatch,
    StoreAway,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreTimeout,
)
from recollect.model import BackupReport
from recollect.policy.names import check_tenant
from recollect.store.engine import (
    FORKED,
    SCHEMA_INCOMPLETE,
    UNSTORABLE,
    Progress,
    RegisteredEmbedder,
    Snapshots,
    Unit,
)
from recollect.store.postgres.index import MAX_INDEXED_DIMENSIONS, PostgresIndex
from recollect.store.postgres.link import Connection, PostgresLink
from recollect.store.postgres.schema import migrate
from recollect.store.postgres.scrub import scrub_tables
from recollect.store.postgres_unit import PostgresUnit
from recollect.store.queries import as_pyformat, load_queries

T = TypeVar("T")

READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

PROPAGATE = "SET LOCAL citus.propagate_set_commands = 'local'"
"""Makes Citus send `SET LOCAL` to its workers; without Citus it has no effect. Each transaction sets it, because a
pooler may give the next one another connection."""

RETRY_AFTER_BUSY = 1.0
BROKEN = (
    "The connection to the database broke during this operation. If it was a write, check whether it was done before "
    "you retry."
)
NODE_AWAY = "The node of the database cluster that holds this tenant cannot be reached; see the database's log."


class PostgresEngine:
    """One PostgreSQL database with pgvector."""

    name = "postgres"
    content_folder = None
    store_id = 0

    def __init__(
        self, url: str, *, busy_timeout: float, pool_size: int, prepare_threshold: int, index_cache_bytes: int
    ) -> None:
        """Connect, create or upgrade the schema, and check that row-level security is effective.

        Raises: StoreError, SchemaMismatch.
        """
        self._templates = {name: as_pyformat(sql) for name, sql in load_queries(self.name).items()}
        self._queries = self._templates
        self._pid = os.getpid()
        self._snapshots: Snapshots[PostgresUnit] = Snapshots()
        self._cut_off: set[str] = set()  # tenants of a cluster whose node did not answer the last time
        self._link = PostgresLink(
            url, busy_timeout=busy_timeout, pool_size=pool_size, prepare_threshold=prepare_threshold
        )
        try:
            with translate_errors():
                with self._link.connect() as connection:
                    _check_role(connection)
                    migrate(connection)
                    _check_tables(connection)
                self._link.open()
        except BaseException:
            self._link.close()
            raise
        self.index = PostgresIndex(self.read, numbers=self.numbers, max_bytes=index_cache_bytes)
        # After an outage the server may have an older state, from a backup or a standby.
        self._link.on_return = self.index.clear

    def read(self, tenant: str, work: Callable[[Unit], T]) -> T:
        shared = self._snapshots.find(tenant)
        if shared is None:
            return self._run(tenant, work, begin=READING)
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
        return self._run(tenant, read_all, begin=READING, then="; SELECT 1")

    def write(self, tenant: str, work: Callable[[Unit], T]) -> T:
        return self._run(tenant, work, begin=WRITING)

    def numbers(self, seqs: Sequence[int]) -> list[int]:
        return list(seqs)

    def texts(self, texts: Sequence[str]) -> list[str]:
        return list(texts)

    def use_embedder(self, embedder: RegisteredEmbedder) -> None:
        # The approximate index has a fixed vector length and serves only statements that name the same length.
        self._queries = {
            name: sql.replace("{dimensions}", str(embedder.dimensions)).replace("{embedder_id}", str(embedder.id))
            for name, sql in self._templates.items()
        }
        self.index.use(embedder)
        if 0 < embedder.dimensions <= MAX_INDEXED_DIMENSIONS:
            with translate_errors(), self._connection() as connection:
                self._make_chunk_index(connection)

    def _make_chunk_index(self, connection: Connection) -> None:
        unit = PostgresUnit(connection, self._queries, "", link=self._link)
        if unit.one("find_nearest_index") == (None,):
            try:
                unit.run("make_nearest_index")
            except errors.InsufficientPrivilege:
                # This role may not change tables. The statements return the same rows without the index, only slower.
                return
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
            "security, or `recollect export FILE --tenant ID` for each tenant (docs/operations.md)."
        )

    def problems(self) -> Sequence[str]:
        cut_off = len(self._cut_off)
        return (
            (f"A node of the database cluster is away; tenants that cannot be served: {cut_off}.",) if cut_off else ()
        )

    def close(self) -> None:
        # A forked child would close its parent's connections.
        if os.getpid() == self._pid:
            self._link.close()

    def _connection(self) -> AbstractContextManager[Connection]:
        # Two processes on one connection would read each other's answers.
        if os.getpid() != self._pid:
            raise StoreError(FORKED)
        return self._link.connection()

    def _run(self, tenant: str, work: Callable[[Unit], T], *, begin: str, then: str = "") -> T:
        """Run `work` in a transaction.

        A connection that broke while it was idle, as all do when the server restarts, fails when the transaction
        begins. Nothing was done yet, so the next connection is tried.
        """
        # Registries belong to no tenant and are read without one.
        if tenant:
            begin = f"{begin}; {PROPAGATE}; SET LOCAL recollect.tenant = '{check_tenant(tenant)}'{then}"
        with translate_errors():
            for _ in range(self._link.pool_size + 1):
                # An error that leaves this block rolls the transaction back.
                with self._connection() as connection:
                    has_begun = False
                    try:
                        unit = PostgresUnit(connection, self._queries, tenant, link=self._link, begin=begin)
                        unit.begin()
                        has_begun = True
                        done = work(unit)
                        if connection.pgconn.transaction_status == TransactionStatus.INERROR:
                            raise StoreError("A statement failed and nobody said so; nothing was written.")
                        connection.commit()
                        if not unit.is_cut_off:
                            self._cut_off.discard(tenant)
                        return done
                    except psycopg.OperationalError as error:
                        if not connection.broken:
                            if is_from_node(error):
                                self._cut_off.add(tenant)
                            raise
                        self.index.clear()
                        if has_begun:
                            raise StoreError(BROKEN) from error
            raise StoreAway("The PostgreSQL server hangs up on every connection; check its log.")


def _check_role(connection: Connection) -> None:
    """Check that row-level security applies to this role. Raises: StoreError."""
    row = connection.execute(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is None or row[1]:
        raise StoreError(
            f"The role {row[0] if row else '?'!r} is a superuser or has BYPASSRLS, so one tenant could read another. "
            "Connect as an ordinary role: CREATE ROLE recollect LOGIN PASSWORD '…'; and make it the database's owner."
        )


def _check_tables(connection: Connection) -> None:
    """Check that row-level security is on for every tenant's table. Raises: StoreError."""
    unguarded = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
        "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'tenants' "
        "AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY c.relname"
    ).fetchall()
    if unguarded:
        names = ", ".join(name for (name,) in unguarded)
        raise StoreError(f"Row-level security is off on {names}; ENABLE and FORCE it, then start again.")


def is_from_node(error: psycopg.Error) -> bool:
    """Return True if the coordinator of a cluster cannot connect to the node that holds the rows."""
    return (error.sqlstate or "").startswith("08")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the driver's errors to ours, with the original as the cause."""
    try:
        yield
    except RecollectError:
        raise
    except (PoolTimeout, errors.QueryCanceled) as error:
        if read_seconds_left() is not None:
            raise StoreTimeout(READ_TIMED_OUT) from error
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.SerializationFailure, errors.TooManyConnections) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except errors.DiskFull as error:
        raise DiskFull("The database's disk is full; nothing was written. Free some space and try again.") from error
    except errors.ReadOnlySqlTransaction as error:
        raise ReadOnly("The PostgreSQL server is read-only: it is a standby, or configured that way.") from error
    except (OverflowError, UnicodeEncodeError, errors.NumericValueOutOfRange, errors.ProgramLimitExceeded) as error:
        raise Invalid(UNSTORABLE) from error
    except errors.IntegrityError as error:
        # Omit the driver's message, which quotes the row.
        raise Conflict(f"The database refused the write ({error.diag.constraint_name}).") from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreDamaged(f"The PostgreSQL database is damaged ({error.sqlstate}); its log says where.") from error
    except (errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise SchemaMismatch(SCHEMA_INCOMPLETE) from error
    except psycopg.OperationalError as error:
        if is_read_overdue():
            raise StoreTimeout(READ_TIMED_OUT) from error
        if is_from_node(error):
            raise StoreAway(NODE_AWAY) from error
        raise StoreError("The PostgreSQL server cannot be reached or went away; check its address and log.") from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL failed ({error.sqlstate}: {type(error).__name__}).") from error
