"""Filters: SQL on every engine, the columns in memory and Python agree on which memories meet a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.examples import ALL_KINDS, EARLIER, LATER, NOW, ids, note, owner
from wellkept.language.names import memory_seq
from wellkept.memory.rules_filters import (
    EXISTS,
    MEMORY_FIELDS,
    METADATA,
    ORDERINGS,
    And,
    Comparison,
    Condition,
    Not,
    Or,
    is_matching,
    parse_filter,
    render_filter,
)
from wellkept.model import Kind, Memory, Origin, Owner, Scope, State
from wellkept.store.conditions import compile_filter
from wellkept.store.migrations import TENANT_SETTING
from wellkept.store.queries import as_pyformat
from wellkept.store.search import index
from wellkept.store.sqlstore import SqlStore

KEYS = ["city", "n", "a.b", 'say "hi"', "", "back\\slash", "0", "ключ", "[1]", "new\nline", "don't"]
TEXTS = ["Oslo", "oslo", "", "5", "true", "é", "e\N{COMBINING ACUTE ACCENT}", "\U0001f600", "\uffff", "100%", "it's"]
NUMBERS = [0, 1, 5, -1, 2.5, 5.0, 1e300, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 0.1]
SCALARS = st.sampled_from([*TEXTS, *NUMBERS, True, False, None])
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
METADATA_OBJECTS = st.dictionaries(
    st.sampled_from(KEYS), VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=2), max_size=3
)
TIMES = st.sampled_from([EARLIER, NOW, LATER, NOW + timedelta(microseconds=1)])
NAMES = st.sampled_from([None, "s-1", "S-1", "it's", "100%"])
TAGS = ["Food", "100%", "two words", "STRASSE", "a_b"]


def memories(owner: Owner) -> st.SearchStrategy[Memory]:
    return st.builds(
        note,
        st.just("apples"),
        st.just(owner),
        kind=st.sampled_from(Kind),
        tags=st.lists(st.sampled_from(TAGS), unique=True, max_size=2).map(tuple),
        scope=st.sampled_from(Scope),
        session_id=NAMES,
        user=NAMES,
        origin=st.sampled_from(Origin),
        category=NAMES,
        importance=st.sampled_from([0.0, 0.25, 0.5]),
        created_at=TIMES,
        expires_at=st.none() | TIMES,
        valid_to=st.none() | TIMES,
        archived_at=st.none() | TIMES,
        held_at=st.none() | st.just(EARLIER),
        metadata=METADATA_OBJECTS,
    )


def comparisons() -> st.SearchStrategy[Comparison]:
    path = st.lists(st.sampled_from(KEYS), min_size=1, max_size=2).map(tuple)
    orderings = st.sampled_from(["=", *ORDERINGS])
    of_metadata = st.one_of(
        st.builds(Comparison, st.just(METADATA), st.just("="), SCALARS, path),
        st.builds(Comparison, st.just(METADATA), orderings, st.sampled_from([*TEXTS, *NUMBERS]), path),
        st.builds(Comparison, st.just(METADATA), st.just(EXISTS), st.none(), path),
    )
    named = [
        st.builds(Comparison, st.just("tags"), st.just("="), st.sampled_from(["food", "100%", "o", "strasse", "a_b"])),
        st.builds(Comparison, st.just("importance"), orderings, st.sampled_from([0, 0.25, 0.3])),
        st.builds(Comparison, st.sampled_from(["created_at", "expires_at"]), orderings, TIMES),
        st.builds(Comparison, st.sampled_from(["session_id", "user", "category"]), st.just("="), NAMES.filter(bool)),
        st.builds(Comparison, st.sampled_from(list(MEMORY_FIELDS)[:-1]), st.just(EXISTS)),
    ]
    for field, choices in (("kind", Kind), ("scope", Scope), ("origin", Origin), ("state", State)):
        named.append(
            st.builds(Comparison, st.just(field), st.just("="), st.sampled_from([each.value for each in choices]))
        )
    return of_metadata | st.one_of(named)


def join(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, inner)


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(comparisons(), join, max_leaves=6)


def find_in_memory(store: SqlStore, ann: Owner, where: Condition) -> list[int]:
    """Numbers of the memories that a recall may find."""
    evidence = store.weigh_memories(ann, ["appl"], None, kinds=ALL_KINDS, now=NOW, where=where)
    assert evidence.allowed is not None or not len(evidence.seqs)
    return sorted(evidence.seqs[evidence.allowed].tolist())


def expect(memories: Sequence[Memory], where: Condition) -> list[Memory]:
    return [each for each in memories if is_matching(where, each, NOW)]


def numbers(memories: Sequence[Memory]) -> list[int]:
    return sorted(memory_seq(each.id) or 0 for each in memories)


@given(data=st.data())
def test_the_database_the_index_and_python_agree(store: SqlStore, data: st.DataObject) -> None:
    ann = owner()
    drafts = data.draw(st.lists(memories(ann), min_size=1, max_size=6))
    added = store.add_memories(drafts, [None] * len(drafts))
    for _ in range(4):
        where = data.draw(CONDITIONS)
        wanted = expect(added, where)

        assert numbers(store.list_memories(ann, where=where, state=None, now=NOW, limit=10)) == numbers(wanted)
        live = [each for each in wanted if each.state(NOW) is State.LIVE and each.archived_at is None]
        assert find_in_memory(store, ann, where) == numbers(live)


@given(where=CONDITIONS)
def test_the_json_form_says_the_same(where: Condition) -> None:
    assert parse_filter(render_filter(where)) == where


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("tags = FOOD", "ab"),
        ("tags != food", "cd"),
        ("tags in (food, trip) and metadata.city = 'Oslo'", "a"),
        ("metadata.city exists", "abc"),
        ("not exists metadata.city", "d"),
        ("metadata.stars > 3 or metadata.city = Rome", "ab"),
        ("metadata.langs = en", "c"),
        ("metadata.city != Oslo", "bcd"),
        ('metadata."opening hours".mon >= 9', "c"),
        ("created > 2026-03-01T12:00:00Z", "abcd"),
        ("created_at > 2026-03-02", ""),
        ("metadata.id = 9007199254740993", "b"),
        ("metadata.id in (9007199254740992, true)", "a"),
        ("metadata.id > 9007199254740992", "b"),
        ("kind = core", "d"),
        ("importance < 0.5", ""),
        ("not (tags = food or kind = core)", "c"),
    ],
)
def test_a_filter_finds(store: SqlStore, ann: Owner, where: str, found: str) -> None:
    kept: dict[str, dict[str, Any]] = {
        "a": {"tags": ("Food",), "metadata": {"city": "Oslo", "stars": 4, "id": 2**53}},
        "b": {"tags": ("food", "cheap"), "metadata": {"city": "Rome", "id": 2**53 + 1}},
        "c": {"tags": ("trip",), "metadata": {"city": "Bonn", "langs": ["de", "en"], "opening hours": {"mon": 9}}},
        "d": {"kind": Kind.CORE},
    }
    added = store.add_memories([note(text, ann, **fields) for text, fields in kept.items()], [None] * 4)
    condition = parse_filter(where)
    assert condition is not None

    assert sorted(each.text for each in store.list_memories(ann, where=condition, now=NOW)) == list(found)
    assert find_in_memory(store, ann, condition) == numbers([each for each in added if each.text in found])


def test_the_columns_in_memory_follow_every_write(store: SqlStore, ann: Owner) -> None:
    oslo = parse_filter("metadata.city = Oslo")
    assert oslo is not None
    first, second = store.add_memories([note(each, ann, metadata={"city": "Oslo"}) for each in "ab"], [None] * 2)
    assert find_in_memory(store, ann, oslo) == [1, 2]

    store.add_memory(note("c", ann, metadata={"city": "Oslo"}))
    assert find_in_memory(store, ann, oslo) == [1, 2, 3]

    edited = store.update_memory(replace(first, metadata={"city": "Rome"}), replaced_at=LATER)
    assert find_in_memory(store, ann, oslo) == [2, 3]

    store.delete_memory(ann, second.id)
    assert find_in_memory(store, ann, oslo) == [3]

    store.update_memory(replace(edited, metadata={"city": ["Rome", "Oslo"]}), replaced_at=LATER)
    assert find_in_memory(store, ann, oslo) == [1, 3]
    assert [each.metadata for each in store.list_versions(ann, first.id)] == [{"city": "Rome"}, {"city": "Oslo"}]


def test_the_end_of_an_episode_that_recall_moved_is_compared(store: SqlStore, ann: Owner) -> None:
    later = parse_filter("expires_at > 2026-03-16")
    assert later is not None
    store.add_memory(note("a", ann, kind=Kind.EPISODE, category="error", expires_at=NOW + timedelta(days=14)))
    assert find_in_memory(store, ann, later) == []

    store.mark_retrieved(ann, [1], at=NOW + timedelta(days=3))

    assert ids(store.list_memories(ann, where=later, now=NOW)) == ["m-1"]
    assert find_in_memory(store, ann, later) == [1]


def test_another_store_sees_the_same(lasting_place: Any, store: SqlStore, ann: Owner) -> None:
    oslo = parse_filter("metadata.city = Oslo")
    assert oslo is not None
    store.add_memory(note("a", ann, metadata={"city": "Oslo"}))
    assert find_in_memory(store, ann, oslo) == [1]
    other = lasting_place.open()
    try:
        memory = other.get_memory(ann, "m-1")
        other.update_memory(replace(memory, metadata={}), replaced_at=LATER)
        other.add_memory(note("b", ann, metadata={"city": "Oslo"}))
    finally:
        other.close()

    assert find_in_memory(store, ann, oslo) == [2]


def test_a_page_holds_as_many_as_exist(store: SqlStore, ann: Owner) -> None:
    cities = ["Oslo" if each % 10 == 0 else "Rome" for each in range(100)]
    store.add_memories([note(f"n{i}", ann, metadata={"city": city}) for i, city in enumerate(cities)], [None] * 100)

    found = store.list_memories(ann, where=parse_filter("metadata.city = Oslo"), now=NOW, limit=10)

    assert len(found) == 10


@pytest.mark.only_on("postgres")
def test_equality_on_metadata_uses_the_index_once_row_level_security_lets_it(
    place: Any, store: Any, ann: Owner
) -> None:
    store.add_memories([note(f"n{n}", ann, metadata={"n": n}) for n in range(500)], [None] * 500)
    clause = compile_filter(parse_filter("metadata.n = 7"), "postgres")
    statement = f"EXPLAIN SELECT seq FROM memories WHERE tenant_id = %(tenant)s AND {as_pyformat(clause.sql)}"
    with psycopg.connect(place.url.replace("app:app@", "postgres@"), autocommit=True) as admin:
        admin.execute("ALTER FUNCTION jsonb_contains(jsonb, jsonb) LEAKPROOF")
        admin.execute("VACUUM ANALYZE memories")
    with psycopg.connect(place.url) as connection:
        connection.execute(f"SET LOCAL {TENANT_SETTING} = '{ann.tenant}'")
        connection.execute("SET LOCAL enable_indexscan = off")
        plan = connection.execute(statement, {"tenant": ann.tenant, **clause.values}).fetchall()

    assert "memories_by_metadata" in str(plan)


def test_a_column_that_is_too_large_is_read_each_time(
    store: SqlStore, ann: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MAX_COLUMN_BYTES", 100)
    store.add_memory(note("a", ann, metadata={"city": "Oslo"}))
    oslo = parse_filter("metadata.city = Oslo")
    assert oslo is not None

    assert [find_in_memory(store, ann, oslo) for _ in range(2)] == [[1], [1]]
