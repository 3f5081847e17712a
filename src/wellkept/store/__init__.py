"""Store over two database engines, selected by URL. Only this package contains SQL."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from wellkept.errors import Invalid
from wellkept.history.rules_history import check_key
from wellkept.program import advise_install

if TYPE_CHECKING:
    from wellkept.store.engine import Engine
    from wellkept.store.sqlstore import SqlStore


MEGABYTE = 1024 * 1024
IN_MEMORY = ":memory:"
ADDRESS = (
    "A store's address is sqlite:///file.db (four slashes for an absolute path), :memory: or "
    "postgresql://user@host/database."
)


PREPARE_AFTER = 5
"""Executions after which a statement is prepared on a connection to PostgreSQL, by default."""


def open_store(
    url: str,
    *,
    busy_timeout: float,
    pool_size: int,
    index_cache_mb: int,
    audit_key: str = "",
    prepare_threshold: int = PREPARE_AFTER,
    owner_url: str = "",
) -> SqlStore:
    """Open the store at `url`: `sqlite:///file.db`, `:memory:` or `postgresql://…`.

    With an `audit_key`, the hashes of the audit log are keyed. PostgreSQL prepares statements after `prepare_threshold`
    executions; 0: never, for poolers that give each transaction another connection. `owner_url` is the role that owns
    the tables of PostgreSQL and upgrades them, if the one in `url` does not.

    Raises: Invalid, StoreError, SchemaMismatch.
    """
    from wellkept.store.sqlstore import SqlStore

    audit_key = check_key(audit_key, "audit_key")
    if is_postgres(url):
        engine = _open_postgres(
            url,
            busy_timeout=busy_timeout,
            pool_size=pool_size,
            prepare_threshold=prepare_threshold,
            index_cache_bytes=index_cache_mb * MEGABYTE,
            owner_url=owner_url,
        )
    else:
        # Import late: this imports NumPy, which takes longer than the rest of wellkept.
        sqlite = import_module("wellkept.store.sqlite.engine")
        engine = sqlite.SqliteEngine(
            sqlite_path(url), busy_timeout=busy_timeout, index_cache_bytes=index_cache_mb * MEGABYTE
        )
    with ExitStack() as on_error:
        on_error.callback(engine.close)
        store = SqlStore(engine)
        on_error.pop_all()
    store.audit_key = audit_key
    return store


def open_workspace(store: SqlStore, workspace: Path, *, max_notes: int, suspicious: str = "last") -> SqlStore:
    """Route the notes of the agent that claims the workspace to the file in it, and everything else to `store`.

    Raises: Invalid when the workspace is not a folder; `store` is then closed.
    """
    # Import late: this imports NumPy, and most programs have no workspace.
    notes = import_module("wellkept.store.notes.store")
    try:
        return cast("SqlStore", notes.NotesStore(store, workspace, max_notes=max_notes, suspicious=suspicious))
    except Invalid:
        store.close()
        raise


def _open_postgres(url: str, **options: Any) -> Engine:
    # Import late: psycopg is optional and slow to import.
    try:
        postgres = import_module("wellkept.store.postgres.engine")
    except ModuleNotFoundError as error:
        raise Invalid(f"PostgreSQL needs its driver; {advise_install('postgres')}") from error
    return cast("Engine", postgres.PostgresEngine(url, **options))


def is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> str:
    """Return the path of the file that a URL names.

    >>> sqlite_path("sqlite:///notes.db"), sqlite_path("sqlite:////var/lib/notes.db"), sqlite_path(":memory:")
    ('notes.db', '/var/lib/notes.db', ':memory:')

    Raises: Invalid.
    """
    if url in (IN_MEMORY, "sqlite://", "sqlite:///:memory:"):
        return IN_MEMORY
    if "://" not in url:
        return os.path.expanduser(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Invalid(ADDRESS) from None
    path = unquote(parts.path[1:])
    if parts.scheme != "sqlite" or parts.netloc or not path or "\x00" in path or parts.query:
        raise Invalid(ADDRESS)
    return os.path.expanduser(path)
