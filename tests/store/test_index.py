"""Vectors kept in a byte a dimension: how much is lost, and whether anybody could notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wellkept.store.engine import IndexQuery, RegisteredEmbedder
from wellkept.store.search.encoding import (
    decode_rows,
    encode_terms,
    encode_vector,
    multiply,
    split_vectors,
)
from wellkept.store.search.index import OwnerIndex

ROWS, QUERIES, TOP = 2_000, 50, 10


def unit_vectors(count: int, dimensions: int, seed: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


@pytest.mark.parametrize("dimensions", [8, 256, 1536])
def test_a_cosine_moves_by_less_than_a_thousandth(dimensions: int) -> None:
    exact, queries = unit_vectors(ROWS, dimensions, 1), unit_vectors(QUERIES, dimensions, 2)

    stored = decode_rows(*split_vectors([encode_vector(row) for row in exact], dimensions))

    error = np.abs(stored @ queries.T - exact @ queries.T)
    assert error.mean() < 0.0015 if dimensions == 8 else error.mean() < 0.0005
    assert error.max() < 0.01


def test_the_nearest_stay_the_nearest() -> None:
    exact, queries = unit_vectors(ROWS, 256, 3), unit_vectors(QUERIES, 256, 4)
    stored = decode_rows(*split_vectors([encode_vector(row) for row in exact], 256))

    before = np.argsort(-(exact @ queries.T), axis=0)[:TOP]
    after = np.argsort(-(stored @ queries.T), axis=0)[:TOP]

    kept = [len(set(before[:, each]) & set(after[:, each])) for each in range(QUERIES)]
    assert np.mean(kept) > TOP - 0.2  # random vectors lie closer together than any text's


def test_a_vector_of_zeros_stays_one() -> None:
    assert not decode_rows(*split_vectors([encode_vector(np.zeros(4, np.float32))], 4)).any()


@pytest.mark.parametrize("dimensions", [3, 256, 1536])
def test_a_product_of_bytes_is_that_of_floats(dimensions: int) -> None:
    encoded = [encode_vector(row) for row in unit_vectors(ROWS, dimensions, 5)]
    encoded[7] = encoded[ROWS - 1]
    matrix, scales = split_vectors(encoded, dimensions)
    for query in unit_vectors(QUERIES, dimensions, 6):
        found = multiply(matrix, scales, query)

        assert np.abs(found - decode_rows(matrix, scales) @ query).max() < 2e-5
        assert found[7] == found[ROWS - 1]
    assert not multiply(matrix, scales, np.zeros(dimensions, np.float32)).any()


def test_what_is_kept_of_an_index_for_the_next_question_follows_its_rows() -> None:
    embedder, vector = RegisteredEmbedder(1, "test", 4), unit_vectors(1, 4, 9)[0]
    index, stored = OwnerIndex(embedder), []
    for number in range(1, 9):
        kind = "note" if number % 3 else "episode"
        expiry = "2001-01-01T00:00:00.000000Z" if number == 5 else None
        embedded = encode_vector(unit_vectors(1, 4, number)[0]) if number % 4 else None
        stored.append((number, 1, kind, expiry, encode_terms(["tea", f"w{number}"]), 1, embedded, "s", "user", number))
        index.append(stored[-1:])
        fresh = OwnerIndex(embedder)
        fresh.append(stored)
        asked = IndexQuery(terms=["tea", "w2"], vector=vector, now=0.0)
        for query in (asked, replace(asked, groups=["note"]), replace(asked, now=1e9), replace(asked, until=4)):
            kept, made = (each.evidence(query) for each in (index, fresh))
            assert kept.seqs.tolist() == made.seqs.tolist()
            assert np.array_equal(kept.cosines, made.cosines, equal_nan=True)  # type: ignore[arg-type]
            assert [rows.tolist() for rows, _ in kept.occurrences] == [rows.tolist() for rows, _ in made.occurrences]
