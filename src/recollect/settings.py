"""Every setting, once: its name, default, meaning and aliases are the fields of `Settings`.

Files, environment and flags are read into the same shape (key and value), matched against that one table and
converted by the type of the field. So a new setting is one line below, and every source understands it.
A key nobody knows is an error that names the nearest known one: a typing mistake never becomes a silent default.
"""

from __future__ import annotations

import difflib
import importlib
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, Self, TypeVar, get_args, get_origin, get_type_hints

from recollect.errors import Invalid

T = TypeVar("T")

FILES = ("recollect.toml", "recollect.yaml", "recollect.yml", "agent.json")
SHARED_FILE = "agent.json"  # other programs keep their settings in it too
OWN_TABLE = "memory"  # the table of a shared file that is ours alone
PREFIX = "RECOLLECT_"
CONFIG_VARIABLE = "RECOLLECT_CONFIG"
TEST_PREFIX = "RECOLLECT_TEST_"
MASK = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting: a line of the table in the documentation, and how every source matches and checks it."""

    name: str
    default: str
    meaning: str
    aliases: tuple[str, ...]
    environment: tuple[str, ...]  # the first one that is set wins
    kind: object  # the annotated type
    is_secret: bool
    low: float
    high: float


def setting(
    default: T,
    meaning: str,
    *,
    aliases: tuple[str, ...] = (),
    environment: tuple[str, ...] = (),
    is_secret: bool = False,
    low: float = -math.inf,
    high: float = math.inf,
) -> T:
    """A field of `Settings`; `low` and `high` are the smallest and the largest number allowed."""
    words = {"meaning": meaning, "aliases": aliases, "environment": environment}
    return field(default=default, metadata=words | {"is_secret": is_secret, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user may choose. `load` reads it; a program may also build it directly."""

    url: str = setting("", "Where memories are kept; empty means a SQLite file in the user's data folder.")
    tenant: str = setting("default", "The tenant that is meant when none is named.")
    agent: str = setting("default", "The agent that is meant when none is named.")
    embedder: str = setting(
        "static",
        "What turns text into vectors: `static` (built in), `off`, `openai:<model>` for an OpenAI-compatible endpoint, "
        "or `onnx:<folder>`.",
    )
    openai_api_key: str = setting(
        "",
        "The key sent to the OpenAI-compatible endpoint; it is never shown.",
        aliases=("openai.apiKey",),
        environment=("OPENAI_API_KEY",),
        is_secret=True,
    )
    openai_base_url: str = setting(
        "https://api.openai.com/v1",
        "The address of the OpenAI-compatible endpoint.",
        aliases=("openai.baseURL",),
        environment=("OPENAI_BASE_URL",),
    )
    busy_timeout: float = setting(10.0, "Seconds to wait for a database that someone else is writing to.", low=0)
    pool_size: int = setting(10, "How many connections to a database server may be open at once.", low=1)
    index_cache_mb: int = setting(256, "Megabytes of memory that vector indexes may keep between searches.", low=1)
    weight_similarity: float = setting(0.5, "How much likeness to the question counts in recall.", low=0, high=1)
    weight_recency: float = setting(0.2, "How much being recent counts in recall.", low=0, high=1)
    weight_importance: float = setting(0.2, "How much importance counts in recall.", low=0, high=1)
    weight_source: float = setting(0.1, "How much trust in where a memory came from counts in recall.", low=0, high=1)
    similarity_words: float = setting(
        0.5, "The share of matching words in likeness; the rest is matching meaning.", low=0, high=1
    )
    workspace: Path | None = setting(
        None, "A folder whose `.aegis/memory/memories.jsonl` holds the notes of the agent that works there."
    )
    inject_mode: Literal["relevant", "recent_only", "off", "hybrid"] = setting(
        "relevant",
        "Which notes enter a prompt: those that fit the last message, or the newest.",
        aliases=("memory.inject_mode",),
    )
    max_inject_chars: int = setting(
        2000, "Characters of notes that may enter one prompt.", low=0, aliases=("memory.max_inject_chars",)
    )
    max_inject_count: int = setting(10, "Notes that may enter one prompt.", low=0, aliases=("memory.max_inject_count",))
    max_total: int = setting(500, "Notes an agent keeps; the oldest make room.", low=1, aliases=("memory.max_total",))
    secrets: Literal["reject", "redact", "flag"] = setting(
        "reject", "What happens to a text that holds a secret: refused, stored without it, or stored with a mark."
    )
    episode_quota: int = setting(10_000, "Live episodes an agent may have after maintenance.", low=1)
    host: str = setting("127.0.0.1", "The address the server listens on.")
    port: int = setting(8077, "The port the server listens on; 0 takes any free one.", low=0, high=65535)
    tool_sets: tuple[str, ...] = setting(
        ("notes", "journal", "recall", "details"), "The groups of tools that are offered to a model."
    )

    @classmethod
    def load(
        cls,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Self:
        """Settings from the files in `folder` (default: the current one), then the environment, then flags; later wins.

        Every source is checked in full, also where a later one wins. A flag that is None was not given.
        Raises: Invalid (an unknown key, a value that does not fit, a file that cannot be read).
        """
        variables = os.environ if environment is None else environment
        known = table(cls)
        chosen: dict[str, Any] = {}
        for path in _files(folder or Path(), variables):
            chosen |= _from_table(str(path), _read(path), known, is_shared=path.name == SHARED_FILE)
        chosen |= _from_environment(variables, known)
        chosen |= _from_table("flags", flags or {}, known)
        return cls(**chosen)

    @property
    def store_url(self) -> str:
        """`url`, or the default place when it is empty."""
        return self.url or default_url()

    def __repr__(self) -> str:
        values = ", ".join(f"{each.name}={_shown(getattr(self, each.name), each)}" for each in table(type(self)))
        return f"{type(self).__name__}({values})"


def default_url(environment: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> str:
    """The SQLite file in the user's data folder.

    Raises: Invalid (the user has no home folder).
    """
    variables = os.environ if environment is None else environment
    named = Path(variables.get("LOCALAPPDATA" if platform == "win32" else "XDG_DATA_HOME", ""))
    if platform != "darwin" and named.is_absolute():  # a relative one is to be ignored, says the XDG specification
        folder = named
    else:
        below = {"win32": "AppData/Local", "darwin": "Library/Application Support"}.get(platform, ".local/share")
        try:
            folder = Path(variables.get("HOME") or Path.home()) / below
        except RuntimeError as error:
            raise Invalid(f"There is no home folder to keep memories in; set {PREFIX}URL.") from error
    return f"sqlite:///{(folder / 'recollect' / 'recollect.db').as_posix()}"


def table(settings: type[Settings] = Settings) -> Sequence[SettingRow]:
    """Every setting, in the order of `Settings`."""
    kinds = get_type_hints(settings)
    rows = []
    for each in fields(settings):
        said = dict(each.metadata)
        said["environment"] = (PREFIX + each.name.upper(), *said["environment"])
        rows.append(SettingRow(name=each.name, default=_as_text(each.default), kind=kinds[each.name], **said))
    return rows


def markdown(rows: Sequence[SettingRow]) -> str:
    """The table of the documentation."""
    lines = ["| Setting | Default | Meaning | Also in files as | Environment |", "|---|---|---|---|---|"]
    for row in rows:
        aliases, environment = (", ".join(f"`{name}`" for name in names) for names in (row.aliases, row.environment))
        default = f"`{row.default}`" if row.default else "(empty)"
        cells = (f"`{row.name}`", default, row.meaning, aliases, environment)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _files(folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    yield from (path for name in FILES if (path := folder / name).is_file())
    if named := variables.get(CONFIG_VARIABLE):
        yield Path(named).expanduser()


def _from_environment(variables: Mapping[str, str], known: Sequence[SettingRow]) -> dict[str, Any]:
    own_names = {each.environment[0] for each in known}
    for name in sorted(variables):
        is_ours = name.startswith(PREFIX) and name != CONFIG_VARIABLE and not name.startswith(TEST_PREFIX)
        if is_ours and variables[name] and name not in own_names:
            _reject_unknown("environment", name, own_names)
    chosen: dict[str, Any] = {}
    for each in known:
        if given := [name for name in each.environment if variables.get(name)]:
            chosen[each.name] = _converted(variables[given[0]], each, source="environment", key=given[0])
    return chosen


def _from_table(
    source: str, content: Mapping[str, object], known: Sequence[SettingRow], *, is_shared: bool = False
) -> dict[str, Any]:
    """What a file (or the flags) sets. A setting's own name wins over an alias, and our own table over the rest."""
    by_key = {key: each for each in known for key in (each.name, *each.aliases)}
    tables = {OWN_TABLE} | {key.rpartition(".")[0] for key in by_key if "." in key}
    found: dict[str, tuple[bool, bool, object]] = {}
    for key, value in _flat(content):
        if is_shared and "." not in key and key != OWN_TABLE:
            continue  # another program's: a plain "url" or "port" in a shared file need not be meant for us
        own_key = key.removeprefix(f"{OWN_TABLE}.")
        if each := by_key.get(key) or by_key.get(own_key):
            if value is None:
                continue
            converted = _converted(value, each, source=source, key=key)
            standing = (own_key != key, own_key == each.name, converted)
            if each.name not in found or standing[:2] >= found[each.name][:2]:
                found[each.name] = standing
        elif is_shared and key.partition(".")[0] != OWN_TABLE:
            continue  # another program's
        elif key not in tables:
            _reject_unknown(source, key, tables.union(by_key))
        elif value is not None and value != {}:
            raise Invalid(f'{source}: "{key}" must be a table of settings.')
    return {name: value for name, (_, _, value) in found.items()}


def _flat(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Nested tables as dotted keys.

    >>> list(_flat({"openai": {"baseURL": "http://localhost"}, "port": 1}))
    [('openai.baseURL', 'http://localhost'), ('port', 1)]
    """
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _reject_unknown(source: str, key: str, known: Iterable[str]) -> NoReturn:
    # Sorted, so that of two names that fold alike the same one is always named: the plain one.
    folded = {each.removeprefix(f"{OWN_TABLE}.").casefold(): each for each in sorted(known, reverse=True)}
    nearest = difflib.get_close_matches(key.removeprefix(f"{OWN_TABLE}.").casefold(), folded, n=1, cutoff=0)
    raise Invalid(f'{source}: there is no setting "{key}"; the nearest one is "{folded[nearest[0]]}".')


def _read(path: Path) -> Mapping[str, object]:
    """Raises: Invalid, which says where if the file is broken."""
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
    return content or {}  # an empty YAML file is None


def _parse_yaml(text: str) -> object:
    """YAML whose plain words stay words: by its own rules `off` and `no` would be false, and 007 would be 7."""
    yaml = importlib.import_module("yaml")  # slow to load, and most installations have no YAML file
    kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    words = {start: [each for each in pairs if each[0] in kept] for start, pairs in resolvers.items()}
    loader = type("WordLoader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": words})
    try:
        return yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:  # its own text quotes the line, which may hold a secret
        raise ValueError(f"{error.problem} (at line {error.problem_mark.line + 1})") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"a character that is not allowed (at line {line})") from None


_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": json.loads,
}


def _converted(value: object, known: SettingRow, *, source: str, key: str) -> object:
    """Raises: Invalid, which says what was given (unless it is a secret) and what is expected."""
    kinds = [each for each in get_args(known.kind) if each is not NoneType]
    is_optional = len(kinds) < len(get_args(known.kind))
    if is_optional and value == "":
        return None
    kind = kinds[0] if is_optional else known.kind
    expected, accepted, convert = _choice(kind) if get_origin(kind) is Literal else _KINDS[kind]
    if (known.low, known.high) != (-math.inf, math.inf):
        expected += f" from {known.low} up" if known.high == math.inf else f" from {known.low} to {known.high}"
    refusal = Invalid(f"{source}: {key} was given {_shown(value, known)}; expected {expected}.")
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):  # a bool is an int, too
        raise refusal
    try:
        converted = convert(value)
    except (KeyError, ValueError, OverflowError):
        raise refusal from None  # the cause would quote the value, which may be a secret
    if isinstance(converted, (int, float)) and not (math.isfinite(converted) and known.low <= converted <= known.high):
        raise refusal
    return converted


def _shown(value: object, known: SettingRow) -> str:
    """A value for human eyes: no secret, no password inside a URL."""
    if known.is_secret and value:
        return MASK
    return masked(repr(value))


def masked(text: str) -> str:
    """`text` without the password of any URL in it.

    >>> masked("postgresql://app:hunter2@db/memories")
    'postgresql://app:***@db/memories'
    """
    without_password = re.sub(r"(://[^:/\s]*:)\S*@", rf"\1{MASK}@", text)
    return re.sub(r"([?&]password=)[^&'\"\s]*", rf"\1{MASK}", without_password)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _texts(value: str | Sequence[object]) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not all(isinstance(item, str) for item in items):
        raise ValueError("not all of it is text")
    return tuple(text for item in items if (text := str(item).strip()))


def _choice(kind: object) -> _Conversion:
    choices = {each: each for each in get_args(kind)}
    return "one of " + ", ".join(f'"{each}"' for each in choices), (str,), choices.__getitem__


_Conversion = tuple[str, tuple[type, ...], Callable[[Any], object]]  # what is expected, accepted types, how to convert
_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_KINDS: Mapping[object, _Conversion] = {
    str: ("text (in quotes)", (str,), str),
    int: ("a whole number", (int, str), int),
    float: ("a number", (int, float, str), float),
    bool: ("true or false", (bool, str), lambda value: _WORDS[str(value).strip().lower()]),
    Path: ("a path", (str, Path), lambda value: Path(value).expanduser()),
    tuple[str, ...]: ("a list of words", (str, list, tuple), _texts),
}

if __name__ == "__main__":
    sys.stdout.write(markdown(table()) + "\n")
