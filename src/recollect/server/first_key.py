"""The first key: without one nobody could come in, and nobody could make one over the network.

On this machine the server makes an operator's key itself when there is none yet, keeps it in a file only its user can
read, and shows it once. Towards a network it insists that somebody has made one on purpose.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from recollect.api.recollect import Recollect
from recollect.errors import Invalid
from recollect.model import KeyScope
from recollect.settings import default_url
from recollect.store import IN_MEMORY, is_postgres, sqlite_path
from recollect.store.notes.disk import make_private

NAME = "made by the server on its first start"
SUFFIX = ".admin-key"


def first_key(recollect: Recollect, *, is_loopback: bool) -> tuple[str, Path | None] | None:
    """A new operator's key for the tenant of the settings and the file it is kept in (None: the store is gone at the
    end, and so is the key); None when there are keys already.

    Raises: Invalid when there is no key and the server would be reached from other machines.
    """
    if recollect.has_keys():
        return None
    if not is_loopback:
        raise Invalid(
            "There is no key yet, and other machines could reach this server. Make one first: "
            "recollect keys create --scope operator"
        )
    key = recollect.tenant().add_key(KeyScope.OPERATOR, name=NAME).key
    path = key_file(recollect.settings.store_url)
    if path is not None:
        _keep(path, key)
    return key, path


def key_file(url: str) -> Path | None:
    """Beside the database's file, or in the data folder for a database elsewhere.

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
        path.unlink(missing_ok=True)  # one that belonged to a database that is gone
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Invalid(
            f"The first key cannot be kept in {path} ({error.strerror}). Make one yourself instead: "
            "recollect keys create --scope operator"
        ) from error
