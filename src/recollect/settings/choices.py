"""What a user may choose: every setting, once, as a field of `Settings`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, get_type_hints

from recollect.errors import Invalid
from recollect.settings.sources import PREFIX, SHARED_FILE, from_environment, from_table, read_file, settings_files
from recollect.settings.values import SettingRow, as_text, setting, shown


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
    tokenizer: str = setting(
        "estimate",
        "How tokens are counted: `estimate` (UTF-8 bytes / 4, a tenth more for JSON), or "
        "`tiktoken:<encoding or model>` when its file has been downloaded before.",
    )
    tiktoken_cache_dir: Path | None = setting(
        None,
        "The folder tiktoken keeps its files in; empty means its own default.",
        environment=("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"),
    )
    openai_model: str = setting(
        "",
        "The language model that is asked at the endpoint; empty means none, and everything works without one.",
        aliases=("openai.model",),
        environment=("OPENAI_MODEL",),
    )
    openai_timeout: float = setting(60.0, "Seconds a model's answer may take, retries included.", low=0.001)
    openai_summary_model: str = setting(
        "",
        "Another model for summaries of conversations.",
        aliases=("openai.summaryModel",),
        environment=("OPENAI_SUMMARY_MODEL",),
    )
    openai_summary_base_url: str = setting(
        "",
        "Another endpoint for summaries of conversations.",
        aliases=("openai.summaryBaseURL",),
        environment=("OPENAI_SUMMARY_URL",),
    )
    openai_summary_api_key: str = setting(
        "",
        "Another key for summaries of conversations; it is never shown.",
        aliases=("openai.summaryApiKey",),
        environment=("OPENAI_SUMMARY_API_KEY",),
        is_secret=True,
    )
    openai_summary_timeout: float = setting(30.0, "Seconds a summary may take; 0 means `openai_timeout`.", low=0)
    openai_fast_model: str = setting(
        "",
        "Another model for what must be quick, such as fitting a prompt into its budget.",
        aliases=("openai.fastModel",),
        environment=("OPENAI_FAST_MODEL",),
    )
    openai_fast_base_url: str = setting(
        "", "Another endpoint for the fast model.", aliases=("openai.fastBaseURL",), environment=("OPENAI_FAST_URL",)
    )
    openai_fast_api_key: str = setting(
        "",
        "Another key for the fast model; it is never shown.",
        aliases=("openai.fastApiKey",),
        environment=("OPENAI_FAST_API_KEY",),
        is_secret=True,
    )
    openai_fast_timeout: float = setting(0.0, "Seconds the fast model may take; 0 means `openai_timeout`.", low=0)
    summary_enabled: bool = setting(
        False, "Whether the oldest turns of a long conversation are folded into a summary.", aliases=("summaryEnabled",)
    )
    summary_threshold: int = setting(
        40, "How many messages without a summary a conversation may have.", low=1, aliases=("summaryThreshold",)
    )
    summary_keep_last: int = setting(
        12, "How many of the newest messages stay as they were said.", low=0, aliases=("summaryKeepLast",)
    )
    summary_input_chars: int = setting(
        60_000, "Characters of old turns in one request for a summary; longer turns are shortened.", low=1_000
    )
    capture_turns: bool = setting(
        False, "Whether the messages of a logged turn are also remembered as episodes, and so can be recalled."
    )
    capture_threshold: int = setting(
        500, "Tokens an output may have before it is stored whole and a reference takes its place.", low=1
    )
    detail_summary: Literal["rules", "model"] = setting(
        "rules",
        "Who says what a captured output is: rules alone, or also the fast model, in one call for each output.",
    )
    busy_timeout: float = setting(
        10.0, "Seconds to wait for a database that someone else is writing to.", low=0, high=86_400
    )
    pool_size: int = setting(10, "How many connections to a database server may be open at once.", low=1)
    index_cache_mb: int = setting(256, "Megabytes of memory that vector indexes may keep between searches.", low=1)
    weight_similarity: float = setting(0.5, "How much likeness to the question counts in recall.", low=0, high=1)
    weight_recency: float = setting(0.2, "How much being recent counts in recall.", low=0, high=1)
    weight_importance: float = setting(0.2, "How much importance counts in recall.", low=0, high=1)
    weight_source: float = setting(0.1, "How much trust in where a memory came from counts in recall.", low=0, high=1)
    similarity_words: float = setting(
        0.67, "The share of matching words in likeness; the rest is matching meaning.", low=0, high=1
    )
    recall_deadline: float = setting(
        2.0,
        "Seconds a recall has for its sources; a source that is late is named, and the others' answers stand.",
        low=0.01,
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
    suspicious: Literal["last", "hold", "show"] = setting(
        "last",
        "What happens to a memory from a tool, an import or a model that reads like instructions: shown last, with a "
        "mark; held until somebody approves it; or shown like any other.",
    )
    audit_key: str = setting(
        "",
        "The key of the audit log's hash chain, so that nobody without it can write the log anew unnoticed (at least "
        "16 characters, the same in every process, for good); it is never shown.",
        is_secret=True,
    )
    episode_quota: int = setting(10_000, "Live episodes an agent may have after maintenance.", low=1)
    context_budget: int = setting(
        8000, "Tokens a prompt may have: all messages with their frames, and what opens the answer.", low=1
    )
    context_layout: Literal["standard", "cache_stable"] = setting(
        "standard", "The order of a prompt; `cache_stable` puts what changes from call to call last."
    )
    context_calls_kept: int = setting(200, "Calls of each agent of which is kept what it was shown.", low=0)
    agent_layout: Literal["standard", "cache_stable"] = setting(
        "cache_stable", "The order of a prompt when recollect itself runs an agent (`chat`, `ask`, `POST /agent/run`)."
    )
    agent_max_rounds: int = setting(
        8, "How often the model is asked for one answer: each round of tools takes one.", low=1, high=100
    )
    agent_timeout: float = setting(
        300.0, "Seconds a whole answer of an agent may take, all rounds and tools included.", low=0.001
    )
    host: str = setting("127.0.0.1", "The address the server listens on.")
    port: int = setting(8077, "The port the server listens on; 0 takes any free one.", low=0, high=65535)
    skills: tuple[str, ...] = setting(
        (), "Folders with SKILL.md files, each of which teaches agents something (see knowledge.md)."
    )
    public_hosts: tuple[str, ...] = setting(
        (), "Names the server also answers to, such as memory.example.org, when it is reached through a proxy."
    )
    rate_limit: float = setting(1000.0, "Requests a second each key may make on average; 0 sets no limit.", low=0)
    rate_burst: int = setting(2000, "Requests each key may make at once before the average counts.", low=1)
    max_connections: int = setting(512, "Connections each address may have open; 0 sets no limit.", low=0)
    max_failed_keys: int = setting(
        60, "Wrong keys each address may send in a minute before it is answered 429; 0 sets no limit.", low=0
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of reverse proxies: what they say in X-Forwarded-For is believed, and they may have any "
        "number of connections open.",
    )
    otel_endpoint: str = setting(
        "",
        "The OpenTelemetry collector the server sends spans to, such as http://127.0.0.1:4318; empty sends none.",
    )
    max_requests: int = setting(128, "Requests the server has under way at most; the rest is told to try again.", low=1)
    request_timeout: float = setting(
        30.0,
        "Seconds the server may work on a request before it stops; the time to send it does not count.",
        low=1,
    )
    transfer_timeout: float = setting(
        1800.0, "The same for an import or an export. Erasing and maintenance are seen through.", low=1
    )
    consolidation: Literal["propose", "apply"] = setting(
        "propose",
        "What `consolidate` does with what it finds: leaves it for somebody to decide, or applies at once what is "
        "trusted enough (never a core memory worded by a model).",
    )
    tool_sets: tuple[str, ...] = setting(
        ("notes", "journal", "recall", "details"), "The groups of tools that are offered to a model."
    )

    def __post_init__(self) -> None:
        """Raises: Invalid when a number is out of bounds."""
        for each in fields(self):
            value, low, high = getattr(self, each.name), each.metadata["low"], each.metadata["high"]
            if isinstance(value, int | float) and not isinstance(value, bool) and not low <= value <= high:
                raise Invalid(f"The setting {each.name} is a number from {low} to {high:,}.")

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
        for path in settings_files(folder or Path(), variables):
            chosen |= from_table(str(path), read_file(path), known, is_shared=path.name == SHARED_FILE)
        chosen |= from_environment(variables, known)
        chosen |= from_table("flags", flags or {}, known)
        return cls(**chosen)

    @property
    def store_url(self) -> str:
        """`url`, or the default place when it is empty."""
        return self.url or default_url()

    def __repr__(self) -> str:
        values = ", ".join(f"{each.name}={shown(getattr(self, each.name), each)}" for each in table(type(self)))
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
        rows.append(SettingRow(name=each.name, default=as_text(each.default), kind=kinds[each.name], **said))
    return rows
