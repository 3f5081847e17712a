"""Weigh an owner's memories inside the database, so that neither their words nor their vectors leave it.

One statement compares every entry of the owner with the question: the cosine of its vector, a bit for each word of the
question, and the few numbers that the ranking needs besides. That is some forty bytes for each memory, a twentieth of
its index entry. `recall` ranks them as it ranks the rows of an index in memory, with the same statistics of all
memories of the owner, so both ways give the same answer, up to the rounding of vectors: an index in memory has bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from wellkept.language.text import FIXED
from wellkept.memory.rules_conditions import Condition
from wellkept.model import Match
from wellkept.model.stored import Vector
from wellkept.recall.rules_ranking import BM25_K1
from wellkept.recall.rules_similarity import (
    SPEAKERS,
    Evidence,
    Floats,
    Frame,
    Numbers,
    length_norms,
    number_conversations,
    rarity,
)
from wellkept.store.conditions import Clause, compile_filter
from wellkept.store.engine import RegisteredEmbedder, Unit
from wellkept.store.search.index_rows import RowFilter

SCORE_DIGITS = 5
"""Cosines are rounded to this precision, so that equal rows get equal scores."""

WORDS_PER_NUMBER = 62
"""Words of a question in a number of 64 bits: one is the sign, and one marks words that occur more than once."""

SCORE_DIGITS = 5
"""Digits of a cosine: more would order equal vectors by how their numbers were added up."""

COLUMNS = (
    ("seq", ">i8"),
    ("since", ">i8"),
    ("session", ">i8"),
    ("length", ">i4"),
    ("speaker", ">i2"),
    ("cosine", ">f4"),
    ("traits", ">i2"),
)
"""Numbers of an entry in the order in which `weigh_entries` sends them; those with the bits of the words follow."""

POSITIVE = 2**63 - 1
"""Bits of a number that is not negative. Conversations of records without a session have negative numbers."""

ROLES = [each.value for each in SPEAKERS if each is not None]
"""Roles of the speakers, by their numbers from 1 on."""


def weigh_entries(
    unit: Unit,
    owner: Mapping[str, str],
    embedder: RegisteredEmbedder,
    *,
    terms: Sequence[str],
    vector: Vector | None,
    row_filter: RowFilter,
    where: Condition | None = None,
) -> Evidence:
    """Return the evidence that an index of the owner's memories would give."""
    parts = [terms[start : start + WORDS_PER_NUMBER] for start in range(0, len(terms), WORDS_PER_NUMBER)]
    ((sent,),) = unit.all(
        "weigh_entries",
        _write_bits(parts),
        **owner,
        kinds=list(row_filter.groups),
        now=row_filter.now,
        until=row_filter.until,
        roles=ROLES,
        positive=POSITIVE,
        embedder_id=0 if vector is None else embedder.id,
        vector=None if vector is None else "[" + ",".join(f"{value:.9g}" for value in vector.tolist()) + "]",
    )
    names = [f"words{number}" for number in range(len(parts))]
    rows = np.frombuffer(sent or b"", np.dtype([*COLUMNS, *((name, ">i8") for name in names)]))
    evidence, order = _arrange(rows)
    if vector is not None:
        evidence = replace(evidence, cosines=rows["cosine"][order].astype(np.float32))
    bits = [rows[name][order].astype(np.int64) for name in names]
    evidence = replace(evidence, occurrences=_find_occurrences(unit, owner, evidence.seqs, bits, parts))
    if where is None:
        return evidence
    now, is_past = datetime.fromtimestamp(row_filter.now, UTC), row_filter.until is not None
    clause = compile_filter(where, "postgres", now, is_past=is_past)
    ((found,),) = unit.all("entries_where", clause, **owner)
    return replace(evidence, allowed=np.isin(evidence.seqs, np.frombuffer(found or b"", ">i8")))


def quote_lexeme(term: str) -> str:
    """Quote a word for a tsvector or tsquery."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _write_bits(parts: Sequence[Sequence[str]]) -> Clause:
    """Write the SQL of the traits and of the words that an entry holds, a bit for each of them.

    Most entries hold no word of the question, so one comparison with all of them comes first.
    """
    values: dict[str, object] = {}

    def compare(query: str) -> str:
        name = f"word_{len(values)}"
        values[name] = query
        return f"words @@ :{name}::tsquery"

    def number(queries: Sequence[str]) -> str:
        return " | ".join(f"CASE WHEN {compare(each)} THEN {1 << bit} ELSE 0 END" for bit, each in enumerate(queries))

    columns = [f"int2send(({number([quote_lexeme(each) for each in FIXED])})::int2)"]
    for part in parts:
        quoted = [quote_lexeme(term) for term in part]
        # The places of a word count from 1, so a word that occurs more than once follows itself.
        repeated = " | ".join(f"({each} <-> {each})" for each in quoted)
        bits = number([repeated, *quoted]).replace("THEN ", "THEN BIGINT '").replace(" ELSE", "' ELSE")
        columns.append(f"int8send(CASE WHEN {compare(' | '.join(quoted))} THEN {bits} ELSE 0 END)")
    return Clause(" || ".join(columns), values)


def _arrange(rows: NDArray[np.void]) -> tuple[Evidence, Numbers]:
    """Return the evidence without words and meaning, grouped by conversation, and the order that does so."""
    seqs, since = rows["seq"].astype(np.int64), rows["since"].astype(np.float64)
    speakers = rows["speaker"].astype(np.int8)
    sessions = rows["session"].astype(np.int64)
    conversations = number_conversations(sessions, seqs=seqs, speakers=speakers, since=since)
    order = np.lexsort((seqs, conversations))
    conversations, lengths = conversations[order], rows["length"][order].astype(np.float32)
    evidence = Evidence(
        seqs=seqs[order],
        conversations=conversations,
        lengths=lengths,
        since=since[order],
        speakers=speakers[order],
        turns=((sessions != 0) & (speakers != 0))[order],
        traits=rows["traits"][order].astype(np.uint8),
        cosines=None,
        occurrences=(),
        frame=Frame.of(conversations, lengths) if len(rows) else None,
    )
    return evidence, order


def _find_occurrences(
    unit: Unit, owner: Mapping[str, str], seqs: Numbers, bits: Sequence[Numbers], parts: Sequence[Sequence[str]]
) -> list[tuple[Numbers, Floats]]:
    """Return the rows that hold each word and its counts there, which are asked for where a word is repeated."""
    found = list[tuple[Numbers, Floats]]()
    for numbers, part in zip(bits, parts, strict=True):
        held = [np.flatnonzero(numbers & (2 << place)) for place in range(len(part))]
        counts = [np.ones(len(rows), np.float32) for rows in held]
        repeating = seqs[np.flatnonzero(numbers & 1)].tolist()
        if repeating:
            repeated: dict[str, list[tuple[int, int]]] = {term: [] for term in part}
            for seq, term, count in unit.all("count_repeated", **owner, seqs=repeating, terms=list(part)):
                repeated[term].append((seq, count))
            for rows, values, pairs in zip(held, counts, repeated.values(), strict=True):
                of, values_of = np.array(pairs, np.int64).reshape(-1, 2).T
                order = np.argsort(seqs[rows])
                values[order[np.searchsorted(seqs[rows], of, sorter=order)]] = values_of
        found += zip(held, counts, strict=True)
    return found


def search_evidence(evidence: Evidence, limit: int) -> list[Match]:
    """Rank by BM25 the records that hold any of the words."""
    total = len(evidence.seqs)
    scores = np.zeros(total, np.float32)
    norms = length_norms(evidence.lengths) if total else scores
    for rows, counts in evidence.occurrences:
        scores[rows] += rarity(total, len(rows)) * counts * (BM25_K1 + 1) / (counts + norms[rows])
    return _list_best(evidence.seqs, scores, scores > 0, limit)


def nearest_evidence(evidence: Evidence, limit: int) -> list[Match]:
    """Rank by cosine the records that have a vector."""
    assert evidence.cosines is not None
    return _list_best(evidence.seqs, evidence.cosines, ~np.isnan(evidence.cosines), limit)


def _list_best(seqs: Numbers, scores: Floats, is_found: NDArray[np.bool_], limit: int) -> list[Match]:
    """Return the best records, newest first among equals."""
    found = np.flatnonzero(is_found)
    best = found[np.lexsort((-seqs[found], -scores[found]))[:limit]]
    return list(map(Match, seqs[best].tolist(), scores[best].tolist()))
