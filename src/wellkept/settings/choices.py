"""All settings, as fields of `Settings`, and the origin of each value in force."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, cast, get_type_hints

from wellkept.errors import Invalid
from wellkept.program import PROGRAM
from wellkept.settings.sources import (
    PREFIX,
    SHARED_FILE,
    from_environment,
    from_table,
    read_file,
    settings_files,
    warn_of_former_settings,
)
from wellkept.settings.values import MASK, SettingRow, convert_value, masked, render_default, render_value, setting

DAYS: Mapping[str, Any] = {"low": 0, "high": 36_500}
"""Bounds of lifetimes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a store and its server. `load` reads them; a program may also build them directly.

    Values are checked either way. Raises: Invalid.
    """

    url: str = setting("", "URL or path of the database; empty means a SQLite file in the user's data folder.")
    tenant: str = setting("default", "Default tenant.")
    agent: str = setting("default", "Default agent.")
    embedder: str = setting(
        "minilm",
        "Embedding model: `minilm` (built in), `off`, `openai:<model>` for an OpenAI-compatible endpoint, "
        "or `onnx:<folder>`.",
    )
    openai_api_key: str = setting(
        "", "Key of the OpenAI-compatible endpoint; never shown.", "openai.apiKey", "OPENAI_API_KEY", is_secret=True
    )
    openai_base_url: str = setting(
        "https://api.openai.com/v1", "Address of the OpenAI-compatible endpoint.", "openai.baseURL", "OPENAI_BASE_URL"
    )
    tokenizer: str = setting(
        "estimate",
        "Token counter: `estimate` (UTF-8 bytes / 4, a tenth more for JSON), or "
        "`tiktoken:<encoding or model>`, whose file must have been downloaded before.",
    )
    openai_model: str = setting(
        "",
        "Language model at the endpoint; empty means none. All features work without one.",
        "openai.model",
        "OPENAI_MODEL",
    )
    openai_timeout: float = setting(
        60.0, "Seconds an answer of any of the models may take, retries included.", low=0.001
    )
    openai_summary_model: str = setting(
        "", "Another model for summaries of conversations.", "openai.summaryModel", "OPENAI_SUMMARY_MODEL"
    )
    openai_summary_base_url: str = setting(
        "", "Another endpoint for summaries of conversations.", "openai.summaryBaseURL", "OPENAI_SUMMARY_URL"
    )
    openai_summary_api_key: str = setting(
        "",
        "Another key for summaries of conversations; never shown.",
        "openai.summaryApiKey",
        "OPENAI_SUMMARY_API_KEY",
        is_secret=True,
    )
    openai_fast_model: str = setting(
        "",
        "Another model for quick answers, such as fitting a prompt into its budget.",
        "openai.fastModel",
        "OPENAI_FAST_MODEL",
    )
    openai_fast_base_url: str = setting(
        "", "Another endpoint for the fast model.", "openai.fastBaseURL", "OPENAI_FAST_URL"
    )
    openai_fast_api_key: str = setting(
        "", "Another key for the fast model; never shown.", "openai.fastApiKey", "OPENAI_FAST_API_KEY", is_secret=True
    )
    summary_enabled: bool = setting(
        False, "Fold the oldest turns of a long conversation into a summary.", "summaryEnabled"
    )
    summary_threshold: int = setting(
        40, "Messages a conversation may have before the oldest are summarised.", "summaryThreshold", low=1
    )
    summary_keep_last: int = setting(12, "Newest messages that are never summarised.", "summaryKeepLast", low=0)
    remember_turns: bool = setting(
        True,
        "Remember logged turns: their messages can be recalled, and what users state in them becomes facts. Off: only "
        "their transcripts are kept.",
    )
    capture_threshold: int = setting(
        500, "Tokens an output may have before it is stored and replaced by a reference.", low=1
    )
    detail_summary: Literal["rules", "model"] = setting(
        "rules", "Descriptions of captured output: by rules alone, or also by the fast model, with one call per output."
    )
    busy_timeout: float = setting(
        10.0, "Seconds to wait for a database that another process is writing to.", low=0, high=86_400
    )
    pool_size: int = setting(10, "Largest number of open connections to a database server.", low=1)
    prepare_threshold: int = setting(
        5,
        "Executions after which PostgreSQL keeps a prepared statement; 0: never, for poolers in transaction mode.",
        low=0,
    )
    owner_url: str = setting(
        "",
        "URL of the role that owns the tables of PostgreSQL and upgrades them at start, if the one in `url` owns "
        "nothing; never shown.",
        is_secret=True,
    )
    index_cache_mb: int = setting(256, "Megabytes of memory for vector indexes kept between searches.", low=1)
    weight_similarity: float = setting(0.5, "Weight of similarity to the question in recall.", low=0, high=1)
    weight_recency: float = setting(0.2, "Weight of recency in recall.", low=0, high=1)
    weight_importance: float = setting(0.2, "Weight of importance in recall.", low=0, high=1)
    weight_source: float = setting(0.1, "Weight of trust in a memory's origin in recall.", low=0, high=1)
    recall_deadline: float = setting(
        2.0, "Seconds a recall has for its sources; a slower source is skipped and listed as unanswered.", low=0.01
    )
    workspace: Path | None = setting(
        None, "Folder with the file `.aegis/memory/memories.jsonl`, which holds the notes of the agent working there."
    )
    inject_mode: Literal["relevant", "recent_only", "off", "hybrid"] = setting(
        "hybrid",
        "Notes that enter a prompt: `hybrid` all if they fit, else the most relevant and the newest; `relevant` those "
        "that share a word with the last message.",
        "memory.inject_mode",
    )
    max_inject_chars: int = setting(
        2000, "Characters of notes that may enter one prompt.", "memory.max_inject_chars", low=0
    )
    max_inject_count: int = setting(10, "Notes that may enter one prompt.", "memory.max_inject_count", low=0)
    max_total: int = setting(
        500, "Notes an agent may have for each user, and of no user; the oldest are deleted.", "memory.max_total", low=1
    )
    secrets: Literal["reject", "redact", "flag"] = setting(
        "reject",
        "Handling of a text that holds a secret: refuse it, store it without the secret, or store it with a mark.",
    )
    suspicious: Literal["last", "hold", "show"] = setting(
        "last",
        "Handling of a memory from a tool, an import or a model that reads like instructions: show it last, with a "
        "mark; hold it until it is approved; or show it like any other.",
    )
    audit_key: str = setting(
        "",
        "Key of the audit log's hash chain, without which the log cannot be rewritten unnoticed (at least "
        "16 characters, the same in every process, permanently); never shown.",
        is_secret=True,
    )
    export_key: str = setting(
        "",
        "Key that signs exports, and by which an import recognises files that are trusted (at least 16 characters, the "
        "same in every store that exchanges files); never shown.",
        is_secret=True,
    )
    lifetime_routine: int = setting(
        7, "Days an episode lives that is small talk, a reaction or an empty question.", **DAYS
    )
    lifetime_error: int = setting(14, "Days an episode lives that reports an error.", **DAYS)
    lifetime_task_completion: int = setting(30, "Days an episode lives that reports a finished task.", **DAYS)
    lifetime_decision: int = setting(90, "Days an episode lives that reports a decision or an approval.", **DAYS)
    lifetime_fact: int = setting(0, "Days an episode lives that states anything else; 0 is unlimited for each.", **DAYS)
    gist_on_expiry: bool = setting(
        True, "Replace an expired decision, finished task, error or long answer by its gist, instead of archiving it."
    )
    episode_quota: int = setting(
        10_000, "Live episodes an agent may have after maintenance for each user, and of no user.", low=1
    )
    maintenance_interval: float = setting(
        3600.0,
        "Seconds between maintenance runs of a server, or of a program that stores or recalls; 0 runs none by itself, "
        "also not after many new memories.",
        low=0,
        high=31_536_000,
    )
    context_budget: int = setting(
        8000, "Tokens a prompt may have: all messages with their framing, and the opening of the answer.", low=1
    )
    context_layout: Literal["standard", "cache_stable"] = setting(
        "standard", "Order of a prompt; `cache_stable` puts the parts that change from call to call last."
    )
    context_memories: int = setting(8, "Recalled memories that may enter one prompt.", low=0, high=30)
    context_calls_kept: int = setting(200, "Assembled prompts kept in the log of each agent.", low=0)
    server: str = setting("http://127.0.0.1:8077", "Address of the server that a `Client` uses.")
    key: str = setting("", "API key of a `Client`; never shown.", is_secret=True)
    host: str = setting("127.0.0.1", "Address the server listens on.")
    port: int = setting(8077, "Port the server listens on; 0 takes any free one.", low=0, high=65535)
    workers: int = setting(
        0,
        "Processes that serve requests; 0: one for each processor, up to 4. A store in memory has one.",
        low=0,
        high=64,
    )
    skills: tuple[str, ...] = setting((), "Folders with SKILL.md files (see knowledge.md).")
    public_hosts: tuple[str, ...] = setting(
        (), "Host names the server also accepts, such as memory.example.org, when it is reached through a proxy."
    )
    rate_limit: float = setting(1000.0, "Average requests per second for each key; 0 sets no limit.", low=0)
    rate_burst: int = setting(2000, "Requests each key may make at once before the average applies.", low=1)
    max_connections: int = setting(512, "Open connections per address; 0 sets no limit.", low=0)
    max_failed_keys: int = setting(
        60, "Wrong keys per address and minute before it is answered 429; 0 sets no limit.", low=0
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of reverse proxies: their X-Forwarded-For is trusted, and they may have any "
        "number of connections open.",
    )
    otel_endpoint: str = setting(
        "", "OpenTelemetry collector for the server's spans, such as http://127.0.0.1:4318; empty sends none."
    )
    max_requests: int = setting(
        128, "Largest number of concurrent requests; further ones are answered with a request to retry.", low=1
    )
    request_timeout: float = setting(
        30.0,
        "Seconds the server may work on a request; the time to receive it does not count. Imports and exports have "
        "60 times as long, erasure and maintenance no limit.",
        low=1,
    )
    consolidation: Literal["apply", "propose", "off"] = setting(
        "apply",
        "What maintenance does about near-duplicates and contradicted facts: merge and end them where that is safe, "
        "propose everything, or nothing.",
    )
    tool_sets: tuple[str, ...] = setting(
        ("memory",),
        "Sets of tools that the MCP server offers: `memory`, `notes`, `journal`, `recall`, `details`, `items`, "
        "`admin`.",
    )

    @classmethod
    def load(
        cls,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Self:
        """Load settings from the files in `folder` (default: the current one), the environment and flags; later wins.

        Every source is checked in full, even where a later one wins. A flag that is None counts as not given.

        Raises: Invalid for an unknown key, a value of the wrong type or out of range, or an unreadable file.
        """
        variables = os.environ if environment is None else environment
        known, gone = table(cls), list[str]()
        values: dict[str, Any] = {}
        for path in settings_files(folder or Path(), variables):
            values |= from_table(str(path), read_file(path), known, gone, is_shared=path.name == SHARED_FILE)
        values |= from_environment(variables, known, gone)
        values |= from_table("flags", flags or {}, known, gone)
        warn_of_former_settings(folder or Path(), variables, gone)
        return cls(**values)

    def __post_init__(self) -> None:
        """Check values given in Python like those of files. Raises: Invalid."""
        for each, known in zip(fields(self), table(type(self)), strict=True):
            value = getattr(self, each.name)
            if value is not each.default:
                object.__setattr__(self, each.name, convert_value(value, known, source="Settings", key=each.name))

    @property
    def store_url(self) -> str:
        """The `url`, or the default location if it is empty."""
        return self.url or default_url()

    def __repr__(self) -> str:
        values = ", ".join(f"{each.name}={render_value(getattr(self, each.name), each)}" for each in table(type(self)))
        return f"{type(self).__name__}({values})"


def default_url(environment: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> str:
    """Return the URL of the SQLite file in the user's data folder. Raises: Invalid when the user has no home folder."""
    variables = os.environ if environment is None else environment
    named = Path(variables.get("LOCALAPPDATA" if platform == "win32" else "XDG_DATA_HOME", ""))
    # The XDG specification says to ignore relative paths.
    if platform != "darwin" and named.is_absolute():
        folder = named
    else:
        below = {"win32": "AppData/Local", "darwin": "Library/Application Support"}.get(platform, ".local/share")
        try:
            folder = Path(variables.get("HOME") or Path.home()) / below
        except RuntimeError as error:
            raise Invalid(f"There is no home folder to keep memories in; set {PREFIX}URL.") from error
    return f"sqlite:///{(folder / PROGRAM / f'{PROGRAM}.db').as_posix()}"


def table(settings: type[Settings] = Settings) -> Sequence[SettingRow]:
    """Return the definition of every setting, in the order of `Settings`."""
    return _build_table(cast(Hashable, settings))


@cache
def _build_table(settings: Any) -> Sequence[SettingRow]:
    kinds = get_type_hints(settings)
    rows = []
    for each in fields(settings):
        metadata = dict(each.metadata)
        metadata["environment"] = (PREFIX + each.name.upper(), *metadata["environment"])
        rows.append(SettingRow(name=each.name, default=render_default(each.default), kind=kinds[each.name], **metadata))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting's current value, without secrets, and its origin."""

    name: str
    value: str | float | list[str]
    source: str
    default: str
    environment: str
    meaning: str


def describe_settings(current: Settings, flags: Mapping[str, object] | None = None) -> Sequence[SettingValue]:
    """Return every setting with its origin: default, file, environment or flag.

    Raises: Invalid when a settings file can no longer be read.
    """
    in_files = Settings.load(environment={})
    return [_read_setting(row, current, in_files, flags or {}) for row in table()]


def _read_setting(row: SettingRow, current: Settings, in_files: Settings, flags: Mapping[str, object]) -> SettingValue:
    value = getattr(current, row.name)
    if flags.get(row.name) is not None:
        source = "flag"
    elif value != getattr(in_files, row.name):
        source = "environment"
    else:
        source = "default" if value == getattr(Settings(), row.name) else "file"
    return SettingValue(
        name=row.name,
        # An empty URL says little; the store has a default place.
        value=_mask_secrets(current.store_url if row.name == "url" else value, row),
        source=source,
        default=row.default,
        environment=row.environment[0],
        meaning=row.meaning,
    )


def _mask_secrets(value: str | float | tuple[str, ...], row: SettingRow) -> str | float | list[str]:
    if row.is_secret and value:
        return MASK
    if isinstance(value, str):
        return masked(value)
    return list(value) if isinstance(value, tuple) else value
