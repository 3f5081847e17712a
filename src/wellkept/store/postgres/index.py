"""Search on PostgreSQL: in the database, and in memory for owners that are searched often.

An owner without an index in memory is searched in the database. A thread loads the indexes of owners that are searched
often, so no search waits for one. A tenant's shared shelf is searched in memory, unless it is too large.

Words are split and stemmed here and stored as a tsvector. Vectors are stored in half precision. A search inside the
database uses the same BM25 as in memory, and an approximate index (HNSW) for vectors. With a filter, such an index
silently returns too few rows. So the scan continues until it has enough, and if it still falls short, the search is
repeated exactly.

Weigh an owner's memories inside the database, so that neither their words nor their vectors leave it.

One statement compares every entry of the owner with the question: the cosine of its vector, a bit for each word of the
question, and the few numbers that the ranking needs besides. That is some forty bytes for each memory, a twentieth of
its index entry. `recall` ranks them as it ranks the rows of an index in memory, with the same statistics of all
memories of the owner, so both ways give the same answer, up to the rounding of vectors: an index in memory has bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellkept.knowledge.rules_passages import PassageEvidence
from wellkept.language.text import FIXED
from wellkept.meter import METER
from wellkept.model import Match
from wellkept.model.stored import Vector
from wellkept.recall.rules_features import (
    BM25_B,
    BM25_K1,
    SPEAKERS,
    Evidence,
    length_norms,
    rarity,
)
from wellkept.store.conditions import ALL_ROWS, PLACE, Clause, compile_filter
from wellkept.store.engine import IndexQuery, RegisteredEmbedder, Row, Unit
from wellkept.store.queries import load_queries
from wellkept.store.search.encoding import (
    MAX_BYTE,
    Bytes,
    Codes,
    Encoding,
    Floats,
    Numbers,
    decode_rows,
    single_word_code,
    word_code,
)
from wellkept.store.search.index import OwnerIndex, arrange_records
from wellkept.store.search.memory_search import Demand, IndexKey, IndexLoader, MemorySearch, Read

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


def weigh_entries(unit: Unit, owner: Mapping[str, str], embedder: RegisteredEmbedder, query: IndexQuery) -> Evidence:
    """Return the evidence that an index of the owner's memories would give."""
    terms, vector, where = query.terms, query.vector, query.where
    parts = [terms[start : start + WORDS_PER_NUMBER] for start in range(0, len(terms), WORDS_PER_NUMBER)]
    ((sent,),) = unit.all(
        "weigh_entries",
        _write_bits(parts),
        **owner,
        kinds=list(query.groups),
        now=query.now,
        until=query.until,
        roles=ROLES,
        positive=POSITIVE,
        embedder_id=0 if vector is None else embedder.id,
        vector=None if vector is None else "[" + ",".join(f"{value:.9g}" for value in vector.tolist()) + "]",
    )
    names = [f"words{number}" for number in range(len(parts))]
    rows = np.frombuffer(sent or b"", np.dtype([*COLUMNS, *((name, ">i8") for name in names)]))
    evidence, order = arrange_records(
        seqs=rows["seq"].astype(np.int64),
        sessions=rows["session"].astype(np.int64),
        speakers=rows["speaker"].astype(np.int8),
        since=rows["since"].astype(np.float64),
        lengths=rows["length"].astype(np.float32),
        traits=rows["traits"].astype(np.uint8),
    )
    if vector is not None:
        evidence = replace(evidence, cosines=rows["cosine"][order].astype(np.float32))
    bits = [rows[name][order].astype(np.int64) for name in names]
    evidence = replace(evidence, occurrences=_find_occurrences(unit, owner, evidence.seqs, bits, parts))
    if where is None:
        return evidence
    now, is_past = datetime.fromtimestamp(query.now, UTC), query.until is not None
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


EXACT_BELOW = 20_000
"""Number of passages below which vectors are compared exactly, which is fast enough and finds everything."""

MAX_INDEXED_DIMENSIONS = 4000
"""Limit of pgvector for indexes of half-precision vectors; longer ones are searched exactly."""

MAX_POSITIONS = 255
"""Maximum number of positions of one word in a tsvector."""

DEPTH = 500
"""Passages that a search inside the database finds by words, and by meaning."""

SAMPLE = 500
"""Passages from which the average cosine is estimated."""

SHELF_SHARE = 0.5
"""Share of the memory for indexes that one tenant's shelf may take."""

ENTRY_BYTES = 190
"""Approximate bytes of memory of the index entry of a memory of fifteen words with one view, without its vector."""

CHUNK_BYTES = 700
"""Approximate bytes of memory of a passage of eighty words, without its vector."""


class PostgresIndex(MemorySearch):
    """Implementation of `engine.SearchIndex` in memory and in SQL."""

    def __init__(self, read: Read, *, max_bytes: int) -> None:
        super().__init__("postgres", read, encoding=SENT, max_bytes=max_bytes, keeps_last=False)
        self._max_bytes = max_bytes
        self._demand = Demand()
        self._loader = IndexLoader(self._indexes.load)

    def close(self) -> None:
        self._loader.close()

    def _find(self, key: IndexKey) -> OwnerIndex | None:
        """Return the index of an owner if it is in memory, and count the question."""
        self._demand.count(key)
        return self._indexes.find(key)

    def _search_part(self, key: IndexKey, query: IndexQuery, limit: int) -> Sequence[Match]:
        index = self._find(key)
        if index is not None:
            return index.search(query, limit)
        return search_evidence(self._weigh_entries(key, replace(query, terms=list(dict.fromkeys(query.terms)))), limit)

    def _search_nearest(self, key: IndexKey, query: IndexQuery, limit: int) -> Sequence[Match]:
        index = self._find(key)
        if index is not None:
            return index.nearest(query, limit)
        return nearest_evidence(self._weigh_entries(key, query), limit)

    def _weigh_part(self, key: IndexKey, query: IndexQuery) -> Evidence:
        index = self._find(key)
        return self._weigh_entries(key, query) if index is None else self._weigh_index(index, key, query)

    def _weigh_entries(self, key: IndexKey, query: IndexQuery) -> Evidence:
        """Weigh the entries in the database, and have the index loaded if the owner is asked often."""
        found = self._read(key.tenant, lambda unit: weigh_entries(unit, key.owner, self._embedder, query))
        METER.get().count_index("database")
        if self._demand.is_high(key):
            nbytes = len(found.seqs) * (ENTRY_BYTES + self._embedder.dimensions)
            if self._indexes.has_room(nbytes, lambda other: self._demand.is_ahead(key, other)):
                self._loader.request(key)
        return found

    def weigh_chunks(self, tenant: str, query: IndexQuery) -> PassageEvidence:
        index = self._find_chunk_index(tenant)
        if index is not None:
            return self._weigh_shelf(index, tenant, query)
        clause = ALL_ROWS
        if query.where is not None:
            of_documents = compile_filter(query.where, "postgres")
            numbers = load_queries("postgres")["chunks_where"].replace(PLACE, of_documents.sql)
            clause = Clause(f"seq IN ({numbers})", of_documents.values)
        return self._read(tenant, lambda unit: self._weigh_in_database(unit, query, clause))

    def _weigh_in_database(self, unit: Unit, query: IndexQuery, clause: Clause) -> PassageEvidence:
        """Weigh the best passages by words and by meaning, with the statistics of the whole shelf."""
        terms, vector = query.terms, query.vector
        some = {"tenant": unit.tenant, **_category_params(query.groups)}
        total, length = unit.all("chunk_sizes", **some)[0]
        counted = unit.all("count_holding", terms=list(terms), **some) if terms else ()
        holding: dict[str, int] = {each[0]: each[1] for each in counted}
        seqs = set[int]()
        if terms:
            words = {"terms": list(terms), "limit": DEPTH, **_BM25}
            seqs.update(row[0] for row in unit.all("search_chunks", clause, **words, **some))
        average = 0.0
        if vector is not None:
            seqs.update(row[0] for row in self._nearest(unit, vector, some, clause))
            average = self._estimate_average(unit, vector, query.groups)
        found = self._load(unit, sorted(seqs)).evidence(replace(query, where=None))
        return PassageEvidence(
            found=found,
            total=total,
            holding=[holding.get(term, 0) for term in terms],
            average_length=float(length or 0),
            average_cosine=average,
        )

    def _nearest(self, unit: Unit, vector: Vector, some: Mapping[str, Any], clause: Clause) -> Sequence[Row]:
        values = {**some, "embedder_id": self._embedder.id, "vector": vector_literal(vector), "limit": DEPTH}
        row = unit.one("chunks_ever", tenant=some["tenant"])
        if row is not None and row[0] >= EXACT_BELOW and self._embedder.dimensions <= MAX_INDEXED_DIMENSIONS:
            unit.put("scan_until_enough")
            found = unit.all("nearest_chunks_by_index", clause, **values)
            if len(found) == DEPTH:
                return found
        return unit.all("nearest_chunks", clause, **values)

    def _estimate_average(self, unit: Unit, vector: Vector, categories: Collection[str]) -> float:
        """Estimate the average cosine from passages evenly spread over the shelf."""
        row = unit.one("chunks_ever", tenant=unit.tenant)
        last = 0 if row is None else row[0]
        sample = self._load(unit, sorted({1 + place * last // SAMPLE for place in range(SAMPLE)}))
        return PassageEvidence.of_shelf(sample.evidence(IndexQuery(vector=vector, groups=categories))).average_cosine

    def _load(self, unit: Unit, seqs: Sequence[int]) -> OwnerIndex:
        """Return an index of these passages alone."""
        index = OwnerIndex(self._embedder, SENT)
        index.append(unit.all("chunk_index_rows", tenant=unit.tenant, seqs=list(seqs)))
        return index

    def _find_chunk_index(self, tenant: str) -> OwnerIndex | None:
        """Return the index of a tenant's shelf; None if it is too large for the cache."""
        shelf, max_bytes = IndexKey(tenant), SHELF_SHARE * self._max_bytes
        if not self._indexes.is_held(shelf):
            row = self._read(tenant, lambda unit: unit.one("chunks_ever", tenant=tenant))
            # Vectors take one byte per dimension in memory.
            if row is not None and row[0] * (CHUNK_BYTES + self._embedder.dimensions) > max_bytes:
                return None
        index = self._indexes.current(shelf)
        if index.nbytes > max_bytes:
            self._indexes.drop(shelf)
        return index


_BM25 = {"k1": BM25_K1, "b": BM25_B}


def tsvector_literal(terms: Sequence[str]) -> str:
    """Format words and their counts as a tsvector literal.

    >>> tsvector_literal(["tab", "space", "tab", "o'neil"])
    "'tab':1,2 'space':1 'o''neil':1"
    """
    return " ".join(
        f"{quote_lexeme(term)}:{','.join(map(str, range(1, count + 1)))}" for term, count in _count_words(terms).items()
    )


def _count_words(terms: Sequence[str]) -> dict[str, int]:
    """Count the words, up to the limit of a tsvector."""
    return {term: min(count, MAX_POSITIONS) for term, count in Counter(terms).items()}


def round_vector(vector: Vector) -> Vector:
    """Return the vector as an index in memory has it, so that the database computes the same cosines."""
    rounded = vector[None]
    # The rounded vector may have a smaller scale than the given one, but then it keeps it.
    for _ in range(2):
        rounded = decode_rows(*encode_exactly(rounded))
    stored: Vector = rounded[0]
    return stored


def encode_exactly(matrix: Floats) -> tuple[Bytes, Floats]:
    """Return bytes and scales whose products are exact in half precision.

    A byte has 7 bits and a sign, a scale has 4 here, and a number of half precision 11.
    """
    mantissas, exponents = np.frexp(np.abs(matrix).max(axis=1, initial=0) / np.float32(MAX_BYTE))
    scales: Floats = np.ldexp(np.ceil(mantissas * 16) / 16, exponents).astype(np.float32)
    scales[scales == 0] = 1
    return np.round(matrix / scales[:, None]).astype(np.int8), scales


def vector_literal(vector: Vector) -> str:
    """Format a vector for pgvector; six digits exceed half precision."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


_WORD = re.compile(r"'((?:[^'\\]|''|\\\\)*)':([0-9,]+)")
_ANY_WORD = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(?::([0-9A-D,]+))?")
"""Pattern that also matches words without positions or with weights. wellkept writes neither: they are damage."""


def _decode_words(stored: Sequence[str]) -> tuple[Codes, Numbers]:
    """Decode the words of tsvectors as PostgreSQL prints them."""
    codes: list[int] = []
    per_row = []
    for each in stored:
        before = len(codes)
        if "," in each or "''" in each or "\\" in each:
            codes += [_word_code(term, places) for term, places in _WORD.findall(each)]
        elif each:
            # Fast path for the common case: plain words that occur once each.
            codes += map(single_word_code, each[1:-3].split("':1 '"))
        per_row.append(len(codes) - before)
    return np.array(codes, np.uint64), np.array(per_row, np.int64)


def _word_code(term: str, places: str) -> int:
    if "'" in term or "\\" in term:
        term = _unquote(term)
    return single_word_code(term) if places == "1" else word_code(term, places.count(",") + 1)


def _unquote(term: str) -> str:
    return term.replace("''", "'").replace("\\\\", "\\")


def _decode_vectors(sent: Sequence[bytes], dimensions: int) -> tuple[Bytes, Floats]:
    """Decode the output of `halfvec_send`: a length and an unused number of two bytes each, then the values."""
    stored = np.frombuffer(b"".join(sent), np.dtype([("head", "V4"), ("values", ">f2", (dimensions,))]))
    return encode_exactly(stored["values"].astype(np.float32))


def _decode_versions(rows: Sequence[Row]) -> Numbers:
    ((sent,),) = rows
    return np.frombuffer(sent or b"", ">i8").astype(np.int64).reshape(-1, 3)


def _encode_entry(terms: Sequence[str], vector: Vector | None) -> Mapping[str, Any]:
    stored = None if vector is None else vector_literal(round_vector(vector))
    return {"terms": tsvector_literal(terms), "length": sum(_count_words(terms).values()), "vector": stored}


def _count_stored(stored: str) -> Mapping[str, int]:
    return {_unquote(term): len(places.split(",")) if places else 0 for term, places in _ANY_WORD.findall(stored)}


SENT = Encoding(_encode_entry, _count_stored, _decode_words, _decode_vectors, _decode_versions)
"""Encoding of index entries as PostgreSQL sends them."""


def _category_params(categories: Collection[str]) -> dict[str, object]:
    return {"any_category": not categories, "categories": list(categories)}
