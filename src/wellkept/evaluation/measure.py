"""Evaluation of recall on labelled sets: replay one, and ask its questions.

A set gets a new store in memory and is stored as a user would have done it. The clock moves: every memory is stored on
its own date, maintenance runs at the beginning of every day on which something happens, and every question is asked on
its date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import groupby
from time import perf_counter
from typing import Any, Self

from wellkept.api.views import MAX_PAGE
from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid
from wellkept.evaluation.scores import Answer, Scores, Usage, compute_metrics, score_answers
from wellkept.evaluation.sets import START, LabelledMemory, LabelledQuestion, LabelledSet
from wellkept.memory.rules_kinds import RULES, check_kind
from wellkept.model import Hit, Kind, Source
from wellkept.prompt.rules_summaries import clip_middle
from wellkept.settings import Settings

DEPTH = 50
"""Hits requested per question: enough to cover ten conversations."""

BATCH = 200
"""Memories stored per call."""

LIFETIME = timedelta(days=36_500)
"""Lifetime of memories that should never expire."""

YOUNG = timedelta(days=7)
"""Age before which nothing expires; younger memories do not count as kept."""

PATIENCE = 60.0
"""Seconds for one recall, so that a busy machine does not change what is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Options of a replay."""

    usage: Usage = Usage.TURNS
    is_endless: bool = False  # nothing expires, and no maintenance runs
    wait: timedelta = timedelta()  # questions are asked this much later than they say
    split: str = ""  # only the questions of this split are asked; empty: all


@dataclass(frozen=True, slots=True)
class Rest:
    """Memories older than a week that no question of the headline needs, when the last question is asked."""

    count: int = 0
    kept: int = 0
    chars: int = 0
    kept_chars: int = 0

    @property
    def gone(self) -> float:
        """Share of them that is gone."""
        return 1 - self.kept / self.count if self.count else 0.0

    @property
    def freed(self) -> float:
        """Share of their characters that is gone."""
        return 1 - self.kept_chars / self.chars if self.chars else 0.0

    def __add__(self, other: Rest) -> Rest:
        return Rest(
            self.count + other.count,
            self.kept + other.kept,
            self.chars + other.chars,
            self.kept_chars + other.kept_chars,
        )


class Replay:
    """A store with one set, and the clock it reads."""

    def __init__(self, one: LabelledSet, settings: Settings, options: ReplayOptions) -> None:
        self.store_seconds = 0.0
        self._set = one
        self._options = options
        self._now = one.sort_memories()[0][0] if one.memories else START
        self._maintained_on: date | None = None
        self._live: dict[str, int] = {}  # characters of the live memories, by name
        # Names of memories and documents by the ids they were assigned, and the name each labelled memory counts as:
        # equal notes are one memory.
        self._names: dict[str, str] = {}
        self._counts_as: dict[str, str] = {}
        # Room for all notes; a long text becomes several.
        notes = sum(1 + 2 * len(each.spoken) // RULES[Kind.NOTE].max_chars for each in one.memories)
        self._settings = replace(
            settings,
            url=":memory:",
            workspace=None,
            secrets="flag",
            recall_deadline=PATIENCE,
            max_total=max(settings.max_total, notes),
            # Maintenance in the background would depend on how fast the machine is. `_move_clock` runs it.
            maintenance_interval=0,
        )

    def __enter__(self) -> Self:
        self._closing = ExitStack()
        self._store = self._closing.enter_context(Wellkept(settings=self._settings, clock=lambda: self._now))
        self._agent = self._store.agent("evaluated")
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def store_memories(self, advance: Callable[[int], None]) -> None:
        """Store the memories and documents of the set; call `advance` with the number stored since the last call.

        Raises: Invalid, ModelError.
        """
        started = perf_counter()
        for _, same_day in groupby(self._set.sort_memories(), key=lambda each: each[0].date()):
            day = list(same_day)
            for start in range(0, len(day), BATCH):
                batch = day[start : start + BATCH]
                self._move_clock(batch[-1][0])
                self._store_batch([memory for _, memory in batch])
                advance(len(batch))
        self._store.embedding.embed_waiting()
        self.store_seconds = perf_counter() - started

    def ask_questions(self) -> Iterator[Answer]:
        """Ask the questions, earliest first."""
        asked_at = None
        for moment, question in self._set.sort_questions(self._options.split, wait=self._options.wait):
            if moment != asked_at:
                self._move_clock(moment)
                self._list_live()
                asked_at = moment
            yield self._ask(question)

    def count_rest(self) -> Rest:
        """Count what is left of the memories that no question of the headline needs."""
        needed = {id for question in self._set.questions if question.is_headline for id in question.expected}
        old = [
            memory
            for moment, memory in self._set.sort_memories()
            if memory.id not in needed and memory.title is None and self._now - moment > YOUNG
        ]
        kept = [self._live.get(self._counts_as[memory.id]) for memory in old]
        return Rest(
            len(old),
            sum(chars is not None for chars in kept),
            sum(len(memory.spoken) for memory in old),
            # Equal notes are one memory, and a text is clipped when it is stored: never more than the text had.
            sum(min(chars or 0, len(memory.spoken)) for memory, chars in zip(old, kept, strict=True)),
        )

    def _move_clock(self, moment: datetime) -> None:
        self._now = moment
        if not self._options.is_endless and self._maintained_on != moment.date():
            self._store.maintain()
            self._maintained_on = moment.date()

    def _store_batch(self, batch: Sequence[LabelledMemory]) -> None:
        drafts: list[dict[str, Any]] = []
        drafted: list[str] = []
        for memory in batch:
            if memory.title is not None:
                report = self._store.tenant().knowledge.ingest_text(memory.text, title=memory.title)
                self._name(report.documents[0].document.id, memory.id)
                continue
            for draft in self._build_drafts(memory):
                drafts.append(draft)
                drafted.append(memory.id)
        for kept, id in zip(self._agent.remember_many(drafts), drafted, strict=True):
            self._name(kept.id, id)

    def _name(self, assigned: str, id: str) -> None:
        self._counts_as.setdefault(id, self._names.setdefault(assigned, id))

    def _build_drafts(self, memory: LabelledMemory) -> list[dict[str, Any]]:
        if self._options.usage is Usage.NOTES:
            return [{"text": piece} for piece in split_text(memory.spoken, RULES[Kind.NOTE].max_chars)]
        kind = check_kind(memory.fields.get("kind", Kind.EPISODE))
        times = {"created_at": memory.created_at or self._now}
        if self._options.is_endless:
            times["expires_at"] = times["created_at"] + LIFETIME
        text = clip_middle(memory.spoken.strip(), RULES[kind].max_chars)
        return [{**memory.fields, **times, "text": text, "kind": kind, "session_id": memory.session}]

    def _list_live(self) -> None:
        """Read which memories are alive."""
        self._live = {}
        before: str | None = None
        while page := self._agent.list(before=before, limit=MAX_PAGE):
            for memory in page:
                name = self._names.get(memory.id)
                if name is not None:
                    self._live[name] = self._live.get(name, 0) + len(memory.text)
            before = page[-1].id

    def _ask(self, question: LabelledQuestion) -> Answer:
        is_knowledge = any(memory.title is not None for memory in self._set.memories)
        recall = self._agent.knowledge.search if is_knowledge else self._agent.recall
        started = perf_counter()
        hits = recall(question.text, limit=DEPTH)
        seconds = perf_counter() - started
        found = [self._find_hit(hit) for hit in hits]
        expected = {self._counts_as[id] for id in question.expected}
        sessions = {self._counts_as[each.id]: each.session for each in self._set.memories if each.session is not None}
        expected_sessions = set(question.sessions) or {sessions[name] for name in expected if name in sessions}
        is_by_session = bool(expected_sessions) and not is_knowledge
        alive = len(expected & self._live.keys()) / len(expected) if expected and not is_knowledge else None
        return Answer(
            conversation=self._set.name,
            question=question,
            turns=compute_metrics(found, expected) if expected else {},
            sessions=compute_metrics([sessions.get(each, each) for each in found], expected_sessions)
            if is_by_session
            else {},
            alive=alive,
            hits=sum(not hit.weak for hit in hits),
            seconds=seconds,
        )

    def _find_hit(self, hit: Hit) -> str:
        """Return the name of the memory or document; for other sources, something that is no name."""
        id = hit.id if hit.document is None else hit.document.id
        is_named = hit.source in (Source.MEMORY, Source.KNOWLEDGE) and id in self._names
        return self._names[id] if is_named else f"{hit.source}:{hit.id}"


def split_text(text: str, max_chars: int) -> list[str]:
    """Split a text into pieces of at most `max_chars`, at white space where there is some.

    >>> split_text("one two three four", 9)
    ['one two', 'three', 'four']
    """
    pieces, rest = [], text.strip()
    while len(rest) > max_chars:
        cut = max(rest.rfind(" ", 0, max_chars + 1), rest.rfind("\n", 0, max_chars + 1))
        cut = cut if cut > 0 else max_chars
        pieces.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [piece for piece in (*pieces, rest) if piece]


DEFAULTS = ReplayOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Result of an evaluation."""

    scores: Sequence[Scores]
    stored: int
    store_seconds: float
    recall_seconds: Sequence[float]  # of each question
    rest: Rest

    @property
    def recall_p50_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.5)

    @property
    def recall_p95_ms(self) -> float:
        return 1000 * _quantile(self.recall_seconds, 0.95)


def evaluate(
    sets: Iterable[LabelledSet],
    settings: Settings,
    *,
    options: ReplayOptions = DEFAULTS,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Store each set, ask its questions and score the answers.

    `progress` is called with the number of memories stored since the last call.

    Raises: Invalid, ModelError.
    """
    answers: list[Answer] = []
    rest = Rest()
    stored, store_seconds = 0, 0.0
    for one in sets:
        if not one.select_questions(options.split):
            continue
        with Replay(one, settings, options) as replay:
            replay.store_memories(progress or (lambda count: None))
            answers += replay.ask_questions()
            rest += replay.count_rest()
            stored, store_seconds = stored + len(one.memories), store_seconds + replay.store_seconds
    if not answers:
        which = f" of the split {options.split!r}" if options.split else ""
        raise Invalid(f"There is no question{which} to ask.")
    return Evaluation(
        scores=score_answers(answers),
        stored=stored,
        store_seconds=store_seconds,
        recall_seconds=[answer.seconds for answer in answers],
        rest=rest,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
