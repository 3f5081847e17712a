"""The database: one store over two engines, picked by URL. Only this package knows SQL."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from recollect.errors import Invalid
from recollect.policy.audit import checked_audit_key
from recollect.store.engine import Engine
from recollect.store.sqlstore import SqlStore

MEGABYTE = 1024 * 1024
IN_MEMORY = ":memory:"


def open_store(
    url: str,
    *,
    busy_timeout: float,
    pool_size: int,
    index_cache_mb: int,
    workspace: Path | None = None,
    max_notes: int = 500,
    suspicious: str = "last",
    audit_key: str = "",
) -> SqlStore:
    """The store behind `url`: `sqlite:///file.db`, `:memory:` or `postgresql://…`; with a workspace, notes are in it.
    Hashes of the audit log are keyed with `audit_key`, if there is one.

    Raises: Invalid, StoreError, SchemaMismatch.
    """
    audit_key = checked_audit_key(audit_key)
    engine = _opened(url, busy_timeout=busy_timeout, pool_size=pool_size, index_cache_mb=index_cache_mb)
    try:
        if workspace is None:
            store = SqlStore(engine)
        else:
            workspaces = import_module("recollect.store.notes.router")
            store = workspaces.WorkspaceStore(engine, workspace, max_notes=max_notes, suspicious=suspicious)
    except BaseException:
        engine.close()
        raise
    store.audit_key = audit_key
    return store


def _opened(url: str, *, busy_timeout: float, pool_size: int, index_cache_mb: int) -> Engine:
    if is_postgres(url):
        # Imported here and not above: psycopg is optional and slow to import.
        try:
            postgres = import_module("recollect.store.postgres")
        except ModuleNotFoundError as error:
            raise Invalid("PostgreSQL needs its driver; run: pip install 'recollect[postgres]'") from error
        connected = postgres.PostgresEngine(
            url, busy_timeout=busy_timeout, pool_size=pool_size, index_cache_bytes=index_cache_mb * MEGABYTE
        )
        return cast(Engine, connected)
    path = sqlite_path(url)
    sqlite = import_module("recollect.store.sqlite")  # brings NumPy, which takes longer than all of ours
    engine = sqlite.SqliteEngine(path, busy_timeout=busy_timeout, index_cache_bytes=index_cache_mb * MEGABYTE)
    return cast(Engine, engine)


def is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> str:
    """The file an address names.

    >>> sqlite_path("sqlite:///notes.db"), sqlite_path("sqlite:////var/lib/notes.db"), sqlite_path(":memory:")
    ('notes.db', '/var/lib/notes.db', ':memory:')

    Raises: Invalid.
    """
    if url in (IN_MEMORY, "sqlite://", "sqlite:///:memory:"):
        return IN_MEMORY
    if "://" not in url:
        return str(Path(url).expanduser())
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2 or parts.query:
        raise Invalid(
            "A store's address is sqlite:///file.db (four slashes for an absolute path), :memory: or "
            "postgresql://user@host/database."
        )
    return str(Path(unquote(parts.path[1:])).expanduser())
