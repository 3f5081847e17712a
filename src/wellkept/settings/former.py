"""Settings that are gone, and the default store of version 0.2, which had another name."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from wellkept.program import FORMER_NAME, PROGRAM

GONE = frozenset(
    """
    recall_floor context_floor inject_floor capture_turns extract_facts similarity_words
    tiktoken_cache_dir openai_summary_timeout openai_fast_timeout summary_counting summaryCounting
    summary_input_chars recency_half_life max_total_per_user episode_quota_per_user maintenance_writes
    agent_layout agent_max_rounds agent_timeout agent_tool_sets context_passages transfer_timeout
    """.split()
)
"""Settings of earlier versions that are ignored."""

GONE_VALUES = {("embedder", "static")}
"""Values of earlier versions that are ignored, so that the default counts."""

FORMER_PREFIX = f"{FORMER_NAME.upper()}_"

log = logging.getLogger("wellkept")


def is_gone(name: str, value: object) -> bool:
    """Return True if a setting, or this value of it, is of an earlier version and ignored."""
    return name in GONE or any(name == of and value == gone for of, gone in GONE_VALUES)


def warn_of_former_settings(folder: Path, variables: Mapping[str, str], gone: Sequence[str]) -> None:
    """Log one warning that names all settings under the former name, and the `gone` ones that were given.

    They are ignored, and their values never shown.
    """
    files = [name for suffix in ("toml", "yaml", "yml") if (folder / (name := f"{FORMER_NAME}.{suffix}")).is_file()]
    found = [*sorted(name for name in variables if name.startswith(FORMER_PREFIX) and variables[name]), *files]
    sentences = []
    if found:
        sentences.append(
            f"The program is called {PROGRAM} now; rename variables to {PROGRAM.upper()}_…, files to {PROGRAM}.toml or "
            f"{PROGRAM}.yaml."
        )
    if gone:
        sentences.append(f"Remove {', '.join(gone)}: this version has no such setting, or not this value of it.")
    if sentences:
        log.warning("Ignored: %s. %s", ", ".join((*found, *gone)), " ".join(sentences))


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
