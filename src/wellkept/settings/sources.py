"""Sources of settings: files and the environment, matched against one table; and names of earlier versions."""

from __future__ import annotations

import difflib
import importlib
import json
import logging
import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from wellkept.errors import Invalid
from wellkept.program import FORMER_NAME, PROGRAM
from wellkept.settings.values import SettingRow, convert_value

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


FILES = ("wellkept.toml", "wellkept.yaml", "wellkept.yml", "agent.json")
SHARED_FILE = "agent.json"  # other programs keep their settings in it too
OWN_TABLE = "memory"  # the table of a shared file that is ours alone
PREFIX = "WELLKEPT_"
CONFIG_VARIABLE = "WELLKEPT_CONFIG"
TEST_PREFIX = "WELLKEPT_TEST_"


def settings_files(folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the existing settings files in order of precedence, lowest first."""
    yield from (path for name in FILES if (path := folder / name).is_file())
    if named := variables.get(CONFIG_VARIABLE):
        yield Path(named).expanduser()


def foreign_folder(variable: str, default: Path) -> Path:
    """Return the folder that another program's variable names, if it is an absolute path."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else default


def from_environment(variables: Mapping[str, str], known: Sequence[SettingRow], gone: list[str]) -> dict[str, Any]:
    """Read settings from environment variables; reject unknown `WELLKEPT_` names, and add those `gone` to the list."""
    own_names = {each.environment[0] for each in known}
    ignored = {name for name in variables if is_gone(name.removeprefix(PREFIX).lower(), variables[name])}
    gone += sorted(name for name in ignored if name.startswith(PREFIX) and variables[name])
    variables = {name: value for name, value in variables.items() if name not in gone}
    for name in sorted(variables):
        is_ours = name.startswith(PREFIX) and name != CONFIG_VARIABLE and not name.startswith(TEST_PREFIX)
        if is_ours and variables[name] and name not in own_names:
            _reject_unknown("environment", name, own_names)
    values: dict[str, Any] = {}
    for each in known:
        if set_names := [name for name in each.environment if variables.get(name)]:
            values[each.name] = convert_value(variables[set_names[0]], each, source="environment", key=set_names[0])
    return values


def from_table(
    source: str, content: Mapping[str, object], known: Sequence[SettingRow], gone: list[str], *, is_shared: bool = False
) -> dict[str, Any]:
    """Read settings from a file's content or from flags.

    A setting's own name wins over an alias, and the `memory` table over the rest. Those of earlier versions that are
    `gone` are added to the list.
    """
    by_key = {key: each for each in known for key in (each.name, *each.aliases)}
    tables = {OWN_TABLE} | {key.rpartition(".")[0] for key in by_key if "." in key}
    found: dict[str, tuple[bool, bool, object]] = {}
    for key, value in _flatten(content):
        # Plain keys of a shared file, such as "url" or "port", may belong to another program.
        if is_shared and "." not in key and key != OWN_TABLE:
            continue
        own_key = key.removeprefix(f"{OWN_TABLE}.")
        if is_gone(own_key, value):
            gone.append(f"{key} in {source}")
        elif each := by_key.get(key) or by_key.get(own_key):
            if value is None:
                continue
            converted = convert_value(value, each, source=source, key=key)
            candidate = (own_key != key, own_key == each.name, converted)
            if each.name not in found or candidate[:2] >= found[each.name][:2]:
                found[each.name] = candidate
        elif is_shared and key.partition(".")[0] != OWN_TABLE:
            # A table of another program.
            continue
        elif key not in tables:
            _reject_unknown(source, key, tables.union(by_key))
        elif value is not None and value != {}:
            raise Invalid(f'{source}: "{key}" must be a table of settings.')
    return {name: value for name, (_, _, value) in found.items()}


def _flatten(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Flatten nested tables into dotted keys.

    >>> list(_flatten({"openai": {"baseURL": "http://localhost"}, "port": 1}))
    [('openai.baseURL', 'http://localhost'), ('port', 1)]
    """
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _reject_unknown(source: str, key: str, known: Iterable[str]) -> NoReturn:
    # Sorted, so that of two names equal under casefold the plain one is always suggested.
    folded = {each.removeprefix(f"{OWN_TABLE}.").casefold(): each for each in sorted(known, reverse=True)}
    nearest = difflib.get_close_matches(key.removeprefix(f"{OWN_TABLE}.").casefold(), folded, n=1, cutoff=0)
    raise Invalid(f'{source}: there is no setting "{key}"; the nearest one is "{folded[nearest[0]]}".')


def read_file(path: Path) -> Mapping[str, object]:
    """Parse a settings file. Raises: Invalid, which names the line if the file is malformed."""
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        raise Invalid(f"{path}: a settings file ends in {', '.join(_PARSERS)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = parse(text)
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{path}: not UTF-8 text (at line {line}).") from error
    except ValueError as error:
        reason = str(error).replace("end of document", f"line {text.count(chr(10)) + 1}")
        raise Invalid(f"{path}: not valid {path.suffix[1:].upper()}: {reason}.") from error
    if content is not None and not isinstance(content, Mapping):
        raise Invalid(f"{path}: must hold a table of settings.")
    # An empty YAML file parses as None.
    return content or {}


def _parse_yaml(text: str) -> object:
    """Parse YAML with plain words kept as strings: by default `off` and `no` are false, and 007 is 7."""
    # Imported here because it is slow to load and most installations have no YAML file.
    yaml = importlib.import_module("yaml")
    kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    words = {start: [each for each in pairs if each[0] in kept] for start, pairs in resolvers.items()}
    loader = type("WordLoader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": words})
    try:
        return yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        # The message of the error quotes the line, which may hold a secret.
        raise ValueError(f"{error.problem} (at line {error.problem_mark.line + 1})") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"a character that is not allowed (at line {line})") from None


_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".toml": lambda text: tomllib.loads(text),
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": json.loads,
}
