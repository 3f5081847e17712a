"""How the corpus is kept: sections of requests and answers as plain text, with volatile values masked by named rules.

    ## POST /api/agents/{agent}/memories
    > write POST /api/agents/ann/memories {"text": "Prefers tabs"}
    < 201 {"id": "m-1", …}

    > write POST /api/agents/ann/memories {"text": 7}
    > write POST /api/agents/ann/memories {"text": []}
    < 422 {"ok": false, "error": "text should be a valid string.", "code": "unprocessable"}

Requests that got the same answer stand together. An answer that is JSON is compared by value, any other as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any
from zlib import crc32

RECORDED = Path(__file__).with_name("recorded")
MAX_SHOWN = 20
LONGEST_TEXT = 400
SHORTEST = 8
"""Length from which a text is taken for a random one; the command line pages by ids such as m-7."""

VOLATILE = {
    "key": re.compile(r"wellkept_[a-z0-9]+_[a-z2-7]{8}_[a-z2-7]{20,}"),  # its secret is random
    "uuid": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"),
    "workflow": re.compile(r"\b[a-z-]+-[0-9a-f]{8}\b"),  # the second of a name
    "call": re.compile(r"\bc-[0-9a-f]{12,32}\b"),
    "document": re.compile(r"\bd-[0-9a-f]{12,32}\b"),
    "session": re.compile(r"\bs-[0-9a-f]{12,32}\b"),  # of a conversation that nobody named
}
"""Random values wherever they stand: numbered in the order in which they are first seen."""

HASH = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b")  # of something random, such as the key that an event names

SUFFIX = re.compile(r"…-[a-z2-9]{8}\b")  # the end of a detail's key, by which the audit log names it
TIME = re.compile(r"(?:\b[A-Z][a-z]{2} )?\b20[2-9]\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z| UTC)?")

VOLATILE_FIELDS = {
    "memory_key": "detail",
    "references": "detail",
    "dropped_references": "detail",
    "next_cursor": "cursor",
}
"""Fields whose texts are random, though their form is not: replaced wherever they stand."""

UNCOMPARED_FIELDS = {
    "last_retrieved_at": "a thread writes it up to a second later",
    "last_used_at": "a thread writes it up to a second later",
    "digest": "of a text that may name a detail, which is random",
    "key_suffix": "of a detail, whose key is random",
    "next_at": "drawn at random, so that servers do not begin together",
    "version": "of the program, which grows with each release; of a memory it is a number and stays",
}
"""Fields whose texts are not compared, and why."""

MEMORY_REFERENCE = re.compile(r"\[MemoryRef: ([a-z0-9-]+)")
MEASURED_FIELDS = {"duration": "of a command that was run"}
"""Numbers that are not compared where a program tells its own time; there, others are rounded, as they age with it."""

RUN = re.compile(r"(.)\1{59,}", re.DOTALL)
LETTERS = re.compile(r"([a-z])\1{59,}")
SHORT_RUN = re.compile(r"<(.)\*(\d+)>", re.DOTALL)
PLACEHOLDER = re.compile(r"<[a-z]+\.\d+>")


class Masks:
    """Replace what is random by a name such as `<detail.2>`, and such names in requests by what they stand for."""

    def __init__(self, *, has_times: bool = False) -> None:
        """`has_times`: the program tells its own time, which is masked, too."""
        self._has_times = has_times
        self._names: dict[str, str] = {}
        self._literals: dict[str, str] = {}  # those that no pattern finds
        self._values: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, value: str, kind: str) -> str:
        """Return the name of a value; a new one is numbered."""
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            name = f"<{kind}.{self._counts[kind]}>"
            self._names[value], self._values[name] = name, value
        return self._names[value]

    def name(self, value: str, name: str) -> None:
        """Give a value a name of our choice."""
        self._literals[value] = self._names[value] = name
        self._values[name] = value

    def reveal(self, text: str) -> str:
        """Return a request as it is sent."""
        text = PLACEHOLDER.sub(lambda found: self._values.get(found[0], found[0]), text)
        return SHORT_RUN.sub(lambda found: found[1] * int(found[2]), text)

    def mask(self, value: Any) -> Any:
        """Return an answer (JSON or text) as it is kept."""
        self._learn_fields(value)
        return self._masked(value)

    def mask_text(self, text: str) -> str:
        """Return a text that is read by people as it is kept, whole."""
        for key in MEMORY_REFERENCE.findall(text):
            self.name(key, self.learn(key, "detail"))
        self._learn_fields(text)
        return LETTERS.sub(lambda found: f"<{found[1]}*{len(found[0])}>", self._text(text))

    def _learn_fields(self, value: Any) -> None:
        if isinstance(value, Mapping):
            for name in sorted(value):
                if name in VOLATILE_FIELDS:
                    found = value[name] if isinstance(value[name], list) else [value[name]]
                    for each in found:
                        if isinstance(each, str) and len(each) >= SHORTEST:
                            self.name(each, self.learn(each, VOLATILE_FIELDS[name]))
                self._learn_fields(value[name])
        elif isinstance(value, list):
            for each in value:
                self._learn_fields(each)
        elif isinstance(value, str):
            for key in VOLATILE["key"].findall(value):
                id = key.split("_")[2]  # its public part
                self.name(id, self.learn(id, "keyid"))

    def _masked(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            masked = {key: self._masked(value[key], key) for key in sorted(value)}
            return {self._text(key): masked[key] for key in value}
        if isinstance(value, list):
            return [self._masked(each) for each in value]
        if name in UNCOMPARED_FIELDS and (isinstance(value, str) or value is None):
            return "<any>"
        if self._has_times and isinstance(value, float):
            return "<any>" if name in MEASURED_FIELDS else round(value, 3)
        return shorten(self._text(value)) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for kind, pattern in VOLATILE.items():
            text = pattern.sub(lambda found, kind=kind: self.learn(found[0], kind), text)  # type: ignore[misc]
        for value, name in self._literals.items():
            if value in text:
                text = text.replace(value, name)
        text = SUFFIX.sub("…-<any>", HASH.sub("<hash>", text))
        return TIME.sub("<time>", text) if self._has_times else text


def shorten(text: str) -> str:
    """Write repeated characters as `<a*501>`, and cut what is still long, with a checksum of the whole."""
    text = RUN.sub(lambda found: f"<{found[1]}*{len(found[0])}>", text)
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… <{len(text)} characters, {crc32(text.encode('utf-8', 'surrogatepass')):08x}>"


@dataclass
class Exchange:
    """Requests that got the same answer, one after the other."""

    asked: list[str]
    answer: str


@dataclass
class Section:
    """Exchanges about one subject."""

    title: str
    exchanges: list[Exchange] = field(default_factory=list)


def written(sections: Iterable[Section]) -> str:
    """Return the text of a file."""
    lines: list[str] = []
    for section in sections:
        lines += [f"## {section.title}", ""]
        for each in section.exchanges:
            lines += [*(f"> {one}" for one in each.asked), *(f"< {line}" for line in each.answer.split("\n")), ""]
    return "\n".join(lines)


def read(text: str) -> Iterator[Section]:
    """Read the text of a file."""
    section, asked, answer = Section(""), list[str](), list[str]()
    for line in [*text.split("\n"), "## "]:
        if line.startswith("> "):
            asked.append(line[2:])
        elif line.startswith("< "):
            answer.append(line[2:])
        else:
            if asked:
                section.exchanges.append(Exchange(asked, "\n".join(answer)))
                asked, answer = [], []
            if line.startswith("## "):
                if section.title:
                    yield section
                section = Section(line[3:])


def grouped(exchanges: Iterable[tuple[str, str]]) -> list[Exchange]:
    """Put the requests with the same answer together, in the order in which the answers were first seen."""
    groups: dict[str, list[str]] = {}
    for asked, answer in exchanges:
        groups.setdefault(answer, []).append(asked)
    return [Exchange(asked, answer) for answer, asked in groups.items()]


def in_a_row(exchanges: Iterable[tuple[str, str]]) -> list[Exchange]:
    """Put requests with the same answer together if they follow each other."""
    found: list[Exchange] = []
    for asked, answer in exchanges:
        if found and found[-1].answer == answer:
            found[-1].asked.append(asked)
        else:
            found.append(Exchange([asked], answer))
    return found


def asked_again(sections: Iterable[Section], ask: Callable[[str, str], str]) -> list[Section]:
    """Ask in the order of these sections and keep what is answered now: even a refusal may leave a trace."""
    return [
        Section(
            section.title,
            [
                answered
                for each in section.exchanges
                for answered in in_a_row((asked, ask(section.title, asked)) for asked in each.asked)
            ],
        )
        for section in sections
    ]


def path_of(name: str) -> Path:
    return RECORDED / f"{name}.txt"


def save(name: str, sections: Iterable[Section]) -> None:
    path_of(name).write_text(written(sections), "utf-8")


def load(name: str) -> list[Section]:
    return list(read(path_of(name).read_text("utf-8")))


def replay(sections: Sequence[Section], ask: Callable[[str, str], str]) -> list[str]:
    """Ask everything again, and describe each answer that differs. `ask` is given the title and the request."""
    return [
        f"{asked}\n" + "\n".join(f"    {line}" for line in difference(each.answer, now))
        for section in sections
        for each in section.exchanges
        for asked in each.asked
        if not is_same(each.answer, now := ask(section.title, asked))
    ]


def is_same(recorded: str, now: str) -> bool:
    """Return True if two answers are equal; JSON by value, whatever the order of its fields."""
    return recorded == now or _parsed(recorded) == _parsed(now)


def difference(recorded: str, now: str) -> list[str]:
    """Describe in a few lines how two answers differ."""
    (head, before), (new_head, after) = _parsed(recorded), _parsed(now)
    if head != new_head or isinstance(before, str) or isinstance(after, str):
        lines = list(unified_diff(recorded.splitlines(), now.splitlines(), "recorded", "now", lineterm="", n=1))
        return [line[:500] for line in lines[:20]]
    return list(changes("", before, after))[:10]


def _parsed(answer: str) -> tuple[str, Any]:
    """Return the head of an answer (its status, or nothing) and its value."""
    head, _, body = answer.partition(" ") if not answer.startswith(("{", "[")) else ("", "", answer)
    try:
        return head, json.loads(body)
    except ValueError:
        return head, body


def changes(where: str, before: Any, after: Any) -> Iterator[str]:
    """Name each place at which two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            place = f"{where}.{name}" if where else name
            if name not in after:
                yield f"{place}: recorded {_shown(before[name])}, now missing"
            elif name not in before:
                yield f"{place}: new, {_shown(after[name])}"
            else:
                yield from changes(place, before[name], after[name])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(f"{where}[{number}]", one, other)
    elif before != after or type(before) is not type(after):
        yield f"{where}: recorded {_shown(before)}, now {_shown(after)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


def report(differences: Sequence[str]) -> str:
    """Return what a failing test prints."""
    shown = "\n".join(differences[:MAX_SHOWN])
    more = f"\n… and {len(differences) - MAX_SHOWN} more." if len(differences) > MAX_SHOWN else ""
    return (
        f"{len(differences)} answers differ from tests/corpus/recorded:\n{shown}{more}\n"
        "If the change is wanted, name it in CHANGELOG.md and run: python -m tests.corpus record"
    )
