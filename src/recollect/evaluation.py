"""Evaluation of recall on a file of labelled memories and questions, through the public API.

Each set of the file is stored in a new in-memory store, and its questions are asked with the clock set to their time.
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
from recollect.policy.memories.kinds import RULES, check_kind
from recollect.policy.recall.evaluation import average_metrics, compute_metrics
from recollect.settings import Settings

DEPTH = 50
"""Hits requested per question: enough to cover ten conversations."""

BATCH = 200
"""Memories stored per call."""
LIFETIME = timedelta(days=36_500)
"""Lifetime of stored memories: long enough that none expires before its question."""
FIELDS = ("kind", "role", "session_id", "created_at", "importance", "category", "tags", "valid_from")
"""Fields of a memory that a line may set."""
ALL = "all"
"""Name of the scores over all types of questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledMemory:
    """One memory to store, with the id questions refer to."""

    id: str
    text: str
    session: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """One question and the memories it should find."""

    text: str
    expected: Sequence[str]  # ids of memories; may be empty when only sessions are known
    sessions: Sequence[str] = ()  # when not given, those of the expected memories
    type: str = ""
    now: datetime | None = None  # when it is asked; None: at the end of the set


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Memories of one agent, and questions about them."""

    name: str
    memories: Sequence[LabelledMemory]
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
    """Result of an evaluation."""

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
    """Store each set, ask its questions and score the answers.

    Raises: Invalid, ModelError.
    """
    results: list[tuple[str, Mapping[str, float], Mapping[str, float]]] = []
    times: list[float] = []
    stored, store_seconds = 0, 0.0
    for one in sets:
        if progress is not None:
            progress(one.name)
        end = _latest_time(one)
        moment = [end]
        plain = replace(settings, url=":memory:", workspace=None, secrets="flag", max_total=len(one.memories) + 1)
        with Recollect(settings=plain, clock=lambda moment=moment: moment[0]) as store:  # type: ignore[misc]
            agent = store.agent("evaluated")
            started = perf_counter()
            numbers = _store_memories(agent, one, end)
            store.embed_waiting()
            store_seconds, stored = store_seconds + perf_counter() - started, stored + len(one.memories)
            for question in one.questions:
                moment[0] = question.now or end
                started = perf_counter()
                hits = agent.recall(question.text, limit=DEPTH)
                times.append(perf_counter() - started)
                found = [
                    numbers.get(hit.id, hit.id) if hit.source is Source.MEMORY else f"{hit.source}:{hit.id}"
                    for hit in hits
                ]
                results.append((question.type, *_score_question(one, question, found)))
    types = [ALL, *sorted({type for type, *_ in results if type})]
    scores = [_average_scores(type, [each for each in results if type in (ALL, each[0])]) for type in types]
    return Evaluation(scores=scores, stored=stored, store_seconds=store_seconds, recall_seconds=times)


def _store_memories(agent: Any, one: LabelledSet, end: datetime) -> dict[str, str]:
    """Store the memories of a set; return their names by the ids they were assigned."""
    names: dict[str, str] = {}
    for start in range(0, len(one.memories), BATCH):
        batch = one.memories[start : start + BATCH]
        written = agent.remember_many([_build_draft(memory, end) for memory in batch])
        for memory, kept in zip(batch, written, strict=True):
            names.setdefault(kept.id, memory.id)
    return names


def _build_draft(memory: LabelledMemory, end: datetime) -> dict[str, Any]:
    kind = check_kind(memory.fields.get("kind", Kind.EPISODE))
    text = memory.text.strip()[: RULES[kind].max_chars]
    known = {"created_at": end, "session_id": memory.session, **memory.fields}
    return {**known, "text": text, "kind": kind, "expires_at": end + LIFETIME}


def _score_question(
    one: LabelledSet, question: LabelledQuestion, found: Sequence[str]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    session_of = {memory.id: memory.session for memory in one.memories if memory.session is not None}
    expected_sessions = list(question.sessions) or [session_of[id] for id in question.expected if id in session_of]
    sessions = [session_of.get(id, id) for id in found]
    return (
        compute_metrics(found, question.expected) if question.expected else {},
        compute_metrics(sessions, expected_sessions) if expected_sessions else {},
    )


def _average_scores(type: str, results: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]) -> Scores:
    return Scores(
        type=type,
        questions=len(results),
        memories=average_metrics(memories for _, memories, _ in results if memories),
        sessions=average_metrics(sessions for _, _, sessions in results if sessions),
    )


def _latest_time(one: LabelledSet) -> datetime:
    """Return the latest time in the set; a fixed date for a set without times, so that results are repeatable."""
    times = [memory.fields["created_at"] for memory in one.memories if "created_at" in memory.fields]
    times += [question.now for question in one.questions if question.now is not None]
    return max(times, default=datetime(2026, 1, 1, tzinfo=UTC))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def read_sets(path: Path) -> list[LabelledSet]:
    """Read the sets of a JSONL file: a line is a memory (`memory`, `id`, …) or a question (`question`, `expected`, …).

    Raises: Invalid, naming the line.
    """
    memories: dict[str, list[LabelledMemory]] = {}
    questions: dict[str, list[LabelledQuestion]] = {}
    for number, line in _parse_lines(path):
        name = str(line.get("set", ""))
        memories.setdefault(name, [])
        questions.setdefault(name, [])
        try:
            if "memory" in line:
                memories[name].append(_parse_memory(line))
            else:
                questions[name].append(_parse_question(line))
        except (KeyError, ValueError, TypeError) as error:
            raise Invalid(f"Line {number} of {path.name}: {_describe_error(error)}") from None
    for name, entries in questions.items():
        known = {memory.id for memory in memories[name]}
        for question in entries:
            if not known.issuperset(question.expected):
                raise Invalid(f"The question {question.text[:60]!r} expects a memory its set does not have.")
    if not any(questions.values()):
        raise Invalid(f"{path.name} has no question; add a line with `question` and `expected`.")
    return [LabelledSet(name=name, memories=memories[name], questions=questions[name]) for name in memories]


def _parse_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
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
            raise Invalid(f"Line {number} of {path.name} is not a JSON object with `memory` or `question`.")
        yield number, parsed


def _parse_memory(line: Mapping[str, Any]) -> LabelledMemory:
    fields = {name: line[name] for name in FIELDS if line.get(name) is not None}
    for name in ("created_at", "valid_from"):
        if name in fields:
            fields[name] = _parse_time(fields[name])
    session = None if line.get("session_id") is None else str(line["session_id"])
    return LabelledMemory(id=str(line["id"]), text=str(line["memory"]), session=session, fields=fields)


def _parse_question(line: Mapping[str, Any]) -> LabelledQuestion:
    expected, sessions = line.get("expected", []), line.get("expected_sessions", [])
    if not isinstance(expected, list) or not isinstance(sessions, list) or not (expected or sessions):
        raise ValueError("`expected` is a list of the ids that should be found")
    return LabelledQuestion(
        text=str(line["question"]),
        expected=[str(id) for id in expected],
        sessions=[str(id) for id in sessions],
        type=str(line.get("type", "")),
        now=None if line.get("now") is None else _parse_time(line["now"]),
    )


def _parse_time(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _describe_error(error: Exception) -> str:
    return f"it has no {error}." if isinstance(error, KeyError) else f"{error}."
