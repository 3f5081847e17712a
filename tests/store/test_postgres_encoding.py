"""Words and vectors that went through PostgreSQL: the same words, and nearly the same vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.store.postgres.index import SENT, round_vector, tsvector_literal, vector_literal
from wellkept.store.search.encoding import decode_rows, encode_terms

LETTERS = st.characters(exclude_characters="\x00", exclude_categories=["Cs"]) | st.sampled_from(" ',:1\\\"")


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@given(many=st.lists(st.lists(st.text(LETTERS, min_size=1, max_size=6), max_size=6), max_size=4))
def test_words_stay_the_same_words(connection: psycopg.Connection[Any], many: list[list[str]]) -> None:
    literals = [tsvector_literal(each) for each in many]
    kept = connection.execute("SELECT each::tsvector::text FROM unnest(%s::text[]) AS each", [literals]).fetchall()

    codes, per_row = SENT.words([text for (text,) in kept])

    assert per_row.tolist() == [len(set(each)) for each in many]
    for each, end, count in zip(many, np.cumsum(per_row), per_row, strict=True):
        assert sorted(codes[end - count : end].tolist()) == sorted(np.frombuffer(encode_terms(each), "<u8").tolist())


def test_a_word_said_a_thousand_times_counts_as_often_as_on_sqlite(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("SELECT %s::tsvector::text", [tsvector_literal(["tea"] * 1000)]).fetchone()
    assert row is not None

    assert SENT.words([row[0]])[0].tolist() == np.frombuffer(encode_terms(["tea"] * 1000), "<u8").tolist()


def test_vectors_come_back_as_they_were_stored(connection: psycopg.Connection[Any]) -> None:
    exact = np.random.default_rng(1).standard_normal((500, 16)).astype(np.float32)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    rounded = np.stack([round_vector(each) for each in exact])
    # A byte changes a component by at most half a step, of which the largest one has at least 112.
    assert np.abs(rounded - exact).max() < np.abs(exact).max() / 112

    literals = [vector_literal(each) for each in rounded]
    kept = connection.execute("SELECT halfvec_send(each::halfvec) FROM unnest(%s::text[]) AS each", [literals])
    stored = decode_rows(*SENT.vectors([sent for (sent,) in kept.fetchall()], 16))
    assert (stored == rounded).all()
