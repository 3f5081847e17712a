"""Explain why a record was recalled or not, or a whole answer.

The recall runs again, by the same code and with the same weights, but marks nothing as retrieved. If the record is not
among the hits, its state and the ranking give the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from wellkept.caller import current_caller
from wellkept.errors import NotFound
from wellkept.language.names import memory_seq
from wellkept.language.text import terms
from wellkept.memory.rules_filters import is_matching
from wellkept.model import Appearance, Document, Explanation, Hit, Memory, Outcome, Owner, Source, State
from wellkept.prompt.prompt_log import ContextCalls
from wellkept.recall.recall import Recall, build_request
from wellkept.recall.rules_question import other_forms
from wellkept.recall.rules_ranking import USER_SOURCES, Ranking, RecallRequest
from wellkept.shared import Shared

if TYPE_CHECKING:
    pass

DEEPEST = 200
"""Factor on the number of candidates of a recall, to find the rank of a record that was not among them."""

MAX_WAITING = 10_000
"""Maximum number of texts without a vector that are searched for the record."""

NEAR_MISSES = 5
"""Number of records an explanation of a whole answer adds to its hits."""

LATEST_PROMPTS = 20
"""Number of an agent's latest prompts that are searched for the record."""

_EVENT = re.compile(r"a-([1-9][0-9]{0,17})")
_STEP = re.compile(r"(.+)/([1-9][0-9]{0,17})")
_PASSAGE = re.compile(r".+#[0-9]{1,18}")
_WORD = re.compile(r"[\w'’]+")

ID_SHAPES: Mapping[Source, Callable[[str], object]] = {
    Source.MEMORY: lambda id: memory_seq(id) is not None,
    Source.AUDIT: _EVENT.fullmatch,
    Source.KNOWLEDGE: _PASSAGE.fullmatch,
    Source.WORKFLOW: _STEP.fullmatch,
}
"""Predicates for the ids of each source; the first one that matches decides."""

NOTHING_THERE = "Nothing is recalled: no memory is kept here yet, or none passes the filters."

GONE: Mapping[Outcome, str] = {
    Outcome.ARCHIVED: "It was archived, because it faded, expired or exceeded the quota, and is no longer recalled.",
    Outcome.HELD: "It is held for review because of its origin; approve it to have it recalled.",
    Outcome.EXPIRED: "It has expired; expired memories are kept for a while but not recalled.",
    Outcome.SUPERSEDED: "It was corrected by another memory.",
    Outcome.LATER: "It was not known yet at the time of the question.",
}
NOT_FOUND = "There is nothing of this id, or it is not yours."


class Explain:
    """Service that explains the result of a recall, for one record or as a whole."""

    def __init__(self, shared: Shared, recall: Recall, calls: ContextCalls) -> None:
        self._store, self._now, self._recall, self._calls = shared.store, shared.now, recall, calls

    def __call__(self, owner: Owner, query: str, id: str | None, **options: Any) -> Explanation:
        """Explain why the record with this id is recalled or not; None explains each hit and the best near misses.

        Raises: Invalid; StoreError when no source answers.
        """
        request = build_request(query, **options)
        if id is None:
            ranking = self._recall.rank(owner, request, most=request.limit + NEAR_MISSES)
            return self._explain_answer(owner, ranking, request)
        ranking = self._recall.rank(owner, request)
        explanation = (
            _explain_candidate(ranking, request, id)
            or self._explain_exclusion(owner, ranking, request, id)
            or _explain_rank(self._recall.rank(owner, request, depth=DEEPEST), request, id)
            or self._explain_mismatch(owner, request, id)
        )
        prompts = tuple(self._find_appearances(owner, id))
        return replace(explanation, hits=tuple(ranking.hits[: request.limit]), prompts=prompts)

    def _explain_answer(self, owner: Owner, ranking: Ranking, request: RecallRequest) -> Explanation:
        shown, rest = ranking.hits[: request.limit], ranking.hits[request.limit :]
        # The nearest first: those that only the limit left out, then duplicates, then what `min_relevance` cut.
        below = sorted(ranking.below, key=ranking.below.__getitem__, reverse=True)
        missed = [*(hit.id for hit in rest), *ranking.duplicates, *ranking.counted, *below, *ranking.unwanted]
        ids = [*(hit.id for hit in shown), *dict.fromkeys(missed[:NEAR_MISSES])]
        items = [self._add_text(owner, found) for id in ids if (found := _explain_candidate(ranking, request, id))]
        sentence = f"Recalled: {len(shown)}, of at most {request.limit}. Nearest of what was left out: "
        sentence = f"{sentence}{len(items) - len(shown)}." if items else NOTHING_THERE
        return Explanation(
            id="",
            outcome=Outcome.RECALLED if shown else Outcome.BELOW_THRESHOLD if ranking.below else Outcome.NO_MATCH,
            sentence=sentence,
            unanswered=tuple(ranking.unanswered),
            hits=tuple(shown),
            items=tuple(items),
        )

    def _add_text(self, owner: Owner, explanation: Explanation) -> Explanation:
        """Add the text of a memory that did not become a hit."""
        if explanation.text or parse_source(explanation.id) is not Source.MEMORY:
            return explanation
        try:
            return replace(explanation, text=self._store.get_memory(owner, explanation.id).text)
        # Deleted since the ranking.
        except NotFound:
            return explanation

    def _find_appearances(self, owner: Owner, id: str) -> Iterator[Appearance]:
        """Yield the record's appearances in the agent's latest prompts, where it may have been left out."""
        if parse_source(id) is None:
            return
        for call in self._calls.latest(owner, session_id="", before="", limit=LATEST_PROMPTS, item=id):
            appear = partial(Appearance, call_id=call.id, session_id=call.session_id, at=call.at)
            for block in call.blocks:
                yield from (appear(block=block.name, left_out=each.left_out) for each in block.items)

    def _explain_exclusion(self, owner: Owner, ranking: Ranking, request: RecallRequest, id: str) -> Explanation | None:
        """Explain a record that does not exist, belongs to another owner, or is excluded by a filter or its state."""

        def explain(outcome: Outcome, sentence: str) -> Explanation:
            return _make_explanation(id, outcome, sentence, ranking)

        source = parse_source(id)
        found = None if source is None else self._find(owner, source, id)
        if source is None or not found:
            return explain(Outcome.MISSING, NOT_FOUND)
        if source not in request.list_sources():
            searched = ", ".join(request.list_sources())
            return explain(Outcome.FILTERED, f"Its source, {source.value}, was not asked; asked were {searched}.")
        if late := [each for each in ranking.unanswered if each.source == source]:
            return explain(Outcome.UNANSWERED, f"Its source did not answer: {late[0].reason}")
        if isinstance(found, Document) and not found.is_published:
            return explain(Outcome.FILTERED, "Its document is not published.")
        if not isinstance(found, Memory):
            return None
        if request.kinds is not None and found.kind not in request.kinds:
            kinds = ", ".join(request.kinds)
            return explain(Outcome.FILTERED, f"It is of the kind {found.kind}; asked were {kinds}.")
        now = self._now() if request.as_of is None else request.as_of
        if not is_matching(request.where, found, now):
            return explain(Outcome.FILTERED, "It does not pass the filters of the question.")
        outcome = find_exclusion(found, now, is_past=request.as_of is not None)
        return None if outcome is None else explain(outcome, GONE[outcome])

    def _explain_mismatch(self, owner: Owner, request: RecallRequest, id: str) -> Explanation:
        """Explain a record that matches the question neither by words nor by meaning."""
        seq = memory_seq(id)
        waiting = self._store.list_unembedded(owner.tenant, limit=MAX_WAITING) if seq is not None else ()
        if any(each.owner == owner.whole and each.seq == seq for each in waiting):
            sentence = "It shares no word with the question, and has no vector yet by which its meaning could be found."
            return Explanation(id=id, outcome=Outcome.NOT_EMBEDDED, sentence=sentence)
        sentence = "It shares no word with the question, and its meaning is not near enough to count."
        return Explanation(id=id, outcome=Outcome.NO_MATCH, sentence=sentence)

    def _find(self, owner: Owner, source: Source, id: str) -> object:
        """Return the record of an id, of a passage its document; something false if there is none for this owner."""
        if owner.user and source not in USER_SOURCES:
            return None
        tenant, caller = owner.tenant, current_caller()
        try:
            if source is Source.MEMORY:
                return self._store.get_memory(owner, id)
            if source is Source.AUDIT:
                events = self._store.find_events(tenant, [int(id[2:])]).values()
                return [event for event in events if not caller.agents or event.agent_id in caller.agents]
            if source is Source.WORKFLOW:
                workflow, _, position = id.rpartition("/")
                steps = self._store.list_steps(tenant, workflow, after=int(position) - 1, limit=1)
                return [
                    each for each in steps if each.id == id and (not each.agent_id or caller.is_allowed(each.agent_id))
                ]
            document, agent = self._store.get_document(tenant, id.rpartition("#")[0]), self._store.find_agent(owner)
        except NotFound:
            return None
        # Others are in a category that the agent may not see.
        limits = agent.knowledge_categories if agent is not None else ()
        return document if not limits or document.category in limits else None


def parse_source(id: str) -> Source | None:
    """Return the source that an id belongs to.

    >>> [str(parse_source(id)) for id in ("m-7", "a-12", "refund-run/1", "handbook#3", "x")]
    ['memory', 'audit', 'workflow', 'knowledge', 'None']
    """
    return next((source for source, fits in ID_SHAPES.items() if fits(id)), None)


def find_exclusion(memory: Memory, now: datetime, *, is_past: bool) -> Outcome | None:
    """Return the reason why a memory cannot be recalled at `now`; None if it can."""
    state = memory.state(now, is_past=is_past)
    if is_past and (memory.valid_from or memory.created_at) > now:
        return Outcome.LATER
    if state is State.EXPIRED and memory.is_corrected(now, is_past=is_past):
        return Outcome.SUPERSEDED
    known = {State.ARCHIVED: Outcome.ARCHIVED, State.HELD: Outcome.HELD, State.EXPIRED: Outcome.EXPIRED}
    return known.get(state)


def find_shared_words(question: str, text: str) -> tuple[str, ...]:
    """Return the words of the question that a text contains in any form, as the question spells them.

    >>> find_shared_words("Which refunds were approved?", "A refund was approved")
    ('refunds', 'approved')
    """
    text_terms = set(terms(text))
    words = {word: terms(word) for word in _WORD.findall(question)}
    return tuple(
        word
        for word, stems in words.items()
        if any(text_terms.intersection((stem, *other_forms(stem))) for stem in stems)
    )


def _explain_candidate(ranking: Ranking, request: RecallRequest, id: str) -> Explanation | None:
    """Explain a record that the search proposed; None if it did not."""
    if id in ranking.duplicates:
        better = ranking.duplicates[id]
        rival = next((hit for hit in ranking.hits if hit.id == better), None)
        sentence = f"It says the same as {better}, which scores higher and is shown instead."
        return _make_explanation(id, Outcome.DOUBLE, sentence, ranking, rival=rival)
    if id in ranking.counted:
        sentence = f"It counts towards its agent's record, which is shown as {ranking.counted[id]}."
        return _make_explanation(id, Outcome.FILTERED, sentence, ranking)
    if id in ranking.unwanted and request.purpose is not None:
        sentence = f"It does not help with {request.purpose.name}, by what it is and says."
        return _make_explanation(id, Outcome.FILTERED, sentence, ranking)
    return _explain_cut(id, ranking, request) if id in ranking.below else _explain_rank(ranking, request, id)


def _explain_rank(ranking: Ranking, request: RecallRequest, id: str) -> Explanation | None:
    """Explain the rank of a record among the hits; if it is too low, compare it with the lowest score returned."""
    place = next((place for place, hit in enumerate(ranking.hits, 1) if hit.id == id), None)
    if place is None:
        return None
    hit, returned = ranking.hits[place - 1], ranking.hits[: request.limit]
    # Not always the last in order: hits that read like instructions come last whatever they score.
    last = min(reversed(returned), key=lambda each: each.score)
    if place <= request.limit:
        outcome, sentence = Outcome.RECALLED, f"It is recalled, as number {place} of {len(returned)}."
    else:
        outcome = Outcome.OUT_RANKED
        sentence = (
            f"It is number {place}, and {request.limit} {'was' if request.limit == 1 else 'were'} asked for: "
            f"{last.id}, the last one shown, scores {last.score:.3f}, {last.score - hit.score:.3f} more."
        )
    return Explanation(
        id=id,
        outcome=outcome,
        sentence=f"{sentence} {hit.explain}.",
        rank=place,
        hit=hit,
        words=find_shared_words(request.query, hit.text),
        rival=None if outcome is Outcome.RECALLED else last,
        unanswered=tuple(ranking.unanswered),
        text=hit.text,
    )


def _explain_cut(id: str, ranking: Ranking, request: RecallRequest) -> Explanation:
    if request.min_relevance is None:
        sentence = "The question is small talk, for which nothing is recalled."
        return _make_explanation(id, Outcome.BELOW_THRESHOLD, sentence, ranking)
    sentence = (
        f"Its relevance is {ranking.below[id].similarity:.3f}, and `min_relevance` is {request.min_relevance:g}. "
        "Recall with a lower one, or without, to see it."
    )
    return _make_explanation(id, Outcome.BELOW_THRESHOLD, sentence, ranking)


def _make_explanation(
    id: str, outcome: Outcome, sentence: str, ranking: Ranking, rival: Hit | None = None
) -> Explanation:
    return Explanation(id=id, outcome=outcome, sentence=sentence, rival=rival, unanswered=tuple(ranking.unanswered))
