"""Candidates of a recall from all its sources, the purposes that select them, and the one ranking they are merged into.

Purposes and the questions that call for one are read from `purposes.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from wellkept.errors import Forbidden, Invalid
from wellkept.history.rules_history import FAILURES, is_bookkeeping
from wellkept.language.text import content_hash
from wellkept.memory.rules_filters import Condition
from wellkept.memory.rules_importance import is_small_talk
from wellkept.memory.rules_lifetime import Category, find_category
from wellkept.memory.rules_trust import UNVERIFIED, Judge, find_instruction, is_suspicious, provenance
from wellkept.model import Document, HeldWord, Hit, Kind, Memory, Owner, Recalled, Role, Source, Unanswered
from wellkept.model.stored import Vector
from wellkept.prompt.rules_escaping import escape_line
from wellkept.recall.rules_rare_words import raise_relevance

SOURCE_PRIORITY: Mapping[Source, float] = {
    Source.MEMORY: 1.0,
    Source.AUDIT: 0.8,
    Source.WORKFLOW: 0.6,
    Source.KNOWLEDGE: 0.5,
}
"""Score part `source`: at equal similarity, an agent's own memories rank above shared history and documents."""


HALF_LIFE = timedelta(days=365)
"""Age at which the recency of a record counts half."""


def recency(created_at: datetime, *, now: datetime) -> float:
    """Return 1 for a new record, halving every `HALF_LIFE`.

    >>> recency(datetime(2026, 1, 1), now=datetime(2027, 1, 1))
    0.5
    """
    age = (now - created_at) / HALF_LIFE
    return float(0.5**age) if age > 0 else 1.0


def score_parts(similarity: float, *, recency: float, importance: float, source: Source) -> dict[str, float]:
    """Return the parts of a score. All but the similarity count in proportion to it.

    A record gains from being new or important only as far as it is relevant; otherwise these would outweigh the small
    differences between weak matches.

    >>> score_parts(0.5, recency=1.0, importance=0.4, source=Source.MEMORY)
    {'similarity': 0.5, 'recency': 0.5, 'importance': 0.2, 'source': 0.5}
    """
    return {
        "similarity": similarity,
        "recency": similarity * recency,
        "importance": similarity * importance,
        "source": similarity * SOURCE_PRIORITY[source],
    }


def weighted_sum(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Compute the final score as a weighted sum.

    >>> weights = {"similarity": 0.5, "recency": 0.2, "importance": 0.2, "source": 0.1}
    >>> round(weighted_sum({"similarity": 0.8, "recency": 0.5, "importance": 0.5, "source": 1.0}, weights), 3)
    0.7
    """
    score = 0.0
    for name, value in parts.items():
        score += weights[name] * value
    return score


def order_equal_texts(texts: Sequence[tuple[str, Source]]) -> list[int]:
    """Return an order in which equal texts stand where the first of them was, the most trusted source first.

    >>> order_equal_texts([("a", Source.KNOWLEDGE), ("b", Source.MEMORY), ("a", Source.MEMORY)])
    [2, 0, 1]
    """
    first: dict[str, int] = {}
    keys = [(first.setdefault(text, place), -SOURCE_PRIORITY[source]) for place, (text, source) in enumerate(texts)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def drop_duplicates(hashes: Iterable[str], *, most: int | None = None) -> tuple[list[int], dict[int, int]]:
    """Return the positions of first occurrences, and a map from each duplicate to its first occurrence.

    `hashes` are ordered best first; the scan stops once `most` distinct hashes were seen.

    >>> drop_duplicates(["a", "b", "a", "a", "c"])
    ([0, 1, 4], {2: 0, 3: 0})
    >>> drop_duplicates(["a", "a", "b", "c"], most=2)
    ([0, 2], {1: 0})
    """
    first: dict[str, int] = {}
    duplicates = {}
    for position, each in enumerate(hashes):
        if first.setdefault(each, position) != position:
            duplicates[position] = first[each]
        elif len(first) == most:
            break
    return list(first.values()), duplicates


DEPTH = 4
"""Factor on the number of candidates, because the filter of a purpose rejects most of them."""

HEADING = "What you remember about this"
"""Heading of a recall without a purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """One kind of question, with its sources, weights and filter.

    A memory matches by its role, category or words. An event or step matches unless it is our own bookkeeping; if
    `is_narrow`, it matches only if `words` occur in its text, action or status, bookkeeping or not.
    """

    name: str
    heading: str
    sources: tuple[Source, ...]
    weights: Mapping[str, float]
    roles: Collection[Role] = ()
    categories: Collection[str] = ()
    words: re.Pattern[str] | None = None  # None matches no memory by its words
    is_narrow: bool = False  # apply `words` to events and steps as well
    failures_first: bool = False  # among the hits that are returned
    by_agent: bool = False  # one hit per agent, scored by its success rate


_SOURCE = tomllib.loads(Path(__file__).with_name("purposes.toml").read_text("utf-8"))


def _compile_words(pieces: Iterable[str]) -> re.Pattern[str]:
    words = "".join(pieces).replace("%failure%", "".join(_SOURCE["failure"]))
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def _read_purpose(name: str, table: Mapping[str, Any]) -> Purpose:
    fields = {each: value for each, value in table.items() if each != "triggers"}
    if "words" in fields:
        fields["words"] = _compile_words(fields["words"])
    for each, kind in (("sources", Source), ("roles", Role), ("categories", Category)):
        fields[each] = tuple(map(kind, fields.get(each, ())))
    return Purpose(name=name, **fields)


PURPOSES = {name: _read_purpose(name, table) for name, table in _SOURCE["purposes"].items()}
"""Purposes by name."""

_FAILURE = _compile_words(_SOURCE["failure"])
_TRIGGERS = {name: _compile_words(_SOURCE["purposes"][name]["triggers"]) for name in _SOURCE["precedence"]}
"""Words that call for each purpose, in order of precedence."""


def check_purpose(name: str | None) -> Purpose | None:
    """Look up a purpose by name.

    Raises: Invalid.
    """
    if name is None:
        return None
    if name not in PURPOSES:
        raise Invalid(f"There is no purpose {str(name)[:40]!r}; choose {', '.join(PURPOSES)}.")
    return PURPOSES[name]


def is_relevant(purpose: Purpose, candidate: Candidate) -> bool:
    """Return True if a candidate matches the filter of a purpose."""
    if memory := candidate.memory:
        if memory.role in purpose.roles or find_category(memory.category) in purpose.categories:
            return True
        return purpose.words is not None and bool(purpose.words.search(" ".join([candidate.text, *memory.tags])))
    if purpose.by_agent and not candidate.agent_id:
        return False
    if purpose.is_narrow and purpose.words is not None:
        return bool(purpose.words.search(f"{candidate.text} {candidate.action.replace('.', ' ')}"))
    return not (candidate.source is Source.AUDIT and is_bookkeeping(candidate.action))


def is_failure(candidate: Candidate) -> bool:
    """Return True if a candidate reports a failure, by its category, status or words."""
    if memory := candidate.memory:
        return find_category(memory.category) is Category.ERROR or (
            memory.category in (None, Category.FACT) and bool(_FAILURE.search(candidate.text))
        )
    if candidate.source is Source.WORKFLOW:
        return candidate.action in FAILURES
    return candidate.action.rpartition(".")[2] in FAILURES or bool(_FAILURE.search(candidate.text))


def arrange_hits(
    purpose: Purpose, hits: Sequence[Hit], failed: Collection[str], *, limit: int
) -> tuple[list[Hit], Mapping[str, str]]:
    """Order hits for a purpose; also return the ids of hits merged into another one.

    `failed` holds the ids of hits that report a failure.
    """
    if purpose.by_agent:
        return _by_agent(purpose, hits, failed)
    first = hits[:limit]
    if purpose.failures_first:
        first = sorted(first, key=lambda hit: (is_unverified(hit), hit.id not in failed))
    return [*first, *hits[limit:]], {}


def _by_agent(purpose: Purpose, hits: Sequence[Hit], failed: Collection[str]) -> tuple[list[Hit], Mapping[str, str]]:
    """Merge hits into one per agent, best track record first.

    The part `importance` is the success rate with one success and one failure added (Laplace smoothing), so that ten
    successes count more than a single one.
    """
    by_agent: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.agent_id is not None:
            by_agent.setdefault(hit.agent_id, []).append(hit)
    records = [_track_record(agent, agent_hits, failed, purpose.weights) for agent, agent_hits in by_agent.items()]
    merged = {hit.id: agent_hits[0].id for agent_hits in by_agent.values() for hit in agent_hits[1:]}
    return sorted(records, key=lambda hit: (is_unverified(hit), -hit.score)), merged


def _track_record(agent: str, hits: Sequence[Hit], failed: Collection[str], weights: Mapping[str, float]) -> Hit:
    best, successes = hits[0], sum(hit.id not in failed for hit in hits)
    parts = {**best.parts, "importance": (successes + 1) / (len(hits) + 2)}
    text = f"{agent}: {successes} of {len(hits)} went well; the most similar: {best.text}"
    return replace(best, text=text, parts=parts, weights=weights, score=weighted_sum(parts, weights))


def recall_block(recalled: Recalled) -> str | None:
    """Render recalled hits for a prompt, one line each, below a heading; return None if there are no hits.

    The text of a hit is data, so it is kept on a single line.
    """
    if not recalled:
        return None
    lines = map(_render_hit, sorted(recalled, key=is_unverified))
    return "\n".join([f"## {recalled.heading or HEADING}", *lines])


def _render_hit(hit: Hit) -> str:
    source = f"{hit.source.value} {escape_line(hit.id)}, {hit.created_at:%Y-%m-%d}"
    return f"- ({source}) {_origin_mark(hit)}{escape_line(hit.text)}"


def is_unverified(hit: Hit) -> bool:
    """Return True if a hit reads like instructions; sources without approval are judged by their words."""
    return is_suspicious(hit.memory) if hit.memory is not None else find_instruction(hit.text) is not None


def _origin_mark(hit: Hit) -> str:
    if hit.memory is not None:
        return provenance(hit.memory)
    return f"[{UNVERIFIED}] " if is_unverified(hit) else ""


MAX_PURPOSES = 3
"""Maximum number of purposes for one prompt; more would crowd out the prompt itself."""


def find_purposes(prompt: str, *, is_first: bool, has_tools: bool) -> Sequence[str]:
    """Return the purposes a prompt calls for.

    `is_first` marks the first prompt of a conversation, which starts a task. `has_tools` says that the agent can choose
    a tool.

    >>> find_purposes("Should we approve the refund?", is_first=False, has_tools=True)
    ['decision_memo']
    >>> find_purposes("Deploy the release", is_first=True, has_tools=True)
    ['task_intake', 'tool_selection']
    >>> find_purposes("Thank you!", is_first=False, has_tools=True)
    []
    """
    names = ["task_intake"] if is_first else []
    names += [name for name, words in _TRIGGERS.items() if words.search(prompt)]
    if not has_tools and "tool_selection" in names:
        names.remove("tool_selection")
    assert set(names) <= set(PURPOSES)
    return names[:MAX_PURPOSES]


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
    similarity: float  # chance that a person would call it relevant; see `recall.rules_matching`
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


RecallSource = Callable[[Question, int], Sequence[Candidate]]
"""Function that returns the best candidates of a source, so many times as many as usual. Raises: StoreError."""

USER_SOURCES = frozenset({Source.MEMORY, Source.KNOWLEDGE})
"""Sources that a user's view recalls."""


def keep_user_sources(sources: Sequence[Source], named: Collection[Source] | None) -> Sequence[Source]:
    """Leave out the sources whose records name no user. Raises: Forbidden when one of them was asked for."""
    if not USER_SOURCES.issuperset(named or ()):
        raise Forbidden("The audit log and workflows belong to no user; recall them without one.")
    return [each for each in sources if each in USER_SOURCES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ranked candidates of all sources, best first, before they are cut to the limit."""

    hits: Sequence[Hit]
    duplicates: Mapping[str, str] = field(default_factory=dict)  # by id of a duplicate: the better hit
    unwanted: Collection[str] = ()  # ids rejected by the filter of the purpose
    below: Mapping[str, Candidate] = field(default_factory=dict)  # candidates below `min_relevance` by id, best first
    counted: Mapping[str, str] = field(default_factory=dict)  # by id of a merged hit: its agent's hit
    unanswered: Sequence[Unanswered] = ()


def merge_candidates(
    found: Mapping[Source, Sequence[Candidate]],
    now: datetime,
    request: RecallRequest,
    *,
    weights: Mapping[str, float],
    judge: Judge,
    unanswered: Sequence[Unanswered],
    most: int | None,
) -> Ranking:
    """Merge the candidates of all sources into one ranking; leave out duplicates and those outside the purpose."""
    purpose = request.purpose
    weights = weights if purpose is None else purpose.weights
    proposed, below = _split_by_relevance(found, request)
    relevant = [each for each in proposed if purpose is None or is_relevant(purpose, each)]
    scored = [_Scored.of(each, now, weights) for each in relevant]
    # Whoever holds a rare word of the question comes first. Ties go to the newest memory.
    scored.sort(key=lambda each: (len(each.candidate.held), each.score, each.candidate.seq), reverse=True)
    if len({each.source for each in relevant}) > 1:
        texts = [(each.candidate.content_hash, each.candidate.source) for each in scored]
        scored = [scored[place] for place in order_equal_texts(texts)]
    # A success rate counts every run, so runs with the same text are not duplicates.
    keeps_duplicates = request.keeps_duplicates or (purpose is not None and purpose.by_agent)

    def take_best(most: int | None) -> tuple[Sequence[int], Mapping[int, int], Sequence[Hit]]:
        hashes = (each.candidate.id if keeps_duplicates else each.candidate.content_hash for each in scored)
        distinct, duplicates = drop_duplicates(hashes, most=most)
        return distinct, duplicates, [scored[each].to_hit(weights, judge) for each in distinct]

    distinct, duplicates, hits = take_best(most if purpose is None else None)
    if any(map(is_unverified, hits)):
        # Unverified hits rank below all others, so take the whole list before sorting.
        distinct, duplicates, hits = take_best(None)
        hits = sorted(hits, key=is_unverified)
    counted: Mapping[str, str] = {}
    if purpose is not None:
        failed = {scored[each].candidate.id for each in distinct if is_failure(scored[each].candidate)}
        hits, counted = arrange_hits(purpose, hits, failed, limit=request.limit)
    kept = {each.id for each in relevant}
    return Ranking(
        hits=hits,
        duplicates={scored[each].candidate.id: scored[first].candidate.id for each, first in duplicates.items()},
        unwanted=[each.id for each in proposed if each.id not in kept],
        below=below,
        counted=counted,
        unanswered=unanswered,
    )


def _split_by_relevance(
    found: Mapping[Source, Sequence[Candidate]], request: RecallRequest
) -> tuple[list[Candidate], dict[str, Candidate]]:
    """Split the candidates into those to rank and those below `min_relevance`; for small talk, all are below."""
    # "Thanks, that's all" asks for nothing.
    is_silent = not request.is_asking and is_small_talk(request.query)
    least = request.min_relevance or 0.0
    proposed, below = list[Candidate](), dict[str, Candidate]()
    for candidate in chain.from_iterable(found.values()):
        if candidate.held:
            candidate = candidate._replace(similarity=raise_relevance(candidate.similarity, candidate.held))
        if is_silent or candidate.similarity < least:
            below[candidate.id] = candidate
        else:
            proposed.append(candidate)
    return proposed, below


class _Scored(NamedTuple):
    """Candidate with its score. Few candidates become hits, so a hit is built on demand."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]

    @classmethod
    def of(cls, candidate: Candidate, now: datetime, weights: Mapping[str, float]) -> _Scored:
        new, source = recency(candidate.created_at, now=now), candidate.source
        parts = score_parts(candidate.similarity, recency=new, importance=candidate.importance, source=source)
        # The same sum as that of the parts, with the similarity taken out of it.
        lift = weights["recency"] * new + weights["importance"] * candidate.importance
        score = candidate.similarity * (weights["similarity"] + lift + weights["source"] * SOURCE_PRIORITY[source])
        return cls(candidate, score, parts)

    def to_hit(self, weights: Mapping[str, float], judge: Judge) -> Hit:
        candidate, memory = self.candidate, self.candidate.memory
        return Hit(
            source=candidate.source,
            id=candidate.id,
            text=candidate.text,
            score=self.score,
            parts=self.parts,
            weights=weights,
            created_at=candidate.created_at,
            memory=None if memory is None else judge(memory),
            document=candidate.document,
            agent_id=candidate.agent_id,
            held=candidate.held,
        )
