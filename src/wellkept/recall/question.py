"""Interface of recall sources: the question, the candidates and the answer of a source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from wellkept.errors import Forbidden
from wellkept.language.text import content_hash
from wellkept.memory.rules_filters import Condition
from wellkept.model import Document, HeldWord, Kind, Memory, Owner, Source
from wellkept.model.stored import Vector
from wellkept.recall.rules_purposes import Facts, Purpose

PAST_STEP = 8
"""Factor by which a search grows while too few of its results are visible, by their time or agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Parameters of a recall."""

    query: str
    limit: int = 5
    kinds: Collection[Kind] | None = None  # without `sources` and `purpose`, also limits the search to memories
    sources: Collection[Source] | None = None
    purpose: Purpose | None = None
    as_of: datetime | None = None
    where: Condition | None = None  # limits the search to memories, as `kinds` does
    keeps_sources: bool = False  # `where` filters memories, and the other sources are searched, too
    min_relevance: float | None = None  # least relevance of each hit; None: no limit
    keeps_duplicates: bool = False  # return hits with equal texts, too
    is_asking: bool = False  # known to be no small talk, for which nothing is recalled

    def list_sources(self) -> Sequence[Source]:
        """Return the sources to search."""
        if self.purpose is not None:
            return [each for each in self.purpose.sources if self.sources is None or each in self.sources]
        is_filtered = self.kinds is not None or (self.where is not None and not self.keeps_sources)
        return tuple(self.sources or ((Source.MEMORY,) if is_filtered else Source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question that is passed to every source."""

    owner: Owner
    text: str
    now: datetime
    is_past: bool = False  # leave out records later than `now`
    kinds: Collection[Kind] = tuple(Kind)
    limit: int = 5  # number of hits to return, from all sources together
    agents: Collection[str] = ()  # only events and steps of these agents; empty: of all agents
    vector: Vector | None = None  # compared with passages; None: search by words alone
    answer_vector: Vector | None = None  # compared with memories; see `MiniLMEmbedder.move_to_answer`
    where: Condition | None = None  # only memories that meet it
    with_bookkeeping: bool = True  # include events that wellkept itself records, such as "A note was stored."


class Candidate(NamedTuple):
    """Record that a source proposes. Most candidates are never returned, so the memory is built on demand."""

    source: Source
    id: str
    text: str
    similarity: float  # chance that a person would call it relevant; see `recall.rules_calibration`
    importance: float  # 0 to 1
    created_at: datetime
    said: str = ""  # text to compare for duplicates, if it is not `text`
    seq: int = 0  # number of a memory; of equal scores, the highest comes first
    whole: Callable[[], Memory] | None = None  # builds the memory; None for other sources
    document: Document | None = None
    agent_id: str | None = None
    action: str = ""  # action of an event, or final status of a step
    held: tuple[HeldWord, ...] = ()  # rare words of the question that put it first; see `recall.rules_rare_words`

    @property
    def content_hash(self) -> str:
        """Hash that is equal for equal texts, to detect duplicates."""
        return content_hash(self.said or self.text)

    @property
    def memory(self) -> Memory | None:
        return None if self.whole is None else self.whole()

    def facts(self) -> Facts:
        """Return the fields that a purpose filters by."""
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
    """Candidates of one source, best first."""

    candidates: Sequence[Candidate] = ()


class RecallSource(Protocol):
    """Source that recall searches."""

    @property
    def name(self) -> Source: ...

    def find(self, question: Question, *, depth: int = 1) -> SourceAnswer:
        """Return the best candidates, `depth` times as many as usual.

        Raises: StoreError.
        """


USER_SOURCES = frozenset({Source.MEMORY, Source.KNOWLEDGE})
"""Sources that a user's view recalls."""


def keep_user_sources(sources: Sequence[Source], named: Collection[Source] | None) -> Sequence[Source]:
    """Leave out the sources whose records name no user. Raises: Forbidden when one of them was asked for."""
    if not USER_SOURCES.issuperset(named or ()):
        raise Forbidden("The audit log and workflows belong to no user; recall them without one.")
    return [each for each in sources if each in USER_SOURCES]
