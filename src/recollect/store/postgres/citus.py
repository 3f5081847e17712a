"""Distribution of the tables by tenant over a Citus cluster.

The rows of a tenant share a shard, and every statement names its tenant, so it goes to one node. The two registries are
small and are copied to every node. Schema and statements stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from recollect.errors import Invalid
from recollect.store.postgres.engine import translate_errors

FIRST = "agents"
"""Table with which the others are colocated."""

REGISTRIES = ("tenants", "embedders")


def distribute(url: str) -> Sequence[str]:
    """Distribute the tables that are not distributed yet; return their names in order.

    Raises: Invalid when the database has no Citus; StoreError.
    """
    with translate_errors(), psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone():
            raise Invalid(
                "This database has no Citus. On the coordinator of a cluster run CREATE EXTENSION citus, add the "
                "workers with citus_add_node, and try again."
            )
        distributed = {
            name for (name,) in connection.execute("SELECT logicalrelid::text FROM pg_dist_partition").fetchall()
        }
        pending = [name for name in (*REGISTRIES, *tenant_tables(connection)) if name not in distributed]
        for name in pending:
            connection.execute(statement_for(name))
        return pending


def tenant_tables(connection: psycopg.Connection[tuple[Any, ...]]) -> Sequence[str]:
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
