"""What a source is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from recollect.model import Document, Kind, Memory, Owner, Source
from recollect.policy.recall.purposes import Facts
from recollect.policy.text import content_hash
from recollect.ports import Vector

PAST_STEP = 8
"""How much further a question about the past looks, each time it found too little that is old enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, the same for all sources."""

    owner: Owner
    text: str
    now: datetime
    is_past: bool = False  # `now` lies in the past: what came later is not known yet
    kinds: Collection[Kind] = tuple(Kind)
    limit: int = 5  # how many hits are wanted of all sources together
    agents: Collection[str] = ()  # of whose work events and steps may tell; empty: everybody's
    vector: Vector | None = None  # None: words must do


class Candidate(NamedTuple):
    """One thing a source proposes. Most are never shown, so it is cheap to make and its record is made on demand."""

    source: Source
    id: str
    text: str
    similarity: float  # 0 to 1, the source's best being 1
    importance: float  # 0 to 1
    created_at: datetime
    said: str = ""  # what is compared to tell doubles, if that is not the text
    seq: int = 0  # of a memory: of equals the newest comes first
    whole: Callable[[], Memory] | None = None  # the memory, if it is one
    document: Document | None = None
    agent_id: str | None = None
    action: str = ""  # what was done, or how it ended; empty for what was only said

    @property
    def content_hash(self) -> str:
        """The same for texts that say the same."""
        return content_hash(self.said or self.text)

    @property
    def memory(self) -> Memory | None:
        return None if self.whole is None else self.whole()

    def facts(self) -> Facts:
        """What a purpose looks at."""
        memory = self.memory
        return Facts(
            source=self.source,
            text=self.text,
            action=self.action,
            agent_id=self.agent_id,
            role=None if memory is None else memory.role,
            category=None if memory is None else memory.category,
            tags=() if memory is None else memory.tags,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """A source's candidates. `strength` says how well the best of them answers the question, 0 to 1, and is what the
    sources are compared by: each knows only its own best."""

    candidates: Sequence[Candidate] = ()
    strength: float = 0.0


class RecallSource(Protocol):
    """One place to look."""

    @property
    def name(self) -> Source: ...

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        """The best candidates; `depth` times as many as usual.

        Raises: StoreError.
        """
