"""Features of records for a question: what the words, the meaning, the conversation, the speaker and the time say.

`Evidence` is what an index knows of the records, and each feature is one number per record. `recall.rules_matching`
weighs them; `tools/ranking` fits the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log1p
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wellkept.language.text import ANSWER, ASKING, FIXED, NUMBER, QUESTION, SELF, SPOKEN, TIME
from wellkept.model import Role
from wellkept.recall.rules_question import ParsedQuery, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

BM25_K1 = 1.2
"""BM25 term-frequency saturation: the higher, the longer repetitions keep adding."""

BM25_B = 0.75
"""BM25 length normalisation, from 0 (none) to 1 (full)."""

NEIGHBOURS = (0.4, 0.2)
"""Share of a turn's words lent to its direct neighbours and to those two places away."""

PAUSE = 1800
"""Seconds of silence that separate conversations of records without a session."""

SPARSE = 32
"""Places for each occurrence of a word above which only the neighbours of occurrences are read, not all places."""

SPEAKERS: Sequence[Role | None] = (None, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL_RESULT)
"""Speakers by number. None marks records that are no turns and match questions about any speaker."""

Floats: TypeAlias = "NDArray[np.float32]"
Numbers: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Index data on one owner's records for one question, as parallel arrays.

    Records of one conversation are adjacent, oldest first. A record without a conversation forms one by itself.
    """

    seqs: Numbers
    conversations: NDArray[np.int32] | Numbers  # equal numbers mean the same conversation
    lengths: Floats  # in words
    since: NDArray[np.floating | np.integer]  # seconds since 1970 when the record was said or became true
    speakers: NDArray[np.int8]  # an index into SPEAKERS
    turns: NDArray[np.bool_]  # logged turns of a session; the others are facts, which are weighed by other features
    traits: NDArray[np.uint8]  # a bit for each of `text.FIXED`
    cosines: Floats | None  # to the question; NaN without a vector
    occurrences: Sequence[tuple[Numbers, Floats]]  # per query term: the rows that hold it, and its counts there
    frame: Frame | None = None  # data that depends on the records alone, if cached by the index
    allowed: NDArray[np.bool_] | None = None  # records that may be found; None: all. The others count for comparison

    def with_question(
        self,
        occurrences: Sequence[tuple[Numbers, Floats]],
        cosines: Floats | None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> Evidence:
        """Return the same records with what a question found."""
        return replace(self, occurrences=occurrences, cosines=cosines, allowed=allowed)

    def with_more(self, other: Evidence) -> Evidence:
        """Append the records of another index, with conversations of its own."""
        # Above all numbers of the first part; they are given from different counts.
        shift = self.conversations.max(initial=0) - other.conversations.min(initial=0) + 1
        own_cosines, other_cosines = (each.cosines for each in (self, other))
        cosines = None if own_cosines is None or other_cosines is None else np.concatenate((own_cosines, other_cosines))
        shifted = [(rows + len(self.seqs), counts) for rows, counts in other.occurrences]
        occurrences = [
            (np.concatenate((mine[0], theirs[0])), np.concatenate((mine[1], theirs[1])))
            for mine, theirs in zip(self.occurrences, shifted, strict=True)
        ]
        return Evidence(
            seqs=np.concatenate((self.seqs, other.seqs)),
            conversations=np.concatenate((self.conversations, other.conversations + shift)),
            lengths=np.concatenate((self.lengths, other.lengths)),
            since=np.concatenate((self.since, other.since)),
            speakers=np.concatenate((self.speakers, other.speakers)),
            turns=np.concatenate((self.turns, other.turns)),
            traits=np.concatenate((self.traits, other.traits)),
            cosines=cosines,
            occurrences=occurrences,
            allowed=None if self.allowed is None or other.allowed is None else np.append(self.allowed, other.allowed),
        )

    def with_holders(self, place: int, seqs: Sequence[int]) -> Evidence:
        """Replace the occurrences of one query term by these records, each with one."""
        rows = np.flatnonzero(np.isin(self.seqs, seqs))
        held = (rows, np.ones(len(rows), np.float32))
        return replace(self, occurrences=[*self.occurrences[:place], held, *self.occurrences[place + 1 :]])

    @classmethod
    def empty(cls) -> Evidence:
        none = np.zeros(0, np.int64)
        return cls(
            seqs=none,
            conversations=none,
            lengths=none.astype(np.float32),
            since=none.astype(np.float64),
            speakers=none.astype(np.int8),
            turns=none.astype(np.bool_),
            traits=none.astype(np.uint8),
            cosines=None,
            occurrences=(),
        )


def number_conversations(
    sessions: Numbers, *, seqs: Numbers, speakers: NDArray[np.int8], since: NDArray[np.float64]
) -> Numbers:
    """Assign each record a conversation number; `sessions` is 0 for records without a session.

    Turns without a session are grouped by `PAUSE`, and so are records that are no turns: what is written down in one go
    belongs together.
    """
    found: Numbers = sessions.copy()
    for is_turn in (True, False):
        alone = np.flatnonzero((sessions == 0) & ((speakers != 0) == is_turn))
        if len(alone):
            alone = alone[np.argsort(seqs[alone])]
            begins = np.r_[True, np.abs(np.diff(since[alone])) > PAUSE]
            found[alone] = -seqs[alone][begins][np.cumsum(begins) - 1]
    return found


def length_norms(lengths: Floats, mean: float | None = None) -> Floats:
    """Compute the length part of BM25's denominator; `mean` is the average length if these are not all records."""
    average = max(float(lengths.mean()) if mean is None else mean, 1e-9)
    norms: Floats = BM25_K1 * (1 - BM25_B + BM25_B * lengths / np.float32(average))
    return norms


def rarity(total: int, holding: int) -> float:
    """Compute the inverse document frequency of BM25."""
    return log1p((total - holding + 0.5) / (holding + 0.5))


@dataclass(frozen=True, slots=True)
class NeighbourWeights:
    """Shares of words that neighbouring records of a conversation lend each other, by distance.

    For each distance there is a mark for each record and its predecessor at that distance, padded at both ends: True if
    they belong to one conversation.
    """

    marks: Mapping[int, NDArray[np.bool_]]

    @classmethod
    def of(cls, conversations: NDArray[np.int32] | Numbers) -> NeighbourWeights:
        found = {apart: conversations[apart:] == conversations[:-apart] for apart in range(1, len(NEIGHBOURS) + 1)}
        return cls({apart: np.pad(marks, apart) for apart, marks in found.items() if marks.any()})

    def lend(self, own: Floats) -> Floats:
        """Return `own` plus the words lent by neighbours."""
        lent = own.copy()
        for apart, marks in self.marks.items():
            weights = np.float32(NEIGHBOURS[apart - 1]) * marks[apart:-apart]
            lent[apart:] += weights * own[:-apart]
            lent[:-apart] += weights * own[apart:]
        return lent

    def lend_words(
        self, rows: Numbers, words: Numbers, counts: Floats, total: int, *, back: Floats
    ) -> tuple[Numbers, Numbers, Floats]:
        """Lend the counts of several words; return the rows and words that have or get any, each pair once.

        `rows` hold the words, each pair once. `back` is what they lend to the records before them.
        """
        # A place for each pair, with a margin on both sides that takes what is lent beyond the first and last record.
        margin = len(NEIGHBOURS)
        width = total + 2 * margin
        own = words * width + (rows + margin)
        places, gifts = [own], [counts]
        for apart, marks in self.marks.items():
            share = np.float32(NEIGHBOURS[apart - 1])
            places += [own + apart, own - apart]
            gifts += [share * marks[rows + apart] * counts, share * marks[rows] * back]
        # Untouched pages of new zeros take neither time nor memory.
        sums = np.zeros((int(words[-1]) + 1) * width, np.float32)
        for place, gift in zip(places, gifts, strict=True):
            sums[place] += gift
        if len(sums) <= SPARSE * len(rows):
            at = (sums > 0).nonzero()[0]
            lent = sums[at]
        else:
            kept = list[tuple[Numbers, Floats]]()
            for place in places:
                lent = sums[place]
                # What was read once is 0 for the next of the five neighbours that lend to the same pair.
                sums[place] = 0
                kept.append((place[lent > 0], lent[lent > 0]))
            at, lent = np.concatenate([at for at, _ in kept]), np.concatenate([lent for _, lent in kept])
        word, row = np.divmod(at, width)
        return row - margin, word, lent


@dataclass(frozen=True, slots=True)
class Frame:
    """Data derived from an owner's records alone; an index may cache it across questions."""

    beside: NeighbourWeights
    norms: Floats  # BM25 length norm of each record, including words lent by neighbours
    talk: NDArray[np.int32]  # conversation number of each record, from 0
    talk_starts: Numbers  # first record of each conversation
    talk_norms: Floats  # BM25 length norm of each conversation
    log_lengths: Floats  # natural logarithm of each record's number of words plus 1
    mean_length: float

    @classmethod
    def of(cls, conversations: NDArray[np.int32] | Numbers, lengths: Floats) -> Frame:
        beside = NeighbourWeights.of(conversations)
        begins = np.r_[True, conversations[1:] != conversations[:-1]]
        talk = np.cumsum(begins) - 1
        talk_lengths = np.bincount(talk, lengths).astype(np.float32)
        return cls(
            beside=beside,
            norms=length_norms(beside.lend(lengths)),
            talk=talk.astype(np.int32),
            talk_starts=np.flatnonzero(begins),
            talk_norms=length_norms(talk_lengths),
            log_lengths=np.log1p(lengths),
            mean_length=float(lengths.mean()),
        )

    @property
    def nbytes(self) -> int:
        weights = sum(int(each.nbytes) for each in self.beside.marks.values())
        arrays = (self.norms, self.talk, self.talk_starts, self.talk_norms, self.log_lengths)
        return weights + sum(int(each.nbytes) for each in arrays)


WORD_COSINE = 0.6
"""Cosine that a record without a vector would have if it held every word of the question."""

DOUBT = 3
"""Number of zero cosines added to the average, because the average of few records is unreliable."""

SHORT_TERMS = 20
"""Mean length, in terms, up to which an owner's records count as short."""

NAMED_DAYS = 10
"""Longest span, in days, that counts as a specific day or week."""

MIN_TURNS_SHARE = 0.1
"""Share of the records that must begin with a name for it to be a speaker's and not a label ("Decision: …")."""

FIRST_DAY = 719_163  # date(1970, 1, 1).toordinal()

_ASSISTANT = SPEAKERS.index(Role.ASSISTANT)


@dataclass(frozen=True, slots=True)
class WordScores:
    """Word scores of every record, relative to the score of an average record that holds every word once."""

    own: Floats  # BM25
    near: Floats  # BM25 with the words lent by neighbours
    around: Floats  # BM25 of the whole conversation
    cover: Floats  # share of the question's words, by rarity, that the record holds
    near_cover: Floats  # the same, with its neighbours


def compute_features(evidence: Evidence, question: ParsedQuery) -> dict[str, Floats]:
    """Return the features by name; one that is the same for all records is left out."""
    frame = evidence.frame or Frame.of(evidence.conversations, evidence.lengths)
    found: dict[str, Floats] = {"length": frame.log_lengths}
    words = _score_words(evidence, question, frame)
    found |= {
        "own": words.own,
        "near": words.near,
        "around": words.around,
        "cover": words.cover,
        "near_cover": words.near_cover,
        # What is written down together often has nothing else in common, so it says nothing about a fact without a word
        # of the question.
        "around_held": words.around * (words.cover > 0),
    }
    if evidence.cosines is not None:
        found["cosine"] = _fill_cosines(evidence.cosines, words.cover)
        average = _average_cosine(evidence.cosines)
        meaning = _score_meaning(evidence.cosines, average, words.near_cover)
        found["meaning"] = meaning
        found["near_meaning"] = _find_neighbours(meaning, evidence.conversations)
        found["talk_meaning"] = np.maximum.reduceat(meaning, frame.talk_starts)[frame.talk]
    found |= _find_speakers(evidence, question)
    for name, spans in (
        ("other_day", [span for span in question.spans if span.days <= NAMED_DAYS]),
        ("other_time", [span for span in question.spans if span.days > NAMED_DAYS]),
    ):
        if spans:
            found[name] = _find_distance(spans, evidence.since)
    time, number = _has(evidence, TIME), _has(evidence, NUMBER)
    asks = _has(evidence, QUESTION)
    return found | {
        "asks": asks,
        "asking": _has(evidence, ASKING),
        "echo": asks * _find_echoes(evidence, words.cover, len(question.weights)),
        "self": _has(evidence, SELF),
        "asked_time" if question.asks_time else "time": time,
        "asked_number" if question.asks_number else "number": number,
    }


def shortness(evidence: Evidence) -> float:
    """Return 1 for an owner of short records and less, down to 0, the longer they are.

    Neighbours and conversations say much about a turn of ten words and little about one of two hundred.
    """
    mean = float(evidence.lengths.mean()) if evidence.frame is None else evidence.frame.mean_length
    return min(1.0, SHORT_TERMS / max(mean, 1e-9))


def _has(evidence: Evidence, trait: str) -> Floats:
    return _mark_trait(trait)[evidence.traits]


def _score_words(evidence: Evidence, question: ParsedQuery, frame: Frame) -> WordScores:
    """Score all words at once, because most of the time would go to calls on short arrays."""
    total, talks = len(evidence.seqs), len(frame.talk_norms)
    found = list(merge_forms(evidence.occurrences, question.forms))
    held = [len(rows) for rows, _ in found]
    # A record of average length that holds the word once scores exactly its weight.
    weights = weigh_words(question, total, held)
    if not any(held):
        return WordScores(*np.zeros((5, total), np.float32))
    rows, counts = np.concatenate([rows for rows, _ in found]), np.concatenate([counts for _, counts in found])
    word = np.repeat(np.arange(len(found)), held)
    weight_of = np.array(weights)
    weight = weight_of[word]
    full = 1 / sum(weights)
    own, cover = weight * saturate(counts, length_norms(evidence.lengths[rows], frame.mean_length)), weight
    # The answer to a question follows it, so a question says nothing about what stands before it.
    states = 1 - _mark_trait(QUESTION)[evidence.traits[rows]]
    lent_to, lent_word, lent = frame.beside.lend_words(rows, word, counts, total, back=counts * states)
    lent_weight = weight_of[lent_word]
    talk, talk_word, talk_counts = _sum_pairs(frame.talk[rows], word, counts, talks)
    talk_weights = weigh_words(question, talks, np.bincount(talk_word, minlength=len(found)).tolist())
    talk_weight = np.array(talk_weights)[talk_word]
    around = _sum_rows(talk, talk_weight * saturate(talk_counts, frame.talk_norms[talk]), talks, full)
    return WordScores(
        own=_sum_rows(rows, own, total, full),
        near=_sum_rows(lent_to, lent_weight * saturate(lent, frame.norms[lent_to]), total, full),
        around=around[frame.talk],
        cover=_sum_rows(rows, cover, total, full),
        near_cover=_sum_rows(lent_to, lent_weight, total, full),
    )


def weigh_words(question: ParsedQuery, total: int, holding: Sequence[int]) -> Sequence[float]:
    """Return the weights of the words by their rarity among `total` records or conversations."""
    return [share * rarity(total, each) for share, each in zip(question.weights, holding, strict=True)]


def saturate(counts: Floats, norms: Floats) -> Floats:
    """Return BM25's part of a word's count: 1 for a single occurrence in a text of average length."""
    part: Floats = np.float32(BM25_K1 + 1) * counts / (counts + norms)
    return part


def _sum_rows(rows: Numbers, values: NDArray[np.floating], total: int, factor: float) -> Floats:
    """Return the sum of the values of each of `total` rows, times a factor."""
    return (np.bincount(rows, values, total) * factor).astype(np.float32)


def _sum_pairs(rows: Numbers, words: Numbers, counts: Floats, total: int) -> tuple[Numbers, Numbers, Floats]:
    """Add up the counts of each pair of a row and a word; return the rows, the words and the sums of the pairs."""
    sums = np.bincount(words * total + rows, counts)
    pairs = np.flatnonzero(sums)
    return pairs % total, pairs // total, sums[pairs].astype(np.float32)


def merge_forms(
    occurrences: Sequence[tuple[Numbers, Floats]], forms: Sequence[int]
) -> Iterator[tuple[Numbers, Floats]]:
    """Merge the occurrences of all forms of each word."""
    start = 0
    for count in forms:
        of_word = [each for each in occurrences[start : start + count] if len(each[0])]
        start += count
        if len(of_word) < 2:
            yield of_word[0] if of_word else occurrences[start - 1]
            continue
        rows, places = np.unique(np.concatenate([rows for rows, _ in of_word]), return_inverse=True)
        counts = np.concatenate([counts for _, counts in of_word])
        yield rows, np.bincount(places, counts).astype(np.float32)


def _average_cosine(cosines: Floats) -> float:
    """Return the average cosine of the owner's records that have a vector."""
    known, total = cosines, float(cosines.sum())
    # The sum is NaN if any record has no vector.
    if total != total:
        known = cosines[~np.isnan(cosines)]
        total = float(known.sum())
    return total / (len(known) + DOUBT)


def _fill_cosines(cosines: Floats, cover: Floats) -> Floats:
    """Rate a record without a vector by its words, as if its meaning agreed with them."""
    return np.where(np.isnan(cosines), np.float32(WORD_COSINE) * cover, cosines)


def _score_meaning(cosines: Floats, average: float, by_words: Floats) -> Floats:
    """Return the share of the way from the owner's average cosine to 1.

    A record without a vector is rated by its words, as if its meaning agreed with them.
    """
    meaning: Floats = (cosines - np.float32(average)) / np.float32(max(1 - average, 1e-3))
    return np.where(np.isnan(meaning), by_words, meaning) if np.isnan(meaning.sum()) else meaning


def _find_echoes(evidence: Evidence, cover: Floats, words: int) -> Floats:
    """Return how nearly each record repeats the question: it holds the question's words and hardly any others."""
    # The length of a record counts its traits, too.
    own_words = np.maximum(evidence.lengths - _count_traits()[evidence.traits], np.float32(1))
    # A long request shares the words of a question about its subject, but most of its words are others.
    echoes: Floats = cover * np.minimum(np.float32(words) / own_words, np.float32(1))
    return echoes


def _find_neighbours(meaning: Floats, conversations: NDArray[np.int32] | Numbers) -> Floats:
    """Return the better meaning of the record before and the one after, at least 0."""
    best = np.zeros(len(meaning), np.float32)
    lent = np.where(conversations[1:] == conversations[:-1], np.float32(1), np.float32(0))
    best[1:] = np.maximum(best[1:], meaning[:-1] * lent)
    best[:-1] = np.maximum(best[:-1], meaning[1:] * lent)
    return best


def _find_speakers(evidence: Evidence, question: ParsedQuery) -> Mapping[str, Floats]:
    """Compare the speakers with the one the question asks about, by role or by name."""
    found: dict[str, Floats] = {}
    if question.speaker is not None:
        speakers = evidence.speakers
        if not (speakers == _ASSISTANT).any():
            # No roles were given, so go by how the texts read.
            speakers = np.where(_has(evidence, ANSWER) > 0, np.int8(_ASSISTANT), speakers)
        is_other = (speakers != SPEAKERS.index(question.speaker)) & (speakers != 0)
        found["other_speaker"] = is_other.astype(np.float32)
    named = [rows for rows, _ in evidence.occurrences[len(question.terms) :] if len(rows)]
    if named:
        rows, spoken = np.unique(np.concatenate(named)), _has(evidence, SPOKEN)
        total, of_named, of_all = len(spoken), len(rows), int(np.count_nonzero(spoken))
        # A question that names every speaker says nothing about who said it.
        if MIN_TURNS_SHARE * total <= of_named < of_all:
            by_named = np.zeros(len(spoken), np.float32)
            by_named[rows] = 1
            found |= {"named": by_named, "other_name": spoken - by_named}
    return found


@cache
def _mark_trait(trait: str) -> Floats:
    """Return 1 for each value of `Evidence.traits` with this trait, and 0 for the others."""
    return ((np.arange(256) >> FIXED.index(trait)) & 1).astype(np.float32)


@cache
def _count_traits() -> Floats:
    """Return the number of traits that each value of `Evidence.traits` stands for."""
    # `numpy.bitwise_count` needs numpy 2.
    return np.array([bits.bit_count() for bits in range(256)], np.float32)


def _find_distance(spans: Sequence[Span], since: NDArray[np.floating | np.integer]) -> Floats:
    """Return 0 inside one of the spans and more, up to 1, the further away a record is."""
    days = since / 86_400 + FIRST_DAY
    distance: Floats = 1 - np.maximum.reduce([span.closeness(days) for span in spans])
    return distance
