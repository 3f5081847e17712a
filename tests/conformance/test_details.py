"""`SqlStore`: big texts, kept once, read chunk by chunk, on every engine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import Place, set_tenant
from tests.conformance.examples import EARLIER, LATER, NOW, add_detail, agent, detail, note
from wellkept.errors import Conflict, NotFound, StoreError
from wellkept.model import Owner
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import CHUNK_CHARS, Content, ContentDraft

ALSO_ON_OLDER = True
pytestmark = pytest.mark.proves("D4")
LONG = "".join(f"{number} naïve 𝄞 line\n" for number in range(20_000))


def whole(content: Content) -> str:
    return "".join(content.chunk(position) for position in range(len(content.newlines)))


def contents(place: Place, owner: Owner, store: SqlStore) -> int:
    """How many texts of this tenant are kept, seen from below the store."""
    if place.name in ("memory", "sqlite"):
        rows = store._engine.read(
            owner.tenant, lambda unit: unit.all("list_orphans", tenant=owner.tenant, stored_before=LATER, limit=9999)
        )
        return len(rows) + len({each.content_hash for each in everybodys(store, owner)})
    with psycopg.connect(place.url) as connection:
        set_tenant(connection, owner.tenant)
        row = connection.execute("SELECT count(*) FROM detail_contents").fetchone()
        assert row is not None
        return int(row[0])


def everybodys(store: SqlStore, owner: Owner) -> list:
    return [
        each for agent in store.list_agents(owner.tenant) for each in store.list_details(agent.owner, is_active=None)
    ]


def test_what_is_added_comes_back_with_its_measures(store: SqlStore, ann: Owner) -> None:
    given = detail(
        "npm-install-x7",
        ann,
        type="command_output",
        description="what npm said",
        summary="a log",
        session_id="s-1",
        metadata={"source": "npm install", "exit_code": 0, "tags": ["a", "ü"]},
    )
    added = add_detail(store, given, "first\n", "sec", "ond ü")

    assert store.get_detail(ann, "npm-install-x7") == added
    assert added == replace(given, content_hash=added.content_hash, size=15, chars=14, lines=2)
    assert len(added.content_hash) == 64
    assert whole(store.open_content(ann, added.key)) == "first\nsecond ü"
    assert store.find_agent(ann) is not None


def test_a_long_text_is_cut_into_chunks_that_know_their_lines(store: SqlStore, ann: Owner) -> None:
    add_detail(store, detail("long", ann), *(LONG[start : start + 1000] for start in range(0, len(LONG), 1000)))

    content = store.open_content(ann, "long")

    assert (content.chars, content.lines, content.chunk_chars) == (len(LONG), 20_000, CHUNK_CHARS)
    assert len(content.newlines) == -(-len(LONG) // CHUNK_CHARS) == 3
    assert content.chunk(1) == LONG[CHUNK_CHARS : 2 * CHUNK_CHARS]
    assert [*content.newlines] == [LONG.count("\n", 0, position * CHUNK_CHARS) for position in range(3)]
    assert whole(content) == LONG


@pytest.mark.parametrize("length", [1, CHUNK_CHARS - 1, CHUNK_CHARS, CHUNK_CHARS + 1, 2 * CHUNK_CHARS])
def test_lengths_around_the_border_of_a_chunk(store: SqlStore, ann: Owner, length: int) -> None:
    text = ("x" * 99 + "\n") * (length // 100 + 1)
    add_detail(store, detail(f"border-{length}", ann), text[:length])

    content = store.open_content(ann, f"border-{length}")
    assert (whole(content), content.lines) == (text[:length], len(text[:length].splitlines()))


def test_every_character_is_kept_but_half_a_pair(store: SqlStore, ann: Owner) -> None:
    add_detail(store, detail("odd", ann), "nul \x00, bell \x07, \r\n half \ud800 pair, whole 𝄞")

    assert whole(store.open_content(ann, "odd")) == "nul \x00, bell \x07, \r\n half \ufffd pair, whole 𝄞"


def test_a_key_is_an_agents_own(store: SqlStore, ann: Owner, bob: Owner) -> None:
    add_detail(store, detail("log", ann), "ann's")
    add_detail(store, detail("log", bob), "bob's")

    with pytest.raises(Conflict):
        add_detail(store, detail("log", ann), "again")
    assert whole(store.open_content(ann, "log")) == "ann's"
    assert whole(store.open_content(bob, "log")) == "bob's"


def test_what_is_missing_is_not_found(store: SqlStore, ann: Owner) -> None:
    for attempt in (
        lambda: store.get_detail(ann, "none"),
        lambda: store.open_content(ann, "none"),
        lambda: store.set_detail_active(ann, "none", False),
        lambda: store.delete_detail(ann, "none"),
    ):
        with pytest.raises(NotFound, match=r"There is no such detail\."):
            attempt()


def test_a_listing_is_newest_first_and_goes_on(store: SqlStore, ann: Owner) -> None:
    for number in range(5):
        made = detail(f"d-{number}", ann, created_at=NOW + timedelta(seconds=number // 2), session_id=f"s-{number % 2}")
        add_detail(store, made, "text")
    store.set_detail_active(ann, "d-1", False)

    first = store.list_details(ann, limit=2)
    assert [each.key for each in first] == ["d-4", "d-3"]
    place = first[-1].created_at, first[-1].key
    assert [each.key for each in store.list_details(ann, before=place)] == ["d-2", "d-0"]
    assert [each.key for each in store.list_details(ann, session_id="s-0")] == ["d-4", "d-2", "d-0"]
    assert [each.key for each in store.list_details(ann, is_active=False)] == ["d-1"]
    assert len(store.list_details(ann, is_active=None)) == 5


def test_a_search_counts_words_then_takes_the_newest(store: SqlStore, ann: Owner) -> None:
    add_detail(store, detail("npm-install", ann, created_at=EARLIER, summary="Straße gesperrt"), "x")
    add_detail(store, detail("npm-test", ann, description="tests that FAIL", metadata={"source": "npm test"}), "x")
    add_detail(store, detail("disk", ann, type="api_response", summary="100%_full"), "x")
    add_detail(store, detail("gone", ann, summary="npm test"), "x")
    store.set_detail_active(ann, "gone", False)

    def found(*words: str) -> list[str]:
        return [each.key for each in store.search_details(ann, words)]

    assert found("npm") == ["npm-test", "npm-install"]
    assert found("npm", "install") == ["npm-install", "npm-test"]
    assert found("fail") == found("npm test") == ["npm-test"]
    assert found("STRASSE") == ["npm-install"]
    assert found("api_resp") == found("0%_f") == ["disk"]
    assert found("%") == found("_full") == ["disk"]
    assert found("1%0") == found("n_m") == found("nothing") == []
    assert store.search_details(ann, ["npm"], session_id="s-9") == []
    assert len(store.search_details(ann, ["npm"], limit=1)) == 1
    assert [each.key for each in store.search_details(ann, ["npm"], offset=1, limit=5)] == ["npm-install"]
    assert store.search_details(ann, ["npm"], offset=2) == []


def test_the_same_text_is_kept_once_for_a_tenant(store: SqlStore, place: Place, ann: Owner, bob: Owner) -> None:
    for number in range(3):
        add_detail(store, detail(f"a-{number}", ann), LONG)
    add_detail(store, detail("b", bob), LONG[:50_000], LONG[50_000:])

    assert contents(place, ann, store) == 1
    assert len({each.content_hash for each in everybodys(store, ann)}) == 1


def test_tenants_share_no_text(store: SqlStore, place: Place, ann: Owner, stranger: Owner) -> None:
    add_detail(store, detail("log", ann), LONG)
    add_detail(store, detail("log", stranger), LONG)
    assert (contents(place, ann, store), contents(place, stranger, store)) == (1, 1)

    store.delete_detail(ann, "log")
    assert store.sweep_contents(ann.tenant, stored_before=LATER) == 1

    assert whole(store.open_content(stranger, "log")) == LONG


def test_tenants_whose_names_differ_in_case_share_no_text(store: SqlStore, ann: Owner) -> None:
    shouted = Owner(ann.tenant.upper(), "ann")
    add_detail(store, detail("log", ann), "the same")
    add_detail(store, detail("log", shouted), "the same")

    store.delete_detail(ann, "log")
    assert store.drop_content(ann.tenant, store.get_detail(shouted, "log").content_hash)

    assert whole(store.open_content(shouted, "log")) == "the same"


def test_a_sweep_takes_what_no_detail_has_and_is_old_enough(
    store: SqlStore, place: Place, ann: Owner, bob: Owner
) -> None:
    add_detail(store, detail("kept", ann), "kept")
    add_detail(store, detail("young", ann), "young")
    add_detail(store, detail("old", ann, created_at=EARLIER), "old")
    add_detail(store, detail("agents", bob, created_at=EARLIER), "of an agent that goes")
    for key in ("young", "old"):
        store.delete_detail(ann, key)
    store.delete_agent(bob)
    assert contents(place, ann, store) == 4

    assert store.sweep_contents(ann.tenant, stored_before=NOW) == 2
    assert contents(place, ann, store) == 2
    assert store.sweep_contents(ann.tenant, stored_before=LATER) == 1
    assert store.sweep_contents(ann.tenant, stored_before=LATER) == 0
    assert whole(store.open_content(ann, "kept")) == "kept"


def test_storing_a_text_again_makes_it_young(store: SqlStore, place: Place, ann: Owner) -> None:
    add_detail(store, detail("old", ann, created_at=EARLIER), "text")
    store.delete_detail(ann, "old")
    add_detail(store, detail("new", ann), "text")
    store.delete_detail(ann, "new")

    assert store.sweep_contents(ann.tenant, stored_before=NOW) == 0


def test_dropping_a_text_leaves_it_to_those_who_have_it(store: SqlStore, ann: Owner, bob: Owner) -> None:
    added = add_detail(store, detail("log", ann), "text")
    add_detail(store, detail("log", bob), "text")

    store.delete_detail(ann, "log")
    assert not store.drop_content(ann.tenant, added.content_hash)
    assert whole(store.open_content(bob, "log")) == "text"

    store.delete_detail(bob, "log")
    assert store.drop_content(ann.tenant, added.content_hash)
    assert not store.drop_content(ann.tenant, added.content_hash)


def test_a_draft_that_is_given_up_leaves_nothing(store: SqlStore, place: Place, ann: Owner) -> None:
    store.add_agent(agent(ann))
    draft = ContentDraft()
    draft.feed(LONG)
    draft.close()
    draft.close()

    assert contents(place, ann, store) == 0


def test_a_detail_and_its_text_go_back_with_the_transaction(store: SqlStore, ann: Owner) -> None:
    draft = ContentDraft()
    draft.feed("text")
    draft.seal()

    def fail() -> None:
        store.add_detail(detail("log", ann), draft)
        raise LookupError

    with pytest.raises(LookupError):
        store.transaction(ann.tenant, fail)
    with pytest.raises(NotFound):
        store.get_detail(ann, "log")
    assert store.add_detail(detail("log", ann), draft).chars == 4  # the draft can be tried again
    draft.close()
    assert whole(store.open_content(ann, "log")) == "text"


def test_sweeps_and_drops_racing_with_writers_take_no_text_anybody_has(store: SqlStore, ann: Owner) -> None:
    """Three threads store the same text and delete it again; two remove whatever they can, at once."""
    store.add_memory(note("here", ann))
    content_hash = add_detail(store, detail("first", ann), "the same text").content_hash
    store.delete_detail(ann, "first")
    is_over = threading.Event()

    def write(name: str) -> int:
        for number in range(12):
            key = f"{name}-{number}"
            add_detail(store, detail(key, ann), "the same text")
            assert whole(store.open_content(ann, key)) == "the same text"
            if number % 3:
                store.delete_detail(ann, key)
        return 12

    def remove() -> int:
        removed = 0
        while not is_over.is_set():
            removed += store.drop_content(ann.tenant, content_hash)
            removed += store.sweep_contents(ann.tenant, stored_before=LATER)
        return removed

    with ThreadPoolExecutor(4) as threads:
        removing = threads.submit(remove)
        try:
            assert sum(threads.map(write, "abc")) == 36
        finally:
            is_over.set()
        removing.result()

    for each in store.list_details(ann):
        assert whole(store.open_content(ann, each.key)) == "the same text"
    assert len(store.list_details(ann)) == 12


def test_who_removes_a_text_waits_for_who_is_about_to_need_it(store: SqlStore, ann: Owner) -> None:
    content_hash = add_detail(store, detail("first", ann), "the same text").content_hash
    store.delete_detail(ann, "first")
    draft = ContentDraft()
    draft.feed("the same text")
    draft.seal()
    added, removing, is_over = threading.Event(), threading.Event(), threading.Event()

    def add() -> None:
        store.add_detail(detail("second", ann), draft)
        added.set()
        assert removing.wait(100)
        assert not is_over.wait(0.2)

    def remove() -> bool:
        assert added.wait(100)
        removing.set()
        is_dropped = store.drop_content(ann.tenant, content_hash)
        is_over.set()
        return is_dropped

    with ThreadPoolExecutor(2) as threads:
        removed = threads.submit(remove)
        threads.submit(store.transaction, ann.tenant, add).result()
    draft.close()

    assert not removed.result()
    assert whole(store.open_content(ann, "second")) == "the same text"


def test_a_missing_text_is_an_error_of_its_key_only(store: SqlStore, ann: Owner) -> None:
    lost = add_detail(store, detail("lost", ann), "lost")
    add_detail(store, detail("kept", ann), "kept")
    where = {"tenant": ann.tenant, "content_hash": lost.content_hash}
    store._engine.write(ann.tenant, lambda unit: unit.run("delete_content", **where))

    with pytest.raises(StoreError, match="is missing from the store"):
        store.open_content(ann, "lost")
    assert store.get_detail(ann, "lost") == lost
    assert whole(store.open_content(ann, "kept")) == "kept"
    add_detail(store, detail("again", ann), "lost")
    assert whole(store.open_content(ann, "lost")) == "lost"  # what has the same text is mended with it


def lose_chunk(unit: Any, tenant: str) -> None:
    unit._connection.execute(f"DELETE FROM detail_chunks WHERE tenant_id = '{tenant}' AND position = 1")


def test_storing_a_text_again_mends_one_that_lost_a_chunk(store: SqlStore, ann: Owner) -> None:
    lost = add_detail(store, detail("lost", ann), LONG)
    store._engine.write(ann.tenant, lambda unit: lose_chunk(unit, ann.tenant))
    with pytest.raises(StoreError, match="is missing from the store"):
        whole(store.open_content(ann, "lost"))

    add_detail(store, detail("again", ann), LONG)

    assert whole(store.open_content(ann, "lost")) == whole(store.open_content(ann, "again")) == LONG
    assert store.get_detail(ann, "again").content_hash == lost.content_hash


def test_what_was_stored_is_there_after_opening_again(lasting_place: Place, store: SqlStore, ann: Owner) -> None:
    added = add_detail(store, detail("log", ann), LONG)

    again = lasting_place.open()
    try:
        assert again.get_detail(ann, "log") == added
        assert whole(again.open_content(ann, "log")) == LONG
    finally:
        again.close()
