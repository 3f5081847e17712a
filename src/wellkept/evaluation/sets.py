"""Labelled memories and questions, whatever file they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

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
