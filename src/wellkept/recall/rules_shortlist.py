"""Shortlist of the records of a large owner: those that may be among the best, their neighbours, and a sample of all.

Weighing a million records by all features takes a tenth of a second, most of it for records that cannot be among the
best. So all of them get a rough score first: the words that they and their neighbours hold, those of the conversation,
the cosine and the length. Only the best by that score are weighed by all features, with statistics of all records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wellkept.language.text import FIXED, SPOKEN
from wellkept.recall.rules_calibration import DEFAULT_WORDS_SHARE, FamilyWeights, load_weights
from wellkept.recall.rules_features import DOUBT, shortness
from wellkept.recall.rules_similarity import (
    NEIGHBOURS,
    Evidence,
    Floats,
    Frame,
    NeighbourWeights,
    Numbers,
    Population,
    rarity,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE = 100_000
"""Records above which a shortlist is made. Up to here all records are weighed."""

CANDIDATES = 2000
"""Records that are weighed, at least."""

SAMPLED = 1 << 14
"""Rough scores by which the one is found that the candidates exceed."""

SAMPLE = 400
"""Records, evenly spread over all, whose scores stand for those of all."""

MAX_OCCURRENCES = 400_000
"""Occurrences that the rough score counts. Of the most common words, which weigh least, those above it do not count."""

FULL = 50
"""Rough score of a record that holds all words: five records that lend each other theirs stay below 256."""

Occurrences = Sequence[tuple[Numbers, Floats]]


def shorten(
    records: Evidence,
    frame: Frame,
    occurrences: Occurrences,
    cosines: Floats | None,
    *,
    allowed: NDArray[np.bool_] | None,
    measure: Callable[[Numbers], Floats],
) -> Evidence:
    """Return the evidence of the shortlist; only its candidates are allowed to be found.

    `cosines` may be rough, and NaN without a vector; `measure` returns exact ones of some rows.
    """
    total = len(records.seqs)
    is_known = None if cosines is None or not np.isnan(cosines.sum()) else ~np.isnan(cosines)
    known = cosines if cosines is None or is_known is None else cosines[is_known]
    average = 0.0 if known is None else float(known.sum()) / (len(known) + DOUBT)
    candidates = list[Numbers]()
    for family, is_member in ((load_weights().facts, ~records.turns), (load_weights().turns, records.turns)):
        if is_member.any():
            scores = _score_roughly(records, frame, occurrences, cosines, average, family)
            scores[~is_member if allowed is None else ~(is_member & allowed)] = -np.inf
            candidates.append(_take_best(scores, records.seqs))
    chosen = np.sort(np.concatenate(candidates))
    sample = np.linspace(0, total - 1, SAMPLE).astype(np.int64)
    rows = _add_neighbours(np.concatenate((chosen, sample)), total)
    selected, talks = _select_frame(frame, rows)
    is_candidate = np.zeros(len(rows), np.bool_)
    is_candidate[np.searchsorted(rows, chosen)] = True
    found, in_talks, talks_holding = _select_occurrences(occurrences, frame, rows, talks)
    population = Population(
        total=total,
        talks=len(frame.talk_starts),
        holding=[len(places) for places, _ in occurrences],
        talks_holding=talks_holding,
        in_talks=in_talks,
        average_cosine=average,
        talk_cosines=None if cosines is None else _find_talk_cosines(cosines, is_known, frame, talks),
        sample=np.searchsorted(rows, sample),
        spoken=int(np.count_nonzero(records.traits & np.uint8(1 << FIXED.index(SPOKEN)))),
    )
    return Evidence(
        seqs=records.seqs[rows],
        conversations=records.conversations[rows],
        lengths=records.lengths[rows],
        since=records.since[rows],
        speakers=records.speakers[rows],
        turns=records.turns[rows],
        traits=records.traits[rows],
        cosines=None if cosines is None else measure(rows),
        occurrences=found,
        frame=selected,
        allowed=is_candidate,
        population=population,
    )


def _score_roughly(
    records: Evidence,
    frame: Frame,
    occurrences: Occurrences,
    cosines: Floats | None,
    average: float,
    family: FamilyWeights,
) -> Floats:
    """Return a score of each record that is roughly in the order of the final one within its family."""
    total, short = len(records.seqs), shortness(records)

    def weight(*names: str) -> np.float32:
        each = (family.weigh(name, shortness=short, words_share=DEFAULT_WORDS_SHARE) for name in names)
        return np.float32(sum(each))

    held = np.zeros(total, np.uint8)
    in_talk, has_talks = np.zeros(len(frame.talk_starts), np.float32), len(frame.talk_starts) > 1
    rarities = [rarity(total, len(rows)) if len(rows) else 0.0 for rows, _ in occurrences]
    full, counted = sum(rarities) or 1.0, 0
    for place in sorted(range(len(occurrences)), key=lambda place: len(occurrences[place][0])):
        rows = occurrences[place][0]
        counted += len(rows)
        if counted > MAX_OCCURRENCES and counted > len(rows):
            break
        share = rarities[place] / full
        # Rows of one word are distinct, so no addition is lost; of a conversation it counts once.
        held[rows] += np.uint8(round(FULL * share))
        if has_talks:
            in_talk[frame.talk[rows]] += np.float32(share)
    near = held.copy()
    for apart in range(1, len(NEIGHBOURS) + 1):
        near[apart:] += held[:-apart]
        near[:-apart] += held[apart:]
    # A word that a record shares with a neighbour counts once, which is not known here: no more than all words count.
    shares = np.minimum(np.arange(256, dtype=np.float32) / FULL, 1)
    scores: Floats = (shares * weight("near", "near_cover"))[near]
    if own := weight("own", "cover"):
        scores += (shares * own)[held]
    if has_talks:
        in_talk *= weight("around", "around_held")
        scores += in_talk if len(in_talk) == total else in_talk[frame.talk]
    scores += weight("length") * frame.log_lengths
    if cosines is not None:
        # A cosine counts as it is among facts, and relative to the average among turns.
        factor = weight("cosine") + weight("meaning") / np.float32(max(1 - average, 1e-3))
        meaning = factor * cosines
        meaning -= factor * np.float32(average)
        # A record without a vector is rated by its words.
        if np.isnan(meaning.sum()):
            meaning = np.where(np.isnan(meaning), (shares * weight("meaning", "cosine"))[near], meaning)
        scores += meaning
    return scores


def _take_best(scores: Floats, seqs: Numbers) -> Numbers:
    """Return the rows of the best scores, about `CANDIDATES` or all; of equal ones the newest."""
    rows, count = np.arange(len(scores)), CANDIDATES
    if len(scores) > count:
        # Partitioning a sample takes a fraction of the time that all scores take.
        part = scores[:: max(1, len(scores) // SAMPLED)]
        place = min(len(part), round(1.25 * count * len(part) / len(scores)))
        some = np.flatnonzero(scores >= np.partition(part, -place)[-place])
        rows = rows if len(some) < count else some
    if len(rows) > 2 * count:
        found = scores[rows]
        edge = np.partition(found, -count)[-count]
        above, equal = rows[found > edge], rows[found == edge]
        missing = count - len(above)
        rows = np.append(above, equal[np.argpartition(seqs[equal], -missing)[-missing:]])
    return rows[scores[rows] > -np.inf]


def _add_neighbours(rows: Numbers, total: int) -> Numbers:
    """Return the rows and those that lend them words, in order."""
    is_taken = np.zeros(total, np.bool_)
    for apart in range(-len(NEIGHBOURS), len(NEIGHBOURS) + 1):
        is_taken[np.clip(rows + apart, 0, total - 1)] = True
    return np.flatnonzero(is_taken)


def _select_frame(frame: Frame, rows: Numbers) -> tuple[Frame, Numbers]:
    """Return the part of a frame for some rows, and the conversations that they belong to."""
    marks: dict[int, NDArray[np.bool_]] = {}
    for apart, of_all in frame.beside.marks.items():
        is_apart = rows[apart:] - rows[:-apart] == apart
        marks[apart] = np.pad(of_all[rows[:-apart] + apart] & is_apart, apart)
    talk = frame.talk[rows].astype(np.int64)
    begins = np.r_[True, talk[1:] != talk[:-1]]
    talks = talk[begins]
    return Frame(
        beside=NeighbourWeights(marks),
        norms=frame.norms[rows],
        talk=(np.cumsum(begins) - 1).astype(np.int32),
        talk_starts=np.flatnonzero(begins),
        talk_norms=frame.talk_norms[talks],
        log_lengths=frame.log_lengths[rows],
        mean_length=frame.mean_length,
    ), talks


def _select_occurrences(
    occurrences: Occurrences, frame: Frame, rows: Numbers, talks: Numbers
) -> tuple[Occurrences, Occurrences, Sequence[int]]:
    """Return the occurrences in some rows, those in their conversations, and of each word the conversations that hold
    it."""
    place_of = np.full(len(frame.talk), -1, np.int32)
    place_of[rows] = np.arange(len(rows))
    talk_of = np.full(len(frame.talk_starts), -1, np.int32)
    talk_of[talks] = np.arange(len(talks))
    found, in_talks, holding = list[tuple[Numbers, Floats]](), list[tuple[Numbers, Floats]](), list[int]()
    for at, counts in occurrences:
        place = place_of[at]
        is_in = place >= 0
        found.append((place[is_in].astype(np.int64), counts[is_in]))
        if len(talk_of) == 1:
            holding.append(min(len(at), 1))
            in_talks.append((np.zeros(holding[-1], np.int64), counts.sum(keepdims=True)[: holding[-1]]))
            continue
        of_talk = frame.talk[at]
        is_held = np.zeros(len(talk_of), np.bool_)
        is_held[of_talk] = True
        holding.append(int(np.count_nonzero(is_held)))
        talk = talk_of[of_talk]
        sums = np.bincount(talk[talk >= 0], counts[talk >= 0], len(talks))
        in_talks.append((np.flatnonzero(sums), sums[sums > 0].astype(np.float32)))
    return found, in_talks, holding


def _find_talk_cosines(cosines: Floats, is_known: NDArray[np.bool_] | None, frame: Frame, talks: Numbers) -> Floats:
    """Return the highest cosine in each of some conversations."""
    known = cosines if is_known is None else np.where(is_known, cosines, np.float32(-1))
    best: Floats = np.maximum.reduceat(known, frame.talk_starts)[talks]
    return best
