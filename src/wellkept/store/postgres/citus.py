"""Distribution of the tables by tenant over a Citus cluster.

The rows of a tenant share a shard, and every statement on them names the tenant, so it goes to one node. Only the
registry of embedders is copied to every node. `leases`, `token_buckets` and `schema_migrations` stay on the
coordinator. Schema and statements stay the same.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from wellkept.errors import Invalid
from wellkept.model import ClusterNode
from wellkept.store.postgres.link import Connection, connect_once, translate_admin_errors, translate_errors

IS_CLUSTER = (
    "SELECT to_regproc('run_command_on_workers') IS NOT NULL AND to_regclass('pg_dist_node') IS NOT NULL "
    "AND to_regclass('pg_dist_placement') IS NOT NULL"
)

EXAMINE = (
    "SELECT pg_database_size(current_database()) || ' ' || (SELECT count(*) FROM pg_index WHERE NOT indisvalid) || ' ' "
    "|| (SELECT coalesce(sum(checksum_failures), 0) FROM pg_stat_database WHERE datname = current_database())"
)
"""Command for each worker: size, invalid indexes, and pages with a wrong checksum."""

ASK_WORKERS = "SELECT nodename, nodeport, success, result FROM run_command_on_workers(%s) ORDER BY 1, 2"
"""A worker that does not answer has `success` false and the reason as its result; the others answer all the same."""

LIST_SHARDS = (
    "SELECT n.nodename, n.nodeport, array_agg(s.shardid ORDER BY s.shardid) FROM pg_dist_shard s "
    "JOIN pg_dist_placement p ON p.shardid = s.shardid JOIN pg_dist_node n ON n.groupid = p.groupid "
    "WHERE s.logicalrelid = to_regclass('agents') GROUP BY 1, 2"
)

CHECK_SECONDS = 10.0
"""Seconds for which the answers of the nodes are kept."""

MAX_NAMED = 8
"""Shards that a sentence names."""

AWAY = "The node {} of the database cluster does not answer ({}). Shards of agents on it: {}."


class ClusterNodes:
    """Nodes of one database; none if it is not distributed."""

    def __init__(self, connect: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._is_cluster: bool | None = None
        self._known: Sequence[ClusterNode] = ()
        self._checked_at = -CHECK_SECONDS

    def check(self) -> Sequence[ClusterNode]:
        """Ask all nodes, unless that was done a moment ago. Raises: StoreError."""
        with self._lock:
            if self._is_cluster is not False and time.monotonic() - self._checked_at >= CHECK_SECONDS:
                with translate_errors(), self._connect() as connection:
                    self._known = self._ask(connection)
                self._checked_at = time.monotonic()
            return self._known

    def problems(self) -> Sequence[str]:
        """Name the nodes that did not answer the last time."""
        return [AWAY.format(node.name, node.problem, _join_first(node.shards)) for node in self._known if node.problem]

    def _ask(self, connection: Connection) -> Sequence[ClusterNode]:
        if self._is_cluster is None:
            self._is_cluster = connection.execute(IS_CLUSTER).fetchone() == (True,)
        if not self._is_cluster:
            return ()
        shards = {(name, port): tuple(numbers) for name, port, numbers in connection.execute(LIST_SHARDS).fetchall()}
        answers = connection.execute(ASK_WORKERS, [EXAMINE]).fetchall()
        return [_node_from(*answer, shards=shards.get(answer[:2], ())) for answer in answers]


def _node_from(host: str, port: int, is_answered: bool, result: str, *, shards: tuple[int, ...]) -> ClusterNode:
    name = f"{host}:{port}"
    if not is_answered:
        return ClusterNode(name=name, problem=" ".join(result.split()) or "no reason given", shards=shards)
    size, invalid, wrong = map(int, result.split())
    damage = [f"On {name}, {invalid} indexes are not valid; REINDEX them there."] if invalid else []
    damage += [f"On {name}, {wrong} pages had a wrong checksum when the server read them."] if wrong else []
    return ClusterNode(name=name, bytes=size, damage=tuple(damage), shards=shards)


def _join_first(shards: Sequence[int]) -> str:
    more = f" and {len(shards) - MAX_NAMED} more" if len(shards) > MAX_NAMED else ""
    return ", ".join(map(str, shards[:MAX_NAMED])) + more if shards else "none"


FIRST = "agents"
"""Table with which the others are colocated."""

REGISTRIES = ("embedders",)
"""Tables that are copied to every node, so that a write to them needs all nodes."""

FORMER_REGISTRIES = ("tenants",)
"""Tables that earlier versions copied to every node."""

LOCK_TIMEOUT_MS = 10_000

HAS_CITUS = "SELECT 1 FROM pg_extension WHERE extname = 'citus'"

FIND_HIDDEN = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) "
    "AND relrowsecurity AND relforcerowsecurity AND pg_relation_size(oid) > 0 ORDER BY relname"
)
"""Tables with rows that Citus cannot copy."""

FIND_COPIED = "SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod = 'n' AND logicalrelid::text = ANY(%s)"
"""Reference tables among those named."""

FIND_LEFT_BEHIND = (
    "SELECT logicalrelid::text FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrelid "
    "WHERE relnamespace = current_schema()::regnamespace AND pg_relation_size(logicalrelid) > 0 ORDER BY 1"
)
"""Distributed tables whose former rows are still in the coordinator's own table, where no query sees them."""


_CHECKED_COLUMN = re.compile(
    r"ALTER TABLE (?P<table>\w+) ADD COLUMN (?P<again>IF NOT EXISTS )?(?P<column>\w+) (?P<type>.+?)"
    r" CHECK (?P<check>\(.+\))",
    re.DOTALL,
)


def distribute(url: str) -> Sequence[str]:
    """Distribute the tables that are not distributed yet; return their names in order.

    Raises: Invalid when the database has no Citus; StoreError.
    """
    with translate_admin_errors(), connect_once(url) as connection:
        if not connection.execute(HAS_CITUS).fetchone():
            raise Invalid(
                "This database has no Citus. On the coordinator of a cluster run CREATE EXTENSION citus, add the "
                "workers with citus_add_node, and try again."
            )
        return distribute_pending(connection)


def is_distributed(connection: Connection) -> bool:
    """Return True if the tables of this database are distributed, though perhaps not all of them."""
    if not connection.execute(HAS_CITUS).fetchone():
        return False
    return FIRST in _distributed(connection)


def distribute_pending(connection: Connection) -> Sequence[str]:
    """Distribute the tables that are not distributed yet, and remove the rows that stay on the coordinator.

    Both can be run again after an interruption. Raises: Invalid when row-level security hides rows from their owner.
    """
    # Whoever waits for a table makes others wait behind it.
    connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
    distributed = _distributed(connection)
    for (name,) in connection.execute(FIND_COPIED, [list(FORMER_REGISTRIES)]).fetchall():
        # Together, so that no server finds it half done.
        with connection.transaction():
            connection.execute(f"SELECT undistribute_table('{name}')")
            connection.execute(statement_for(name))
    pending = [name for name in (*REGISTRIES, *tenant_tables(connection)) if name not in distributed]
    _check_readable(connection, pending)
    for name in pending:
        connection.execute(statement_for(name))
    # After the last one: a table cannot be emptied while a local table refers to it.
    for (name,) in connection.execute(FIND_LEFT_BEHIND).fetchall():
        connection.execute(truncate_statement_for(name))
    return pending


def _distributed(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT logicalrelid::text FROM pg_dist_partition").fetchall()}


def _check_readable(connection: Connection, tables: Sequence[str]) -> None:
    """Check that the rows of these tables can be copied to the nodes. Raises: Invalid."""
    hidden = connection.execute(FIND_HIDDEN, [list(tables)]).fetchall()
    if hidden:
        raise Invalid(
            f"Row-level security is forced on {', '.join(name for (name,) in hidden)}, which hold rows, so not even "
            "their owner can copy them to the nodes. Run `wellkept admin db init` first, then distribute as the owner."
        )


def tenant_tables(connection: Connection) -> Sequence[str]:
    """List all tables of tenants, referenced tables before those that refer to them."""
    names = {
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM information_schema.columns JOIN information_schema.tables USING (table_name, "
            "table_schema) WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' "
            "AND column_name = 'tenant_id'"
        ).fetchall()
    } - set(REGISTRIES)
    references = connection.execute(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
    ).fetchall()
    ordered: list[str] = []
    while remaining := names - set(ordered):
        ready = {
            name
            for name in remaining
            if all(target in ordered for source, target in references if source == name and target != name)
        }
        ordered += sorted(ready, key=lambda name: (name != FIRST, name))
    return ordered


def statement_for(table: str) -> str:
    """Return the statement that distributes a table.

    >>> statement_for("memories")
    "SELECT create_distributed_table('memories', 'tenant_id', colocate_with => 'agents')"
    """
    if table in REGISTRIES:
        return f"SELECT create_reference_table('{table}')"
    colocated = "default" if table == FIRST else FIRST
    return f"SELECT create_distributed_table('{table}', 'tenant_id', colocate_with => '{colocated}')"


def truncate_statement_for(table: str) -> str:
    """Return the statement that removes the rows of a distributed table from the coordinator's own table.

    >>> truncate_statement_for("memories")
    "SELECT truncate_local_data_after_distributing_table('memories')"
    """
    return f"SELECT truncate_local_data_after_distributing_table('{table}')"


def split_checked_column(statement: str) -> Sequence[str]:
    """Split ADD COLUMN … CHECK, which Citus refuses, into two statements that it accepts.

    The constraint gets the name that PostgreSQL would give it. What can be run again still can.

    >>> split_checked_column("ALTER TABLE api_keys ADD COLUMN trust TEXT CHECK (trust IN ('user', 'tool'))")[1]
    "ALTER TABLE api_keys ADD CONSTRAINT api_keys_trust_check CHECK (trust IN ('user', 'tool'))"
    """
    found = _CHECKED_COLUMN.fullmatch(statement)
    if found is None:
        return (statement,)
    table, again, column, type_, check = found.groups()
    name = f"{table}_{column}_check"
    return (
        f"ALTER TABLE {table} ADD COLUMN {again or ''}{column} {type_}",
        *([f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}"] if again else ()),
        f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK {check}",
    )
