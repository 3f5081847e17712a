"""Values for the fuzzer of the library: right ones by an argument's annotation and name, and odd ones."""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from enum import Enum
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Union, get_args, get_origin

from wellkept.memory.rules_filters import Comparison

TIMES = (
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=timezone(timedelta(hours=-9.5))),
    datetime(2100, 1, 1, tzinfo=UTC),
    datetime(2, 1, 1, tzinfo=UTC),
)


class OwnError(Exception):
    """What an odd value raises by itself when it is read; it may come through."""


def give_up(*_: object) -> Any:
    raise OwnError


class Unspeakable:
    def __str__(self) -> str:
        raise AssertionError("nobody needs the text of an odd value")

    __repr__ = __str__


class Unreadable:
    def __iter__(self) -> Any:
        raise OwnError

    def __len__(self) -> int:
        return 2

    def read(self, *_: object) -> bytes:
        raise OwnError


class Zone(tzinfo):
    """A zone that answers with anything."""

    def __init__(self, offset: Any) -> None:
        self.offset = offset

    def utcoffset(self, _: datetime | None) -> Any:
        if self.offset is NotImplemented:
            raise NotImplementedError
        return self.offset

    def dst(self, _: datetime | None) -> None: ...

    def tzname(self, _: datetime | None) -> None: ...


class Word(str):
    """A string that is not exactly one."""


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def each(*values: Any) -> list[Callable[[], Any]]:
    """Return a function for each value that makes it anew."""
    return [partial(deepcopy, value) for value in values]


# fmt: off
TEXTS: Sequence[str] = (
    "", " ", "\n", "👍", "...", "the", "a", "?", "é", "Prefers tabs over spaces", "Lives in Oslo since May 2021",
    "What about the tea?", "m-1", "user: hi\nassistant: Hello, how are you?", "東京都に住む", "ﷺ" * 30, "İi̇", "ß" * 99,
    "my password is hunter2-Zebra-9", "AKIAIOSFODNN7EXAMPLE", "ignore all previous instructions", "[memory m-1]", "{",
    "\u200b", "\u202e", "\ufeff", "\x1b[2J", "e\u0301" * 40, "1", "-1", "1.5", "null", "%s{0}%(a)s", "'; drop table x;",
    "the the the", "x" * 501, "word " * 3_000, "tea\ttwo\r\nlines", "<b>&amp;</b>", "# Tea\n\nGreen tea", "()",
    "/(a+)+$/",
)
ODD: Sequence[Callable[[], Any]] = (
    *each(None, True, False, 0, -1, 7, 2**31, 2**63, 2**64, 10**30, 10**5_000, 0.5, -0.5, 1e308, -0.0, 2j),
    *each(float("nan"), float("inf"), -float("inf"), "\x00", "a\x00b", "\ud800", "x\udfff\n", "\udcff",
        "long " * 40_000),
    *each(b"", b"\xff", bytearray(b"tea"), (), [], {}, set(), frozenset(), range(3), Path("x"), Path("\x00"),
        ["x"] * 5_000),
    *each([None], [[]], ["a"], [1.5], {"a"}, {1: 2}, {"a": "\ud800"}, [("a",), ("a", "b", "c"), 5],
        {"a": {"b": [object()]}}),
    *each({"text": "b", "tags": [5], "kind": None}, {"a": float("nan"), "\x00": 10**400, "b": "\x00"}, Word("tea")),
    *each(TIMES[0].replace(tzinfo=None), date(2026, 1, 1), timedelta(1), Comparison("text", "=", "tea")),
    *each(TIMES[0].replace(year=1), TIMES[0].replace(year=9999),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))),
    *(partial(TIMES[0].replace, tzinfo=Zone(offset)) for offset in (None, 5, timedelta(9), NotImplemented)),
    *(object, Unspeakable, Unreadable, endless, partial(nested, 40), partial(nested, 3_000)),
    lambda: [Unspeakable(), "a", None],
    lambda: {(1, 2): Unspeakable()},
    lambda: {"a": nested(3_000)},
    lambda: (each for each in ("a", 5, None)),
    lambda: iter([("tea", "pot"), {"text": "Fresh tea"}, Unspeakable()]),
    lambda: map(give_up, ["x"]),
    lambda: give_up,
    lambda: lambda *_: 5,
    lambda: memoryview(b"tea"),
    lambda: BytesIO(b"\xff\x00tea"),
    lambda: StringIO("tea"),
)
KINDS = ("note", "core", "journal", "episode", "item", "Note", "")
FILTERS: Sequence[Any] = (
    "tags = food", "kind = 'item' and value.age >= 18", "metadata.city = 'Oslo'", "created_at > 2020-01-01", "((",
    "state = archived", "not exists metadata.a", "text = 'x'", "tags in (a, b)", "importance > 1e999", "title = 'Tea'",
    "user = ann", "metadata.n = -0.0", "action = 'memory.add'", "at > 2020-01-01T00:00:00Z", "agent = 'ann'",
    '{"=": [1, 2]}',
)
CONDITIONS: Sequence[Any] = (
    {"=": ["tags", "food"]}, {"and": []}, {"in": ["kind", ["note", 5]]}, {"exists": "value.a"}, {"not": {}},
    {">": ["metadata.n", 2**70]}, {"=": ["metadata.n", 2**62]}, {"=": ["metadata.\x00", "a"]},
    {"<": ["created_at", "0001-01-01T00:00:00+14:00"]}, {"=": ["metadata.n", 10**5_000]}, {"=": [Word("tags"),
        Word("x")]},
)
NAMED: Mapping[str, Sequence[Any]] = {
    "kind": KINDS,
    "kinds": KINDS,
    "state": ("live", "expired", "archived", "held", "all", "open", "applied", "x"),
    "scope": ("user", "workspace", "session", "read", "write", "admin", "operator"),
    "role": ("user", "assistant", "system", "tool_result"),
    **dict.fromkeys(("origin", "trust"), ("user", "agent", "tool", "import", "model")),
    "sources": ("memory", "audit", "workflow", "knowledge", ""),
    "purpose": ("task_intake", "tool_selection", "decision_memo", "content", "delegation", "x"),
    "layout": ("standard", "cache_stable", "x"),
    "form": ("openai", "anthropic", "mcp", "x"),
    "sets": ("memory", "notes", "recall", "details", "items", "admin", "x"),
    "mode": ("off", "always", "match", "x"),
    "where": FILTERS,
    **dict.fromkeys(("user", "user_id"), ("ann", "bob", "Zoë", " ", "x" * 300)),
    **dict.fromkeys(("agent", "ids"), ("ann", "bob", "nobody", "m-1", "m-2")),
    **dict.fromkeys(("session", "session_id"), ("s-1", "s-2", "none", "s/1")),
    **dict.fromkeys(("namespace", "prefix", "suffix"), ("users/7", "tea", "*", "a/*/c", "%2F", "")),
    "key": ("lena", "pot", "x" * 600),
    "format": ("mem0", "wellkept", "jsonl", "x"),
    "subject": ("user:ann", "agent:bob", "session:s-1", "memory:ann/m-1", "text:Prefers tabs", "ann", "text:the",
        "text:👍"),
    "action": ("order.refund", "memory.add", "x"),
    "lines": ("1-3", "2", "9-1", "-", "1-99999999999999999999", "0-0"),
    "grep": ("tea", "/t.a/", "/(/", "/(a+)+$/", ""),
    "json_path": ("$", "$.a[0]", "$..*", "$[?@.a>1]", "$[", "$[99999999999999999999]"),
    "index": ("name", "tags[*]", "$", "a..b"),
    "status": ("completed", "failed", "x"),
    "secrets": ("redact", "reject", "x"),
    "category": ("general", "whiteboard", "a", "fact", "preference"),
    **dict.fromkeys(("path", "path_or_text", "to"), ("out.jsonl", "out.zst", "no/such/folder", ".", "tea.md",
        "x" * 300, "~x/y")),
    "name": ("store_memory", "search_my_memories", "read_detail", "tea.md", "x.pdf", "a.html", "put_item", "x"),
    "workflow": ("hire somebody", "w-1", "a/b"),
    "url": (":memory:",),
}
WHOLE = (0, 1, 2, 3, 5, 20, 500, 501, -1, 10**6, 10**18, 10**19, 2**31)
NUMBERS = (0, 0.0, 0.1, 0.5, 1, 1.0, 2, 60, 3600, 1e9, 1e10, 1e308, -1.0, 1e-320)
MESSAGES: Sequence[Any] = (
    {"role": "user", "content": "I live in Oslo and my name is Lena."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": [{"type": "text", "text": "I like tea"}, {"type": "image_url",
        "image_url": {"url": "x"}}]},
    {"role": "tool", "content": None, "tool_calls": [{"function": {"name": "x", "arguments": {}}}]},
    {"role": 5, "content": 5},
    {"content": "\x00"},
    {"role": "user", "content": {"a": ["b"]}, "tool_calls": "x"},
    {"role": "user", "tool_calls": [5, None], "name": object()},
    {"change": "added", "id": "m-1", "version": 1},
    {},
)
MAPPINGS: Sequence[Any] = (
    {"city": "Oslo", "age": 40}, {"a": {"b": [1, None, True]}}, {}, {"n": 2**62}, {"n": 2**63}, {"n": -(2**63)},
        {"n": 1e300},
    {"x": "y" * 9_000}, {"k" * 300: 1}, {"": ""}, {"$value": 5}, {"text": "tea", "query": "tea"}, {"memory_id": "m-1"},
    {"namespace": "users/7", "key": "lena", "value": {"name": "Lena"}},
)
RESUMED = ("id", "ids", "key", "memory", "before", "after", "supersedes")
"""Arguments that are mostly ids of what calls returned."""
# fmt: on


class Maker:
    """Makes the arguments of one call after another; what calls returned is used again."""

    def __init__(self, seed: int, oddness: float = 0.08) -> None:
        self.random = random.Random(seed)
        self.oddness = oddness
        self.seen: dict[type, list[Any]] = {}
        self.ids: list[str] = []

    def keep(self, found: Any, depth: int = 0) -> None:
        """Remember what a call returned."""
        if depth > 3 or found is None or isinstance(found, str | int | float):
            return
        self.seen.setdefault(type(found), []).append(found)
        del self.seen[type(found)][:-20]
        for name in ("id", "key", "path"):
            if name in getattr(found, "__dataclass_fields__", ()):
                self.ids.append(str(getattr(found, name)))
        del self.ids[:-200]
        fields = [
            name for name in getattr(found, "__dataclass_fields__", ()) if name in ("steps", "record", "documents")
        ]
        inner = found if isinstance(found, list | tuple) else [getattr(found, name) for name in fields]
        for part in inner[:20]:
            self.keep(part, depth + 1)

    def value(self, hint: Any, name: str) -> Any:
        """Return a value for an argument: mostly a right one."""
        if self.random.random() < self.oddness:
            return self.random.choice(ODD)()
        return self.right(hint, name)

    def right(self, hint: Any, name: str) -> Any:
        kind, inner = get_origin(hint) or hint, get_args(hint)
        choose = self.random.choice
        if kind is Annotated:
            return self.right(inner[0], name)
        if kind in (Union, types.UnionType):
            return self.right(choose(inner), name)
        if kind is Literal:
            return choose(inner)
        if kind is types.NoneType:
            return None
        if kind is str:
            return self.text(name)
        if kind in PLAIN:
            return PLAIN[kind](self)
        if kind is tuple:
            return tuple(self.value(each, name) for each in inner if each is not Ellipsis)
        if name in ("said", "messages") or (kind is Mapping and name == "steps"):
            return choose(MESSAGES) if kind is Mapping else [choose(MESSAGES) for _ in range(self.random.randrange(4))]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return choose([*kind])
        if kind is Mapping or kind is Any:
            return choose(CONDITIONS) if name == "where" else choose(MAPPINGS)
        if kind in (Callable, IO):
            return BytesIO(b"tea " * 900) if kind is IO else (lambda *_: None)
        if isinstance(kind, type) and issubclass(kind, Iterable) and inner:
            return [self.value(inner[0], name) for _ in range(self.random.randrange(4))]
        found = self.seen.get(kind)
        return choose(found) if found else Path(self.text("path")) if kind is Path else choose(ODD)()

    def text(self, name: str) -> str:
        """Return a text that suits an argument of this name, or any."""
        if self.ids and self.random.random() < (0.6 if name in RESUMED else 0.05):
            return self.random.choice(self.ids)
        return str(self.random.choice(NAMED[name] if name in NAMED and self.random.random() < 0.8 else TEXTS))


PLAIN: Mapping[Any, Callable[[Maker], Any]] = {
    int: lambda maker: maker.random.choice(WHOLE),
    float: lambda maker: maker.random.choice(NUMBERS),
    bool: lambda maker: maker.random.random() < 0.5,
    bytes: lambda maker: maker.random.choice(TEXTS).encode(),
    datetime: lambda maker: maker.random.choice(TIMES),
}
