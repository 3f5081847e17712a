"""How well recall finds what it should: memories and questions of a labelled file, put through the product's own calls.

Each set of the file is stored in a fresh store in memory, and its questions are asked with the clock where they say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from recollect.api.recollect import Recollect
from recollect.errors import Invalid
from recollect.model import Kind, Source
from recollect.policy.memories.kinds import RULES, checked_kind
from recollect.policy.recall.evaluation import averages, metrics
from recollect.settings import Settings

DEPTH = 50
"""How many hits are asked for, so that there are ten conversations among them."""

BATCH = 200
LIFETIME = timedelta(days=36_500)
FIELDS = ("kind", "role", "session_id", "created_at", "importance", "category", "tags", "valid_from")
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One memory to store, and the name the questions know it by."""

    id: str
    text: str
    session: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """One question, and what should be found."""

    text: str
    expected: Sequence[str]  # ids of memories; may be empty when only sessions are known
    sessions: Sequence[str] = ()  # when not given, those of the expected memories
    type: str = ""
    now: datetime | None = None  # when it is asked; None: at the end of the set


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Memories of one agent, and questions about them."""

    name: str
    memories: Sequence[Labelled]
    questions: Sequence[LabelledQuestion]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Averages over the questions of one type, by single memories and by whole sessions; "all" is every type."""

    type: str
    questions: int
    memories: Mapping[str, float]
    sessions: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What came out."""

    scores: Sequence[Scores]
    stored: int
    store_seconds: float
    recall_seconds: Sequence[float]  # of each question, in order

    @property
    def recall_p50_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.5)

    @property
    def recall_p95_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.95)


def evaluate(
    sets: Iterable[LabelledSet], settings: Settings, *, progress: Callable[[str], None] | None = None
) -> Evaluation:
    """Raises: Invalid, ModelError."""
    asked: list[tuple[str, Mapping[str, float], Mapping[str, float]]] = []
    times: list[float] = []
    stored, store_seconds = 0, 0.0
    for one in sets:
        if progress is not None:
            progress(one.name)
        end = _end(one)
        moment = [end]
        plain = replace(settings, url=":memory:", workspace=None, secrets="flag", max_total=len(one.memories) + 1)
        with Recollect(settings=plain, clock=lambda moment=moment: moment[0]) as store:  # type: ignore[misc]
            agent = store.agent("evaluated")
            begun = perf_counter()
            numbers = _store(agent, one, end)
            store.embed_waiting()
            store_seconds, stored = store_seconds + perf_counter() - begun, stored + len(one.memories)
            for question in one.questions:
                moment[0] = question.now or end
                begun = perf_counter()
                hits = agent.recall(question.text, limit=DEPTH)
                times.append(perf_counter() - begun)
                found = [
                    numbers.get(hit.id, hit.id) if hit.source is Source.MEMORY else f"{hit.source}:{hit.id}"
                    for hit in hits
                ]
                asked.append((question.type, *_judged(one, question, found)))
    types = [ALL, *sorted({type for type, *_ in asked if type})]
    scores = [_scores(type, [each for each in asked if type in (ALL, each[0])]) for type in types]
    return Evaluation(scores=scores, stored=stored, store_seconds=store_seconds, recall_seconds=times)


def _store(agent: Any, one: LabelledSet, end: datetime) -> dict[str, str]:
    """The names of the memories by the ids they were given."""
    names: dict[str, str] = {}
    for start in range(0, len(one.memories), BATCH):
        batch = one.memories[start : start + BATCH]
        written = agent.remember_many([_draft(memory, end) for memory in batch])
        for memory, kept in zip(batch, written, strict=True):
            names.setdefault(kept.id, memory.id)
    return names


def _draft(memory: Labelled, end: datetime) -> dict[str, Any]:
    kind = checked_kind(memory.fields.get("kind", Kind.EPISODE))
    text = memory.text.strip()[: RULES[kind].max_chars]
    known = {"created_at": end, "session_id": memory.session, **memory.fields}
    return {**known, "text": text, "kind": kind, "expires_at": end + LIFETIME}


def _judged(
    one: LabelledSet, question: LabelledQuestion, found: Sequence[str]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    session_of = {memory.id: memory.session for memory in one.memories if memory.session is not None}
    wanted = list(question.sessions) or [session_of[id] for id in question.expected if id in session_of]
    sessions = [session_of.get(id, id) for id in found]
    return (
        metrics(found, question.expected) if question.expected else {},
        metrics(sessions, wanted) if wanted else {},
    )


def _scores(type: str, asked: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]) -> Scores:
    return Scores(
        type=type,
        questions=len(asked),
        memories=averages(memories for _, memories, _ in asked if memories),
        sessions=averages(sessions for _, _, sessions in asked if sessions),
    )


def _end(one: LabelledSet) -> datetime:
    """The latest moment the set speaks of; a set without any is of now, whenever that is."""
    times = [memory.fields["created_at"] for memory in one.memories if "created_at" in memory.fields]
    times += [question.now for question in one.questions if question.now is not None]
    return max(times, default=datetime(2026, 1, 1, tzinfo=UTC))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def read_sets(path: Path) -> list[LabelledSet]:
    """The sets of a JSONL file: a line is a memory (`memory`, `id`, …) or a question (`question`, `expected`, …).

    Raises: Invalid, naming the line.
    """
    memories: dict[str, list[Labelled]] = {}
    questions: dict[str, list[LabelledQuestion]] = {}
    for number, line in _lines(path):
        name = str(line.get("set", ""))
        memories.setdefault(name, [])
        questions.setdefault(name, [])
        try:
            if "memory" in line:
                memories[name].append(_memory(line))
            else:
                questions[name].append(_question(line))
        except (KeyError, ValueError, TypeError) as error:
            raise Invalid(f"Line {number} of {path.name}: {_problem(error)}") from None
    for name, asked in questions.items():
        known = {memory.id for memory in memories[name]}
        for question in asked:
            if not known.issuperset(question.expected):
                raise Invalid(f"The question {question.text[:60]!r} expects a memory its set does not have.")
    if not any(questions.values()):
        raise Invalid(f"{path.name} asks no question; a question is a line with `question` and `expected`.")
    return [LabelledSet(name=name, memories=memories[name], questions=questions[name]) for name in memories]


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict) or not {"memory", "question"} & parsed.keys():
            raise Invalid(f"Line {number} of {path.name} is no JSON object with `memory` or `question`.")
        yield number, parsed


def _memory(line: Mapping[str, Any]) -> Labelled:
    fields = {name: line[name] for name in FIELDS if line.get(name) is not None}
    for name in ("created_at", "valid_from"):
        if name in fields:
            fields[name] = _moment(fields[name])
    session = None if line.get("session_id") is None else str(line["session_id"])
    return Labelled(id=str(line["id"]), text=str(line["memory"]), session=session, fields=fields)


def _question(line: Mapping[str, Any]) -> LabelledQuestion:
    expected, sessions = line.get("expected", []), line.get("expected_sessions", [])
    if not isinstance(expected, list) or not isinstance(sessions, list) or not (expected or sessions):
        raise ValueError("`expected` is a list of the ids that should be found")
    return LabelledQuestion(
        text=str(line["question"]),
        expected=[str(id) for id in expected],
        sessions=[str(id) for id in sessions],
        type=str(line.get("type", "")),
        now=None if line.get("now") is None else _moment(line["now"]),
    )


def _moment(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _problem(error: Exception) -> str:
    return f"it has no {error}." if isinstance(error, KeyError) else f"{error}."
