"""Labelled memories and questions, and the files they come from, recognised by their content, gzipped or not.

- Labelled lines: JSONL, a line is a memory (`memory`, `id`, …) or a question (`question`, `expected`, …).
- Pairs: a JSON list, or JSONL, of facts with a question about each (`fact`, `question`).
- Conversations: JSONL, a line is a conversation or a collection of documents (`memories`, `questions`).
- LoCoMo: a JSON list of conversations (`conversation`, `qa`).
- LongMemEval: a JSON list of questions, each with its haystack (`haystack_sessions`, …).
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wellkept.errors import Invalid
from wellkept.model import Kind, Memory, Origin, Role

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Time of a set without times: fixed, so that results are repeatable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledMemory:
    """One memory, or one document, with the id that questions refer to."""

    id: str
    text: str
    session: str | None = None
    speaker: str | None = None  # name of a person, which a plain text starts with; None if the role says it
    title: str | None = None  # set for documents
    created_at: datetime | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)  # other arguments of `remember`

    @property
    def spoken(self) -> str:
        """The text, after the name of a person who said it."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """One question and the memories it should find."""

    text: str
    expected: Sequence[str] = ()  # ids of memories
    sessions: Sequence[str] = ()  # when not given, those of the expected memories
    type: str = ""
    now: datetime | None = None  # when it is asked; None: at the end of the set
    is_headline: bool = True  # False: left out of the scores over all questions
    split: str = ""

    @property
    def is_answerable(self) -> bool:
        """False if nothing should be found."""
        return bool(self.expected or self.sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Memories of one agent, and questions about them."""

    name: str
    memories: Sequence[LabelledMemory]
    questions: Sequence[LabelledQuestion]

    def select_questions(self, split: str) -> list[LabelledQuestion]:
        """Return the questions of a split; empty means all."""
        return [question for question in self.questions if split in ("", question.split)]

    def sort_memories(self) -> list[tuple[datetime, LabelledMemory]]:
        """Return the memories with their times, oldest first; one without a time has the time of the one before."""
        times = [memory.created_at for memory in self.memories if memory.created_at is not None]
        latest = min(times, default=START)
        dated = []
        for memory in self.memories:
            latest = memory.created_at or latest
            dated.append((latest, memory))
        return sorted(dated, key=lambda each: each[0])

    def sort_questions(self, split: str, *, wait: timedelta) -> list[tuple[datetime, LabelledQuestion]]:
        """Return the questions of a split with the times they are asked: after the last memory, and `wait` later."""
        dated = self.sort_memories()
        end = dated[-1][0] if dated else START
        asked = [(max(question.now or end, end) + wait, question) for question in self.select_questions(split)]
        return sorted(asked, key=lambda each: each[0])


FIELDS = {each.name: "datetime" in str(each.type) for each in fields(Memory)}
"""Fields of a memory that a labelled line may set; True for times."""

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
"""Questions of LoCoMo whose answer is not in the conversation: not in the headline."""

ABSTENTION = "abstention"
"""Type of LongMemEval's questions without an answer, whose ids end with `_abs`: not in the headline."""

_LOCOMO_TURN = re.compile(r"D\d+:\d+")
_LOCOMO_SESSION = re.compile(r"session_(\d+)")


def parse_memory(line: Mapping[str, Any]) -> LabelledMemory:
    """Parse a labelled line with a memory."""
    given = line.keys() & FIELDS.keys() - {"id", "session_id", "created_at"}
    values = {name: _parse_time(line[name]) if FIELDS[name] else line[name] for name in given if line[name] is not None}
    return LabelledMemory(
        id=str(line["id"]),
        text=str(line["memory"]),
        session=None if line.get("session_id") is None else str(line["session_id"]),
        created_at=_find_time(line.get("created_at")),
        fields={"kind": Kind.EPISODE, **values},
    )


def parse_question(line: Mapping[str, Any]) -> LabelledQuestion:
    """Parse a labelled line with a question."""
    sessions = line.get("expected_sessions", [])
    expected = line.get("expected", [] if sessions else None)
    if not isinstance(expected, list) or not isinstance(sessions, list):
        raise ValueError("`expected` is a list of the ids that should be found, or [] if nothing should")
    return LabelledQuestion(
        text=str(line["question"]),
        expected=[str(id) for id in expected],
        sessions=[str(id) for id in sessions],
        type=str(line.get("type", "")),
        now=_find_time(line.get("now")),
        is_headline=bool(line.get("headline", True)),
        split=str(line.get("split", "")),
    )


def parse_pair(line: Mapping[str, Any], *, id: str) -> tuple[LabelledMemory, LabelledQuestion]:
    """Parse a fact, which is stored as a note, and the question that it answers."""
    fact = LabelledMemory(id=id, text=str(line["fact"]), fields={"kind": Kind.NOTE})
    question = LabelledQuestion(text=str(line["question"]), expected=[id], type=str(line.get("domain", "")))
    return fact, question


def parse_conversation(record: Mapping[str, Any]) -> LabelledSet:
    """Parse one conversation, or one collection of documents, with its questions.

    Blank turns are left out, and so are questions whose evidence is not in the conversation. What has neither a session
    nor a title is a fact, and stored as a note.
    """
    speakers = _assign_roles(each.get("speaker") for each in record["memories"])

    def describe(each: Mapping[str, Any]) -> Mapping[str, Any]:
        if each.get("session") is None and each.get("title") is None:
            return {"fields": {"kind": Kind.NOTE}}
        return speakers.get(each.get("speaker") or "", {})

    memories = [
        LabelledMemory(
            id=str(each["id"]),
            text=each["text"],
            session=None if each.get("session") is None else str(each["session"]),
            created_at=_find_time(each.get("ts")),
            title=each.get("title"),
            **describe(each),
        )
        for each in record["memories"]
        if each["text"].strip()
    ]
    known = {memory.id for memory in memories}
    questions = [
        LabelledQuestion(
            text=each["query"],
            expected=[str(id) for id in each["turns"] if str(id) in known],
            sessions=[str(id) for id in each.get("sessions") or ()],
            type=str(each.get("category") or ""),
            now=_find_time(each.get("now")),
            is_headline=bool(each.get("headline", True)),
            split=str(each.get("split") or ""),
        )
        for each in record["questions"]
        if not each["turns"] or not known.isdisjoint(map(str, each["turns"]))
    ]
    return LabelledSet(name=str(record["id"]), memories=memories, questions=questions)


def parse_locomo(sample: Mapping[str, Any]) -> LabelledSet:
    """Parse one conversation of LoCoMo. Questions without evidence are left out."""
    conversation = sample["conversation"]
    speakers = _assign_roles((conversation["speaker_a"], conversation["speaker_b"]))
    numbers = sorted(int(found[1]) for name in conversation if (found := _LOCOMO_SESSION.fullmatch(name)))
    memories = [
        LabelledMemory(
            id=turn["dia_id"],
            text=turn["text"],
            session=f"session_{number}",
            created_at=_read_time(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"),
            **speakers[turn["speaker"]],
        )
        for number in numbers
        for turn in conversation[f"session_{number}"]
        if turn["text"].strip()
    ]
    known, questions = {memory.id for memory in memories}, []
    for asked in sample["qa"]:
        expected = sorted({turn for each in asked["evidence"] for turn in _LOCOMO_TURN.findall(each)} & known)
        if expected:
            category = asked["category"]
            questions.append(
                LabelledQuestion(
                    text=asked["question"],
                    expected=expected,
                    type=LOCOMO_CATEGORIES.get(category, f"category {category}"),
                    is_headline=category != ADVERSARIAL,
                )
            )
    return LabelledSet(name=str(sample["sample_id"]), memories=memories, questions=questions)


def parse_longmemeval(sample: Mapping[str, Any]) -> LabelledSet:
    """Parse one question of LongMemEval with every turn of its haystack."""
    memories, expected = [], []
    sessions = zip(sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True)
    speakers = _assign_roles(Role)
    for session, date, turns in sessions:
        for number, turn in enumerate(turns):
            id = f"{session}:{number}"
            if not turn["content"].strip():
                continue
            time = _parse_longmemeval_time(date)
            memories.append(
                LabelledMemory(id=id, text=turn["content"], session=session, created_at=time, **speakers[turn["role"]])
            )
            if turn.get("has_answer"):
                expected.append(id)
    is_answered = not sample["question_id"].endswith("_abs")
    question = LabelledQuestion(
        text=sample["question"],
        expected=expected,
        sessions=sample["answer_session_ids"],
        type=sample["question_type"] if is_answered else ABSTENTION,
        now=_parse_longmemeval_time(sample["question_date"]),
        is_headline=is_answered,
    )
    return LabelledSet(name=sample["question_id"], memories=memories, questions=[question])


def _assign_roles(speakers: Iterable[str | None]) -> dict[str, dict[str, Any]]:
    """Return how the turns of each speaker are stored.

    Between a user and an assistant, as `log_turn` does. Between people, the first one is the user, the others take the
    place of the assistant, and a text starts with the name.
    """
    names = list(dict.fromkeys(each for each in speakers if each))
    if set(names) <= set(Role):
        origins = {Role.ASSISTANT: Origin.AGENT}
        return {each: {"fields": {"role": each, "origin": origins.get(Role(each), Origin.USER)}} for each in names}
    roles = {each: Role.ASSISTANT if place else Role.USER for place, each in enumerate(names)}
    return {each: {"speaker": each, "fields": {"role": role}} for each, role in roles.items()}


def _find_time(value: str | None) -> datetime | None:
    return _parse_time(value) if value else None


def _parse_time(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse_longmemeval_time(text: str) -> datetime:
    return _read_time(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M")


def _read_time(text: str, format: str) -> datetime:
    return datetime.strptime(text, format).replace(tzinfo=UTC)


T = TypeVar("T")

GZIP_MAGIC = b"\x1f\x8b"
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
FORMS = (
    "JSONL with `memory` or `question`, or with `fact` and `question`, on each line, JSONL with `memories` and "
    "`questions` on each line, or the JSON of LoCoMo or LongMemEval"
)


def read_sets(path: Path) -> Iterator[LabelledSet]:
    """Read the sets of a file, or of all files in a folder.

    Raises: Invalid, naming the line or the entry.
    """
    if not path.is_dir():
        yield from _read_file(path)
        return
    files = sorted(each for each in path.iterdir() if each.name.endswith(SUFFIXES))
    if not files:
        raise Invalid(f"{path} has no file that ends with {', '.join(SUFFIXES)}.")
    for each in files:
        yield from _read_file(each)


def _read_file(path: Path) -> Iterator[LabelledSet]:
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            with io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if is_packed else raw, "utf-8") as text:
                yield from _parse_text(text, path.name)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _parse_text(text: Iterable[str], name: str) -> Iterator[LabelledSet]:
    lines = ((number, line) for number, line in enumerate(text, 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise Invalid(f"{name} is empty; it should be {FORMS}.")
    if first[1].lstrip().startswith("["):
        yield from _parse_list(first[1] + "".join(line for _, line in lines), name)
        return
    start = _parse_line(*first, name)
    records = _parse_lines(first[0], start, lines, name)
    if {"memories", "questions"} <= start.keys():
        yield from (_guard(parse_conversation, each, f"Line {number} of {name}") for number, each in records)
    else:
        yield from _group_lines(records, name)


def _parse_lines(
    number: int, start: Mapping[str, Any], lines: Iterable[tuple[int, str]], name: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    yield number, start
    for later, line in lines:
        yield later, _parse_line(later, line, name)


def _parse_line(number: int, line: str, name: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    is_known = isinstance(parsed, dict) and (
        {"memory", "question"} & parsed.keys() or {"memories", "questions"} <= parsed.keys()
    )
    if not is_known:
        raise Invalid(f"Line {number} of {name} is of no known form; it should be {FORMS}.")
    return dict(parsed)


def _parse_list(text: str, name: str) -> Iterator[LabelledSet]:
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise Invalid(f"{name} is no valid JSON: {error}.") from None
    if isinstance(entries, list) and entries and all(isinstance(each, dict) and "fact" in each for each in entries):
        yield from _group_lines(enumerate(entries, 1), name)
        return
    for number, entry in enumerate(entries, 1):
        keys = entry.keys() if isinstance(entry, dict) else ()
        if "haystack_sessions" in keys:
            yield _guard(parse_longmemeval, entry, f"Entry {number} of {name}")
        elif "conversation" in keys:
            yield _guard(parse_locomo, entry, f"Entry {number} of {name}")
        else:
            raise Invalid(f"Entry {number} of {name} is of no known form; the file should be {FORMS}.")


def _group_lines(records: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> list[LabelledSet]:
    memories: dict[str, list[LabelledMemory]] = {}
    questions: dict[str, list[LabelledQuestion]] = {}
    for number, line in records:
        group, place = str(line.get("set", "")), f"Line {number} of {name}"
        memories.setdefault(group, [])
        questions.setdefault(group, [])
        if "fact" in line:
            fact, question = _guard(partial(parse_pair, id=f"line {number}"), line, place)
            memories[group].append(fact)
            questions[group].append(question)
        elif "memory" in line:
            memories[group].append(_guard(parse_memory, line, place))
        else:
            questions[group].append(_guard(parse_question, line, place))
    for group, entries in questions.items():
        known = {memory.id for memory in memories[group]}
        for question in entries:
            if not known.issuperset(question.expected):
                raise Invalid(f"The question {question.text[:60]!r} expects a memory its set does not have.")
    if not any(questions.values()):
        raise Invalid(f"{name} has no question; add a line with `question` and `expected`.")
    return [LabelledSet(name=group, memories=memories[group], questions=questions[group]) for group in memories]


def _guard(parse: Callable[[Mapping[str, Any]], T], record: Mapping[str, Any], place: str) -> T:
    """Parse a record and turn what it lacks into a sentence.

    Raises: Invalid.
    """
    try:
        return parse(record)
    except KeyError as error:
        raise Invalid(f"{place}: it has no {error}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Invalid(f"{place}: {error}.") from None
