"""How well a memory fits a question, 0 to 1: words, meaning, the conversation around it, who said it and when.

Words are BM25 in which a turn of a conversation also holds, in part, the words of the turns beside it: an answer rarely
repeats its question. They are measured against the most the question could reach, so that a question about nothing we
know gets low numbers. Meaning is a cosine, measured from the owner's average to 1. The whole conversation lends weight,
and what was said by somebody else, or at another time than the question says, counts less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.model import Role
from recollect.policy.recall.question import Asked
from recollect.policy.recall.ranking import BM25_B, BM25_K1

NEIGHBOURS = (0.4, 0.2)
"""How much of its words a turn lends to the next or previous one, and to the one after that."""

PAUSE = 1800
"""Turns that name no conversation are one as long as each follows the one before within so many seconds."""

WORDS_FULL = 0.8
"""The share of what the words could reach that a good match has."""

MEANING_FULL = 0.4
"""How far from the owner's average towards 1 the cosine of a good match lies."""

DOUBT = 3
"""The average of a few is no average: it is taken as if this many more had a cosine of 0."""

FAR = np.float32(0.01)
"""What average closeness counts."""

CONVERSATION_SHARE = 0.35
"""How much the words of the whole conversation add, in the measure of a single text's."""

OTHER_SPEAKER = 0.5
"""What a fit is worth if somebody else said it than the question asks for."""

OTHER_TIME = 0.4
"""What a fit is worth if it was said at quite another time."""

OTHER_DAY = 0.2
"""The same, if the question names the day or the week: then it means it."""

NAMED_DAYS = 10
"""A span of at most so many days names a day or a week."""

FULL = 0.4
"""A best match at least this strong counts 1; of a weaker one's share of it the root."""

FIELD = 30
"""So many of the best share most of the room between 0 and 1, so that recency and importance decide near ties only."""

TAIL = 0.1
"""The room that is left for all the others."""

SPREAD = 0.6
"""Below 1 it sets the middle of the field apart, at the cost of the very best, who stand apart anyway."""

FIRST_DAY = 719_163  # date(1970, 1, 1).toordinal()

SPEAKERS: Sequence[Role | None] = (None, Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL_RESULT)
"""None: what is no turn of a conversation, and may be asked for in any person."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an index knows about one owner's records with regard to one question; one entry for each record.

    The records of one conversation stand side by side, oldest first; one that belongs to none is its own.
    """

    seqs: Numbers
    conversations: Numbers  # the same number: the same conversation
    lengths: Floats  # in words
    since: NDArray[np.float64]  # seconds since 1970: when it was said, or became true
    speakers: NDArray[np.int8]  # an index into SPEAKERS
    cosines: Floats | None  # to the question; NaN: no vector yet
    occurrences: Sequence[tuple[Numbers, Floats]]  # for each term of the question: where it occurs, and how often
    frame: Frame | None = None  # what follows from the records alone, if somebody has kept it from an earlier question

    def with_more(self, other: Evidence) -> Evidence:
        """With the records of another index, which share no conversation with these."""
        one, two = (each.cosines for each in (self, other))
        cosines = None if one is None or two is None else np.concatenate((one, two))
        moved = [(rows + len(self.seqs), counts) for rows, counts in other.occurrences]
        occurrences = [
            (np.concatenate((mine[0], theirs[0])), np.concatenate((mine[1], theirs[1])))
            for mine, theirs in zip(self.occurrences, moved, strict=True)
        ]
        return Evidence(
            seqs=np.concatenate((self.seqs, other.seqs)),
            conversations=np.concatenate((self.conversations, other.conversations)),
            lengths=np.concatenate((self.lengths, other.lengths)),
            since=np.concatenate((self.since, other.since)),
            speakers=np.concatenate((self.speakers, other.speakers)),
            cosines=cosines,
            occurrences=occurrences,
        )

    @classmethod
    def empty(cls) -> Evidence:
        none = np.zeros(0, np.int64)
        return cls(
            seqs=none,
            conversations=none,
            lengths=none.astype(np.float32),
            since=none.astype(np.float64),
            speakers=none.astype(np.int8),
            cosines=None,
            occurrences=(),
        )


def conversations_of(
    sessions: Numbers, *, seqs: Numbers, speakers: NDArray[np.int8], since: NDArray[np.float64]
) -> Numbers:
    """A number for each record's conversation, where `sessions` has 0 for a record that names none.

    What is no turn at all is a conversation by itself.
    """
    found: Numbers = np.where(sessions == 0, -seqs, sessions)
    turns = np.flatnonzero((sessions == 0) & (speakers != 0))
    if len(turns):
        turns = turns[np.argsort(seqs[turns])]
        begins = np.r_[True, np.abs(np.diff(since[turns])) > PAUSE]
        found[turns] = -seqs[turns][begins][np.cumsum(begins) - 1]
    return found


def best(evidence: Evidence, question: Asked, *, words_share: float, limit: int) -> dict[int, float]:
    """The `limit` most similar records, and how similar each is; of equals the newest, and none that fits nowhere."""
    strength = strengths(evidence, question, words_share=words_share)
    likely = _likely(strength, limit)
    found = spread(strength[likely], strength)
    seqs = evidence.seqs[likely]
    order = np.lexsort((-seqs, -found))[:limit]
    order = order[found[order] > 0]
    return dict(zip(seqs[order].tolist(), found[order].tolist(), strict=True))


def _likely(strength: Floats, limit: int) -> Numbers:
    """The places of the `limit` strongest and of their equals: spreading keeps the order, but may make equals."""
    if limit >= len(strength):
        return np.arange(len(strength))
    return np.flatnonzero(strength >= np.partition(strength, -limit)[-limit] * np.float32(1 - 1e-5))


def strengths(evidence: Evidence, question: Asked, *, words_share: float) -> Floats:
    """How strongly each record fits; 1 is a good match, and there is no upper limit."""
    if not len(evidence.seqs):
        return np.zeros(0, np.float32)
    words, around = _words(evidence, question)
    meaning = None if evidence.cosines is None else _meaning(evidence.cosines)
    fit = fused(words, meaning, words_share=words_share) if question.terms or meaning is None else fused(None, meaning)
    fit += CONVERSATION_SHARE * around
    if question.speaker is not None:
        other = (evidence.speakers != SPEAKERS.index(question.speaker)) & (evidence.speakers != 0)
        fit[other] *= OTHER_SPEAKER
    if question.spans:
        fit *= timeliness(question, evidence.since)
    return fit


def nearest(evidence: Evidence) -> Sequence[float]:
    """The greatest cosine, if there is one."""
    if evidence.cosines is None or not len(evidence.cosines):
        return ()
    greatest = float(evidence.cosines.max())  # NaN, if there is one anywhere
    if greatest == greatest:
        return (greatest,)
    return () if np.isnan(evidence.cosines).all() else (float(np.nanmax(evidence.cosines)),)


def fused(words: Floats | None, meaning: Floats | None, *, words_share: float = 0.0) -> Floats:
    """Both sides in one number. Where one is missing (None, or NaN) the other speaks for both."""
    if words is None or meaning is None:
        one = words if meaning is None else meaning
        assert one is not None
        return np.nan_to_num(one, nan=0.0)
    known: Floats = np.where(np.isnan(meaning), words, meaning)
    return words_share * words + (1 - words_share) * known


def spread(strength: Floats, everywhere: Floats) -> Floats:
    """Strengths as similarities, 0 to 1, measured against those of all records.

    The order stays; the best of the field take up most of the room.

    >>> strength = np.array([0.5, 0.25, 0.0], np.float32)
    >>> [round(each, 2) for each in spread(strength, strength).tolist()]
    [1.0, 0.66, 0.0]
    """
    best, floor = _field(everywhere)
    above: Floats = np.clip((strength - floor) / np.float32(max(best - floor, 1e-9)), 0, 1)
    room = TAIL * np.clip(strength / np.float32(floor), 0, 1) + (1 - TAIL) * above**SPREAD if floor else above**SPREAD
    spread_out: Floats = np.float32(min(1.0, best / FULL) ** 0.5) * room
    return spread_out


def _field(strength: Floats) -> tuple[float, float]:
    """The best, and the last of the field (0: all are in it)."""
    best = max(float(strength.max()), 1e-9) if len(strength) else 1.0
    return best, max(float(np.partition(strength, -FIELD)[-FIELD]), 0.0) if len(strength) > FIELD else 0.0


def timeliness(question: Asked, since: NDArray[np.float64]) -> Floats:
    """What a fit is worth at each time: 1 inside one of the question's spans, less with the distance from it."""
    days = since / 86_400 + FIRST_DAY
    worth = np.zeros(len(days), np.float32)
    for span in question.spans:
        other = np.float32(OTHER_DAY if span.days <= NAMED_DAYS else OTHER_TIME)
        worth = np.maximum(worth, other + (1 - other) * span.closeness(days))
    return worth


def _meaning(cosines: Floats) -> Floats:
    known, total = cosines, float(cosines.sum())
    if total != total:  # some have no vector yet
        known = cosines[~np.isnan(cosines)]
        total = float(known.sum())
    average = total / (len(known) + DOUBT)
    away: Floats = (cosines - np.float32(average)) / np.float32(MEANING_FULL * max(1 - average, 1e-3))
    # What is farther than the average says next to nothing, but even there the nearer comes first.
    meaning: Floats = np.where(away > 0, away + FAR, FAR * np.exp(np.minimum(away, 0)))
    return meaning


def _words(evidence: Evidence, question: Asked) -> tuple[Floats, Floats]:
    """BM25 of each record with its neighbours' words, and of its whole conversation; 1: a good match."""
    total = len(evidence.seqs)
    frame = evidence.frame or Frame.of(evidence.conversations, evidence.lengths)
    talks = len(frame.talk_norms)
    scores, around, reach = np.zeros(total, np.float32), np.zeros(talks, np.float32), 0.0
    for share, (rows, counts) in zip(question.weights, _together(evidence.occurrences, question.forms), strict=True):
        weight = share * _rarity(total, len(rows))
        reach += weight
        if not len(rows):
            continue
        near = frame.beside.lent_by(rows, counts, total)
        scores += np.float32(weight * (BM25_K1 + 1)) * near / (near + frame.norms)
        said = np.bincount(frame.talk[rows], counts, talks).astype(np.float32)
        weight = share * _rarity(talks, int(np.count_nonzero(said != 0)))  # counting truths is ten times as quick
        around += np.float32(weight * (BM25_K1 + 1)) * said / (said + frame.talk_norms)
    full = np.float32(1 / (WORDS_FULL * reach)) if reach else np.float32(0)
    return scores * full, (around * full)[frame.talk]


def _together(occurrences: Sequence[tuple[Numbers, Floats]], forms: Sequence[int]) -> Iterator[tuple[Numbers, Floats]]:
    """Where each word occurs in any of its forms, and how often."""
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


def _norms(lengths: Floats) -> Floats:
    average = max(float(lengths.mean()), 1e-9)
    norms: Floats = BM25_K1 * (1 - BM25_B + BM25_B * lengths / np.float32(average))
    return norms


def _rarity(total: int, holding: int) -> float:
    return float(np.log1p((total - holding + 0.5) / (holding + 0.5)))


@dataclass(frozen=True, slots=True)
class Beside:
    """Which records stand one and two places apart in the same conversation: the weight each lends the other, by how
    far apart they are, for each record and the one so far before it, with room at both ends."""

    weights: Mapping[int, Floats]

    @classmethod
    def of(cls, conversations: Numbers) -> Beside:
        shares = {
            apart: np.float32(share) * (conversations[apart:] == conversations[:-apart])
            for apart, share in enumerate(NEIGHBOURS, 1)
        }
        return cls({apart: np.pad(weights, apart) for apart, weights in shares.items() if weights.any()})

    def lent(self, own: Floats) -> Floats:
        """`own`, and what the neighbours lend."""
        return self.lent_by(np.arange(len(own)), own, len(own))

    def lent_by(self, rows: Numbers, own: Floats, total: int) -> Floats:
        """The same where only these rows, each once, have anything: mostly few of many."""
        margin = len(NEIGHBOURS)  # where those beyond the ends would be, who get nothing
        lent = np.zeros(total + 2 * margin, np.float32)
        places = rows + margin
        lent[places] = own
        for apart, weights in self.weights.items():
            lent[places + apart] += weights[rows + apart] * own
            lent[places - apart] += weights[rows] * own
        return lent[margin : margin + total]


@dataclass(frozen=True, slots=True)
class Frame:
    """What follows from an owner's records alone, whatever is asked; an index may keep it from question to question."""

    beside: Beside
    norms: Floats  # of each record's length, with what its neighbours lend
    talk: Numbers  # the conversation of each record, counted from 0
    talk_norms: Floats  # of each conversation's length

    @classmethod
    def of(cls, conversations: Numbers, lengths: Floats) -> Frame:
        beside = Beside.of(conversations)
        talk = np.cumsum(np.r_[True, conversations[1:] != conversations[:-1]]) - 1
        talk_lengths = np.bincount(talk, lengths).astype(np.float32)
        return cls(beside, _norms(beside.lent(lengths)), talk, _norms(talk_lengths))

    @property
    def nbytes(self) -> int:
        lent = sum(int(each.nbytes) for each in self.beside.weights.values())
        return lent + int(self.norms.nbytes + self.talk.nbytes + self.talk_norms.nbytes)
