"""Settings and the default store of version 0.2, which had another name."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from pathlib import Path

from wellkept.program import FORMER_NAME, PROGRAM

FORMER_PREFIX = f"{FORMER_NAME.upper()}_"

log = logging.getLogger("wellkept")


def warn_of_former_settings(folder: Path, variables: Mapping[str, str]) -> None:
    """Log one warning that names all settings under the former name. They are ignored, and their values never shown."""
    files = [name for suffix in ("toml", "yaml", "yml") if (folder / (name := f"{FORMER_NAME}.{suffix}")).is_file()]
    found = [*sorted(name for name in variables if name.startswith(FORMER_PREFIX) and variables[name]), *files]
    if found:
        log.warning(
            "Ignored: %s. The program is called %s now; rename variables to %s…, files to %s.toml or %s.yaml.",
            ", ".join(found),
            PROGRAM,
            f"{PROGRAM.upper()}_",
            PROGRAM,
            PROGRAM,
        )


def warn_of_former_store(database: Path) -> None:
    """Log one warning if version 0.2 has a store in its default folder and there is no folder for `database` yet."""
    new, old = database.parent, database.parent.with_name(FORMER_NAME)
    if new.exists() or not (old / f"{FORMER_NAME}.db").is_file():
        return
    # The new store is about to be made, so the command puts it aside; the file and what belongs to it begin alike.
    aside, new_name, old_name = (shlex.quote(str(each)) for each in (new.with_name(f"{PROGRAM}-new"), new, old))
    rename = f'for file in {FORMER_NAME}.db*; do mv "$file" "{PROGRAM}${{file#{FORMER_NAME}}}"; done'
    log.warning(
        "The memories of version 0.2 are in %s, and a new store begins in %s; to move them there, stop all programs "
        "that use either and run: mv %s %s; mv %s %s && cd %s && %s",
        old,
        new,
        new_name,
        aside,
        old_name,
        new_name,
        new_name,
        rename,
    )
