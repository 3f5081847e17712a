"""The first key: without one no client could log in or create one over the network.

A server that listens only on this machine creates an operator key itself if there is none, keeps it in a file that only
its user can read, and shows it once. A server that other machines can reach requires that one was created before.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid
from wellkept.model import KeyScope
from wellkept.settings import default_url
from wellkept.store import IN_MEMORY, is_postgres, sqlite_path
from wellkept.store.notes.disk import make_private

NAME = "made by the server on its first start"
SUFFIX = ".admin-key"


def create_first_key(wellkept: Wellkept, *, is_loopback: bool) -> tuple[str, Path | None] | None:
    """Create an operator key for the tenant of the settings, if there is no key yet; return it and its file.

    The file is None for a store in memory: the key is gone with it. Returns None if there are keys already.

    Raises: Invalid when there is no key and the server would be reached from other machines.
    """
    if wellkept.keys.is_any_valid():
        return None
    if not is_loopback:
        raise Invalid(
            "There is no key yet, and other machines could reach this server. Create one first: "
            "wellkept admin keys create --scope operator"
        )
    key = wellkept.tenant().keys.create(KeyScope.OPERATOR, name=NAME).key
    path = key_file(wellkept.settings.store_url)
    if path is not None:
        _keep(path, key)
    return key, path


def key_file(url: str) -> Path | None:
    """Return the file of the first key: beside the database, or in the data folder for a remote one.

    >>> key_file("sqlite:////var/lib/notes.db").name, key_file(":memory:")
    ('notes.db.admin-key', None)
    """
    if is_postgres(url):
        parts = urlsplit(url)
        name = re.sub(r"[^\w.-]+", "-", f"{parts.hostname or 'local'}{parts.path}").strip("-")
        return Path(sqlite_path(default_url())).parent / f"{name}{SUFFIX}"
    path = sqlite_path(url)
    return None if path == IN_MEMORY else Path(f"{Path(path).absolute()}{SUFFIX}")


def _keep(path: Path, key: str) -> None:
    """Raises: Invalid when the file cannot be written."""
    try:
        make_private(path.parent)
        # It may be left from a database that is gone.
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Invalid(
            f"The first key cannot be written to {path} ({error.strerror}). Create one yourself instead: "
            "wellkept admin keys create --scope operator"
        ) from error
