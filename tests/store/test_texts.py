"""Finding a part of a text in memory: the same memories as the database would find, whatever happened to them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.examples import LATER, NOW, note
from wellkept.model import Kind, Memory, Owner
from wellkept.store import open_store
from wellkept.store.search import texts as folded_texts
from wellkept.store.sqlstore import SqlStore

ANN, BOB = Owner("acme", "ann"), Owner("acme", "bob")
NEEDLES = ("e", "tea", "Straße", "STRASSE", "%", "_", "!", "tea\ncup", "zz", "a b", "cup")
WORDS = ("tea", "Straße", "cup", "100%", "a_b", "why!", "tea\ncup", "beet", "Tea", "a b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path}/m.db", busy_timeout=30, pool_size=1, index_cache_mb=8)
    yield store
    store.close()


def plain(store: SqlStore, needle: str, **wanted: Any) -> Sequence[Memory]:
    """What the database finds: inside a transaction nothing is taken from memory."""
    return store.transaction(ANN.tenant, lambda: store.list_memories(ANN, needle=needle, now=NOW, **wanted))


def compared(store: SqlStore) -> None:
    for needle in NEEDLES:
        for wanted in ({}, {"kind": Kind.EPISODE}, {"kind": Kind.NOTE}, {"before": 40}, {"limit": 3}, {"state": None}):
            for _ in range(3):  # before it is held, when it is read, and afterwards
                assert store.list_memories(ANN, needle=needle, now=NOW, **wanted) == plain(store, needle, **wanted)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_is_found_whatever_happened(store: SqlStore, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded_texts, "BLOCK", 7)
    choose = random.Random(seed)

    def added(count: int) -> None:
        new = [note(" ".join(choose.choices(WORDS, k=choose.randrange(1, 5))), ANN) for _ in range(count)]
        for number, each in enumerate(new):
            if number % 3 == 0:
                new[number] = replace(each, kind=Kind.EPISODE, expires_at=choose.choice([None, NOW, LATER]))
            if number % 7 == 0:
                new[number] = replace(each, held_at=NOW)
        store.add_memories(new, [None] * count)
        store.add_memory(note("tea of somebody else", BOB))

    added(60)
    compared(store)
    for _ in range(4):
        added(choose.randrange(1, 12))
        compared(store)
        some = choose.choice(store.list_memories(ANN, now=NOW, limit=500))
        store.update_memory(replace(some, text="Tea and beetroot"), replaced_at=NOW)
        compared(store)
        gone = choose.choice(store.list_memories(ANN, now=NOW, limit=500))
        store.delete_memory(ANN, gone.id)
        compared(store)


def test_an_agent_made_anew_under_an_old_name_says_nothing_of_the_old_one(store: SqlStore) -> None:
    for text in ("old tea", "new tea"):
        store.add_memory(note(text, ANN))
        for _ in range(3):
            assert [each.text for each in store.list_memories(ANN, needle="tea", now=NOW)] == [text]
        store.delete_agent(ANN)
        assert store.list_memories(ANN, needle="tea", now=NOW) == []


def test_another_process_is_seen(store: SqlStore, tmp_path: Path) -> None:
    store.add_memory(note("tea", ANN))
    for _ in range(3):
        assert len(store.list_memories(ANN, needle="tea", now=NOW)) == 1
    other = open_store(f"sqlite:///{tmp_path}/m.db", busy_timeout=30, pool_size=1, index_cache_mb=8)
    other.add_memory(replace(note("more tea", ANN), created_at=NOW + timedelta(seconds=1)))
    other.close()

    assert len(store.list_memories(ANN, needle="tea", now=NOW)) == 2


def test_what_takes_too_much_is_let_go(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = [Owner("acme", f"agent-{number}") for number in range(5)]
    for owner in owners:
        store.add_memories([note(f"tea {number} " + "x" * 200, owner) for number in range(20)], [None] * 20)
    for most in (12_000, 1_000):  # two agents fit, none does
        monkeypatch.setattr(folded_texts, "MAX_BYTES", most)
        for owner in owners * 3:
            assert len(store.list_memories(owner, needle="TEA", now=NOW)) == 20
        texts = store._engine.index._texts  # type: ignore[attr-defined]
        assert 0 <= texts._total <= most
        assert texts._total == sum(held.nbytes for held in texts._held.values())


def test_what_is_held_of_a_tenant_can_be_forgotten(store: SqlStore) -> None:
    store.add_memory(note("tea", ANN))
    for _ in range(2):
        store.list_memories(ANN, needle="tea", now=NOW)
    texts = store._engine.index._texts  # type: ignore[attr-defined]
    assert texts._total > 0

    store.forget_cached(ANN.tenant)

    assert (texts._total, len(texts._held)) == (0, 0)
    assert len(store.list_memories(ANN, needle="tea", now=NOW)) == 1
