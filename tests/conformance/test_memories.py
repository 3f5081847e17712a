"""`SqlStore` as a list: ids, filters, edits with history, and several calls together."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from random import Random

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    ALL_KINDS,
    EARLIER,
    LATER,
    NOW,
    ids,
    nearest_chunks,
    note,
    search_chunks,
    texts,
    vector,
)
from wellkept.errors import Conflict, Invalid, NotFound, StoreError
from wellkept.memory.rules_filters import check_filters
from wellkept.model import Kind, Memory, MemoryVersion, Origin, Owner, Role, Scope, State
from wellkept.store.sqlstore import SqlStore

ALSO_ON_OLDER = True

UNSTORABLE = float("nan")
"""An importance that both engines refuse, and only when the row is written."""


def test_a_memory_comes_back_as_it_was_added(store: SqlStore, ann: Owner) -> None:
    added = store.add_memory(
        Memory(
            owner=ann,
            kind=Kind.EPISODE,
            text='She said: "it\'s 100%" — \\o/ 東京 🦉\n\tand left',
            tags=("Ünïcode", "two words", "100%"),
            scope=Scope.SESSION,
            role=Role.TOOL_RESULT,
            session_id="s-1",
            importance=0.123456789,
            category="travel",
            origin=Origin.MODEL,
            created_at=NOW,
            updated_at=NOW,
            expires_at=LATER,
            last_retrieved_at=EARLIER,
            archived_at=LATER,
            version=3,
            supersedes="m-9",
            valid_from=EARLIER,
            valid_to=LATER,
            held_at=NOW,
            flag="says too much",
        )
    )

    assert store.get_memory(ann, added.id) == added


def test_times_come_back_in_utc(store: SqlStore, ann: Owner) -> None:
    here = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))

    stored = store.get_memory(ann, store.add_memory(note("a", ann, created_at=here)).id)

    assert stored.created_at == here
    assert stored.created_at.tzinfo is UTC


def test_ids_count_up_from_one_for_each_agent(store: SqlStore, ann: Owner, bob: Owner, stranger: Owner) -> None:
    assert ids(store.add_memory(note(text, ann)) for text in "abc") == ["m-1", "m-2", "m-3"]
    assert ids(store.add_memories([note("d", ann), note("e", ann)], [None, None])) == ["m-4", "m-5"]
    assert store.add_memory(note("a", bob)).id == "m-1"
    assert store.add_memory(note("a", stranger)).id == "m-1"


def test_the_store_gives_the_id_whatever_the_caller_says(store: SqlStore, ann: Owner) -> None:
    assert store.add_memory(note("a", ann, id="m-99")).id == "m-1"


def test_an_id_is_never_used_again(store: SqlStore, ann: Owner) -> None:
    last = store.add_memories([note(text, ann) for text in "abc"], [None] * 3)[-1]
    store.delete_memory(ann, last.id)
    assert store.add_memory(note("d", ann)).id == "m-4"

    store.prune_memories(ann, Kind.NOTE, keep=0)
    assert store.add_memory(note("e", ann)).id == "m-5"


def test_an_id_is_never_used_again_after_reopening(lasting_place: Place, ann: Owner) -> None:
    first = lasting_place.open()
    first.delete_memory(ann, first.add_memory(note("a", ann)).id)
    first.close()

    second = lasting_place.open()
    assert second.add_memory(note("b", ann)).id == "m-2"
    second.close()


def test_what_was_added_is_there_after_reopening(lasting_place: Place, ann: Owner) -> None:
    first = lasting_place.open()
    added = first.add_memory(note("apples", ann))
    first.close()

    second = lasting_place.open()
    assert second.get_memory(ann, added.id) == added
    assert len(second.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW)) == 1
    second.close()


def test_sixteen_writers_get_sixteen_ids(store: SqlStore, ann: Owner) -> None:
    with ThreadPoolExecutor(16) as threads:
        added = list(threads.map(lambda number: store.add_memory(note(f"note {number}", ann)), range(64)))

    assert sorted(memory.id for memory in added) == sorted(f"m-{number}" for number in range(1, 65))
    assert {memory.id: memory for memory in added} == {
        memory.id: memory for memory in store.list_memories(ann, now=NOW, limit=100)
    }


@pytest.mark.parametrize(
    "id", ["m-2", "m-0", "m--1", "m-01", "1", "", "m-1 ", "m-1\n", "M-1", "m-99999999999999999999"]
)
def test_anything_that_is_no_id_is_simply_not_found(store: SqlStore, ann: Owner, id: str) -> None:
    kept = store.add_memory(note("a", ann))

    for attempt in (
        lambda: store.get_memory(ann, id),
        lambda: store.delete_memory(ann, id),
        lambda: store.list_versions(ann, id),
        lambda: store.update_memory(replace(kept, id=id), replaced_at=NOW),
    ):
        with pytest.raises(NotFound, match=r"^There is no such memory\.$"):
            attempt()
    assert store.list_memories(ann, now=NOW) == [kept]


def test_find_returns_those_that_exist(store: SqlStore, ann: Owner) -> None:
    first, second = store.add_memories([note("a", ann), note("b", ann)], [None, None])

    assert store.find_memories(ann, [2, 1, 7, 2, 0, -1]) == {1: first, 2: second}
    assert store.find_memories(ann, []) == {}


def test_find_summaries_returns_what_ranking_needs_and_loads_the_rest(store: SqlStore, ann: Owner) -> None:
    plain = note("a", ann)
    dated = replace(note("b", ann), importance=0.9, valid_from=NOW - timedelta(days=3))
    first, second = store.add_memories([plain, dated], [None, None])

    summaries = store.find_summaries(ann, [2, 1, 7])

    assert {seq: summary.whole() for seq, summary in summaries.items()} == {1: first, 2: second}
    assert [summaries[seq][:-2] for seq in (1, 2)] == [
        (1, "a", plain.importance, plain.created_at, plain.created_at),
        (2, "b", 0.9, dated.created_at, NOW - timedelta(days=3)),
    ]


def test_no_memories_are_added_for_nothing(store: SqlStore, ann: Owner) -> None:
    assert store.add_memories([], []) == []
    assert store.find_agent(ann) is None


def test_memories_of_two_owners_are_not_added_together(store: SqlStore, ann: Owner, bob: Owner) -> None:
    with pytest.raises(Invalid):
        store.add_memories([note("a", ann), note("b", bob)], [None, None])
    assert store.list_memories(ann, now=NOW) == []


def test_when_one_of_many_fails_none_is_there(store: SqlStore, ann: Owner) -> None:
    batch = [note("apples", ann), note("pears", ann, importance=UNSTORABLE), note("plums", ann)]

    with pytest.raises(Conflict):
        store.add_memories(batch, [None] * 3)

    assert store.list_memories(ann, now=NOW) == []
    assert store.search_memories(ann, "apples pears plums", kinds=ALL_KINDS, now=NOW) == []
    assert store.add_memory(note("figs", ann)).id == "m-1"


# --- the list and its filters


def test_the_newest_come_first_in_pages(store: SqlStore, ann: Owner) -> None:
    store.add_memories([note(str(number), ann) for number in range(7)], [None] * 7)

    pages, before = [], None
    while page := store.list_memories(ann, now=NOW, before=before, limit=3):
        pages.append(texts(page))
        before = int(page[-1].id.removeprefix("m-"))

    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_lists_only_its_own(store: SqlStore, ann: Owner, kind: Kind) -> None:
    added = store.add_memories([note(each.value, ann, kind=each) for each in Kind], [None] * len(Kind))

    assert store.list_memories(ann, kind=kind, now=NOW) == [memory for memory in added if memory.kind is kind]
    assert store.list_memories(ann, now=NOW) == list(reversed(added))


@pytest.mark.parametrize("kind", [None, *Kind])
def test_each_state_lists_only_its_own(store: SqlStore, ann: Owner, kind: Kind | None) -> None:
    def add(text: str, **changes: object) -> None:
        store.add_memory(note(text, ann, kind=kind or Kind.NOTE, **changes))

    add("for ever")
    add("until later", expires_at=LATER)
    add("until now", expires_at=NOW)
    add("until earlier", expires_at=EARLIER)
    add("archived", archived_at=NOW)
    add("archived, and past", archived_at=NOW, expires_at=EARLIER)

    def listed(state: State | None) -> set[str]:
        return set(texts(store.list_memories(ann, kind=kind, state=state, now=NOW)))

    assert listed(State.LIVE) == {"for ever", "until later"}
    assert listed(State.EXPIRED) == {"until now", "until earlier"}
    assert listed(State.ARCHIVED) == {"archived", "archived, and past"}
    assert listed(None) == listed(State.LIVE) | listed(State.EXPIRED) | listed(State.ARCHIVED)


def test_the_list_and_the_record_agree_on_the_state(store: SqlStore, ann: Owner) -> None:
    for expires_at in (None, EARLIER, NOW, LATER):
        for changes in ({}, {"archived_at": NOW}, {"held_at": NOW}, {"valid_to": EARLIER}, {"valid_to": LATER}):
            store.add_memory(note("a", ann, expires_at=expires_at, **changes))

    for state in State:
        found = store.list_memories(ann, state=state, now=NOW, limit=100)
        assert found
        assert {memory.state(NOW) for memory in found} == {state}


COMPOSED, DECOMPOSED = "Café", unicodedata.normalize("NFD", "Café")


@pytest.mark.parametrize(
    ("text", "needle", "is_found"),
    [
        ("100% sure", "100%", True),
        ("100 percent sure", "100%", False),
        ("snake_case", "snake_case", True),
        ("snake-case", "snake_case", False),
        ("wow!", "w!", True),
        ("wow", "w!", False),
        ("!%_", "!%_", True),
        ('it\'s "quoted"', "'s \"q", True),
        ("back\\slash", "k\\s", True),
        ("'; DROP TABLE memories; --", "'; drop", True),
        ("Die Straße", "STRASSE", True),
        ("Die STRASSE", "straße", True),
        (COMPOSED, DECOMPOSED.upper(), True),
        (DECOMPOSED, COMPOSED.lower(), True),
        ("İstanbul", "İSTANBUL", True),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("東京都", "京都", True),
        ("two\nlines", "two\nlines", True),
        ("apples", "", True),
        ("apples", "pears", False),
    ],
)
def test_a_needle_means_itself_and_ignores_case(
    store: SqlStore, ann: Owner, text: str, needle: str, is_found: bool
) -> None:
    store.add_memory(note(text, ann))

    assert texts(store.list_memories(ann, needle=needle, now=NOW)) == ([text] if is_found else [])


def test_a_needle_longer_than_any_memory_finds_nothing(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("apples", ann))

    assert store.list_memories(ann, needle="apples" * 20_000, now=NOW) == []


@pytest.mark.parametrize(
    ("tag", "is_found"),
    [
        ("infra", True),
        ("INFRA", True),
        ("two words", True),
        ("straße", True),
        ("100%", True),
        ("inf", False),
        ("infra\ntwo words", False),
        ("two", False),
        ("%", False),
        ("infr_", False),
    ],
)
def test_a_tag_matches_whole_and_ignores_case(store: SqlStore, ann: Owner, tag: str, is_found: bool) -> None:
    store.add_memory(note("a", ann, tags=("Infra", "Two Words", "STRASSE", "100%")))
    store.add_memory(note("without tags", ann))

    assert texts(store.list_memories(ann, where=check_filters(tag=tag), now=NOW)) == (["a"] if is_found else [])


def test_all_filters_hold_together(store: SqlStore, ann: Owner) -> None:
    wanted = store.add_memory(note("red apple", ann, tags=("fruit",)))
    for other in (
        note("red apple", ann),
        note("red apple", ann, tags=("fruit",), kind=Kind.CORE),
        note("red apple", ann, tags=("fruit",), expires_at=EARLIER),
        note("green pear", ann, tags=("fruit",)),
    ):
        store.add_memory(other)

    assert store.list_memories(ann, kind=Kind.NOTE, needle="APPLE", where=check_filters(tag="Fruit"), now=NOW) == [
        wanted
    ]


# --- edits


def test_an_edit_keeps_what_was_said_before(store: SqlStore, ann: Owner) -> None:
    first = store.add_memory(note("tea", ann, tags=("drink",), importance=0.25))
    second = store.update_memory(replace(first, text="coffee", tags=(), importance=0.5), replaced_at=NOW)
    third = store.update_memory(replace(second, text="water"), replaced_at=LATER)

    assert (second.version, second.updated_at) == (2, NOW)
    assert store.get_memory(ann, first.id) == third
    assert store.list_versions(ann, first.id) == [
        MemoryVersion(memory_id=first.id, version=2, text="coffee", tags=(), importance=0.5, replaced_at=LATER),
        MemoryVersion(memory_id=first.id, version=1, text="tea", tags=("drink",), importance=0.25, replaced_at=NOW),
    ]
    assert [each.version for each in store.list_versions(ann, first.id, limit=1)] == [2]
    assert [each.version for each in store.list_versions(ann, first.id, before=2, limit=5)] == [1]
    assert store.list_versions(ann, first.id, before=1) == []


def test_an_edit_writes_every_field_it_may(store: SqlStore, ann: Owner) -> None:
    memory = store.add_memory(note("tea", ann))

    edited = store.update_memory(
        replace(
            memory,
            text="Straße",
            tags=("new",),
            scope=Scope.USER,
            importance=0.75,
            category="travel",
            expires_at=LATER,
            archived_at=EARLIER,
            valid_to=LATER,
            flag="look",
        ),
        replaced_at=NOW,
    )

    assert store.get_memory(ann, memory.id) == edited
    listed = store.list_memories(ann, needle="STRASSE", where=check_filters(tag="NEW"), state=State.ARCHIVED, now=NOW)
    assert listed == [edited]


def test_an_edit_returns_what_is_stored_even_of_fields_it_may_not_change(store: SqlStore, ann: Owner) -> None:
    memory = store.add_memory(note("tea", ann))

    returned = store.update_memory(
        replace(memory, kind=Kind.CORE, role=Role.SYSTEM, origin=Origin.IMPORT, created_at=LATER), replaced_at=NOW
    )

    assert returned == store.get_memory(ann, memory.id)
    assert returned.kind is Kind.NOTE
    assert store.search_memories(ann, "tea", kinds=[Kind.CORE], now=NOW) == []
    assert len(store.search_memories(ann, "tea", kinds=[Kind.NOTE], now=NOW)) == 1


def test_an_edit_of_an_old_version_is_refused(store: SqlStore, ann: Owner) -> None:
    read = store.add_memory(note("tea", ann))
    winner = store.update_memory(replace(read, text="coffee"), replaced_at=NOW)

    with pytest.raises(Conflict, match="read it again"):
        store.update_memory(replace(read, text="water"), replaced_at=LATER)
    assert store.get_memory(ann, read.id) == winner
    assert len(store.list_versions(ann, read.id)) == 1


def test_of_many_edits_of_one_version_one_wins(store: SqlStore, ann: Owner) -> None:
    read = store.add_memory(note("start", ann))

    def edit(number: int) -> str:
        try:
            return store.update_memory(replace(read, text=f"edit {number}"), replaced_at=NOW).text
        except Conflict as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(edit, range(8)))

    (winner,) = [outcome for outcome in outcomes if outcome.startswith("edit")]
    assert store.get_memory(ann, read.id).text == winner
    assert len(set(outcomes)) == 2  # the others were all told the same


def test_a_deleted_memory_is_gone_with_its_history(store: SqlStore, ann: Owner) -> None:
    kept, gone = store.add_memories([note("tea", ann), note("tea", ann)], [vector(1), vector(1)])
    store.update_memory(replace(gone, text="green tea"), vector(1), replaced_at=NOW)

    store.delete_memory(ann, gone.id)

    assert store.list_memories(ann, state=None, now=NOW) == [kept]
    for attempt in (store.get_memory, store.list_versions, store.delete_memory):
        with pytest.raises(NotFound):
            attempt(ann, gone.id)
    assert [match.seq for match in store.search_memories(ann, "tea", kinds=ALL_KINDS, now=NOW)] == [1]
    assert [match.seq for match in store.nearest_memories(ann, vector(1), kinds=ALL_KINDS, now=NOW)] == [1]


@pytest.mark.parametrize("kind", Kind)
def test_pruning_keeps_the_newest_of_a_kind(store: SqlStore, ann: Owner, bob: Owner, kind: Kind) -> None:
    other = next(each for each in Kind if each is not kind)
    for each in (kind, other):
        store.add_memories([note(f"{each} {number}", ann, kind=each) for number in range(5)], [None] * 5)
    store.add_memory(note("bob's", bob, kind=kind))

    assert len(store.prune_memories(ann, kind, keep=2)) == 3
    assert texts(store.list_memories(ann, kind=kind, now=NOW)) == [f"{kind} 4", f"{kind} 3"]
    assert len(store.list_memories(ann, kind=other, now=NOW)) == 5
    assert len(store.list_memories(bob, now=NOW)) == 1
    assert len(store.search_memories(ann, kind.value, kinds=[kind], now=NOW)) == 2


@pytest.mark.parametrize(("keep", "left"), [(0, 0), (3, 3), (4, 3)])
def test_pruning_to_more_than_there_is_removes_nothing(store: SqlStore, ann: Owner, keep: int, left: int) -> None:
    store.add_memories([note(text, ann) for text in "abc"], [None] * 3)

    assert len(store.prune_memories(ann, Kind.NOTE, keep=keep)) == 3 - left
    assert len(store.list_memories(ann, now=NOW)) == left


@pytest.mark.parametrize("seed", range(3))
def test_pruning_after_each_write_keeps_exactly_the_newest(lasting_place: Place, ann: Owner, seed: int) -> None:
    """Two stores write, delete and fail by turns; each knows only its own commits and what the agent's row tells."""
    draw, keep = Random(seed), 5
    one, other = lasting_place.open(), lasting_place.open()
    home, expected = ann.of(None), list[str]()

    def add_and_prune(store: SqlStore, kind: Kind, *, fails: bool) -> None:
        def write() -> str:
            added = store.add_memory(note("a", ann, kind=kind)).id
            store.prune_memories(home, Kind.NOTE, keep=keep)
            if fails:
                raise NotFound("undone")
            return added

        try:
            added = store.transaction(ann.tenant, write)
        except NotFound:
            return
        if kind is Kind.NOTE:
            expected.append(added)
            del expected[:-keep]

    for _ in range(60):
        store = draw.choice([one, other, one])
        if expected and draw.random() < 0.2:
            store.delete_memory(ann, expected.pop(draw.randrange(len(expected))))
        add_and_prune(store, draw.choice([Kind.NOTE, Kind.NOTE, Kind.EPISODE]), fails=draw.random() < 0.2)
        assert ids(reversed(store.list_memories(ann, kind=Kind.NOTE, now=NOW))) == expected
    one.close()
    other.close()


# --- several calls together


def test_a_transaction_returns_what_its_work_returns_and_sees_its_own_writes(store: SqlStore, ann: Owner) -> None:
    def work() -> str:
        added = store.add_memory(note("a", ann))
        assert store.get_memory(ann, added.id) == added
        assert ids(store.list_memories(ann, now=NOW)) == [added.id]
        return added.id

    assert store.transaction(ann.tenant, work) == "m-1"
    assert ids(store.list_memories(ann, now=NOW)) == ["m-1"]


def test_an_exception_undoes_every_call_of_a_transaction(store: SqlStore, ann: Owner, bob: Owner) -> None:
    old, edited = store.add_memories([note("old", ann), note("edited", ann)], [None, None])

    def work() -> None:
        store.add_memory(note("new", ann))
        store.add_memory(note("new", bob))
        store.update_memory(replace(edited, text="changed"), replaced_at=NOW)
        store.delete_memory(ann, old.id)
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        store.transaction(ann.tenant, work)

    assert store.list_memories(ann, now=NOW) == [edited, old]
    assert store.list_versions(ann, edited.id) == []
    assert store.find_agent(bob) is None
    assert store.search_memories(ann, "new changed", kinds=ALL_KINDS, now=NOW) == []
    assert store.add_memory(note("next", ann)).id == "m-3"


def test_a_transaction_inside_another_is_part_of_it(store: SqlStore, ann: Owner) -> None:
    def work() -> None:
        store.transaction(ann.tenant, lambda: store.add_memory(note("inner", ann)))
        store.add_memory(note("outer", ann))
        raise LookupError

    with pytest.raises(LookupError):
        store.transaction(ann.tenant, work)
    assert store.list_memories(ann, now=NOW) == []

    store.transaction(ann.tenant, lambda: store.transaction(ann.tenant, lambda: store.add_memory(note("kept", ann))))
    assert texts(store.list_memories(ann, now=NOW)) == ["kept"]


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_transaction_of_two_tenants_is_refused_and_undone(
    store: SqlStore, ann: Owner, stranger: Owner, is_nested: bool
) -> None:
    def work() -> None:
        store.add_memory(note("ours", ann))
        if is_nested:
            store.transaction(stranger.tenant, lambda: store.add_memory(note("theirs", stranger)))
        else:
            store.add_memory(note("theirs", stranger))

    with pytest.raises(StoreError, match="two tenants"):
        store.transaction(ann.tenant, work)
    assert store.list_memories(ann, now=NOW) == []
    assert store.list_memories(stranger, now=NOW) == []


def test_a_transaction_leaves_nothing_behind_on_its_thread(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    store.transaction(ann.tenant, lambda: store.add_memory(note("ours", ann)))
    with pytest.raises(LookupError):
        store.transaction(ann.tenant, lambda: [][1])

    store.transaction(stranger.tenant, lambda: store.add_memory(note("theirs", stranger)))
    assert texts(store.list_memories(stranger, now=NOW)) == ["theirs"]


def test_others_see_nothing_of_a_transaction_before_it_ends(lasting_place: Place, store: SqlStore, ann: Owner) -> None:
    other = lasting_place.open()

    def work() -> list[Memory]:
        store.add_memory(note("half", ann))
        return list(other.list_memories(ann, now=NOW))

    assert store.transaction(ann.tenant, work) == []
    assert texts(other.list_memories(ann, now=NOW)) == ["half"]
    other.close()


def test_edits_and_pruning_at_once_do_not_stop_each_other(store: SqlStore, ann: Owner) -> None:
    def write(number: int) -> None:
        for _ in range(6):
            memory = store.add_memory(note(f"by {number}", ann))
            try:
                store.update_memory(replace(memory, text="edited"), replaced_at=NOW)
                store.delete_memory(ann, memory.id)
            except NotFound:
                pass  # another thread pruned it
            store.prune_memories(ann, Kind.NOTE, keep=1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))

    assert len(store.list_memories(ann, now=NOW)) <= 8


def test_a_search_inside_a_transaction_is_refused_rather_than_wrong(store: SqlStore, ann: Owner) -> None:
    """It would not see the transaction's own writes, and could wait for itself."""
    for search in (
        lambda: store.search_memories(ann, "apples", kinds=ALL_KINDS, now=NOW),
        lambda: store.nearest_memories(ann, vector(1), kinds=ALL_KINDS, now=NOW),
        lambda: search_chunks(store, ann.tenant, "apples"),
        lambda: nearest_chunks(store, ann.tenant, vector(1)),
    ):
        with pytest.raises(StoreError, match="before or after the transaction"):
            store.transaction(ann.tenant, search)
