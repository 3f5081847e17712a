"""Items: JSON values under a namespace and a key, on every engine."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.processes import CLEAN
from tests.services.conftest import START, Clock, Place, on_one_engine
from tests.threads import run_together
from wellkept import AsyncWellkept, Conflict, Forbidden, Invalid, SecretRejected, Settings, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.caller import Caller, use_caller
from wellkept.language.values import MAX_DEPTH
from wellkept.memory.rules_items import MAX_VALUE_BYTES
from wellkept.model import Kind, Origin

USER = ("users", "7")
SECRET = "ghp_" + "x7K2m9QpR4tV8wZ1bN5cD3fG6hJ0kL2sA4dE"


def texts_of(memory: AgentMemory) -> list[str]:
    return [each.text for each in memory.list(kind="item", state="all")]


def test_a_value_is_put_read_changed_and_deleted(ann: AgentMemory, clock: Clock) -> None:
    put = ann.items.put(USER, "profile", {"name": "Lena", "age": 31}, index=["name"])
    assert put == ann.items.get(USER, "profile")
    assert (put.namespace, put.key, put.value, put.version) == (USER, "profile", {"name": "Lena", "age": 31}, 1)
    assert (put.created_at, put.updated_at, put.expires_at) == (START, START, None)

    clock.forward(minutes=1)
    changed = ann.items.put(USER, "profile", {"name": "Lena K.", "age": 31}, index=["name"])
    assert (changed.id, changed.version, changed.value["name"]) == (put.id, 2, "Lena K.")
    assert (changed.created_at, changed.updated_at) == (START, START + timedelta(minutes=1))
    assert [(each.version, each.metadata["name"]) for each in ann.history(put.id)] == [(1, "Lena")]

    assert ann.items.get(USER, "other") is None
    assert ann.items.get(("users",), "profile") is None
    assert ann.items.delete(USER, "profile") is True
    assert ann.items.delete(USER, "profile") is False
    assert ann.items.get(USER, "profile") is None
    assert ann.items.put(USER, "profile", {"name": "Lena"}).version == 1


def test_none_deletes_an_item(ann: AgentMemory) -> None:
    ann.items.put(USER, "a", 1)
    assert ann.items.put(USER, "a", None) is None
    assert ann.items.get(USER, "a") is None
    assert ann.items.put(USER, "a", None) is None


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"": {"nested": [1, 2.5, True, False, None, "ü\u2028😀\t\n", {"a/b": "%"}]}},
        [1, "two", None],
        "a text",
        "",
        0,
        -12.5,
        False,
        {"$value": 1},
        {"$value": {"$value": "twice"}},
        {"literal": "\\u0000"},
        10**30,
    ],
    ids=str,
)
def test_every_json_value_comes_back_as_it_was(ann: AgentMemory, value: Any) -> None:
    ann.items.put(USER, "value", value)
    read = ann.items.get(USER, "value")
    assert read is not None
    assert read.value == value
    assert type(read.value) is type(value)
    assert ann.items.put(USER, "value", value).version == 1, "the same value is no new version"


def test_one_is_not_true(ann: AgentMemory) -> None:
    ann.items.put(USER, "flag", {"is": True})
    changed = ann.items.put(USER, "flag", {"is": 1})
    assert changed.version == 2
    assert changed.value["is"] is not True


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"text": "x" * MAX_VALUE_BYTES}, "at most 65,536 bytes"),
        ({"text": "ü" * (MAX_VALUE_BYTES // 2)}, "at most 65,536 bytes"),
        (float("nan"), "finite numbers"),
        ({"x": float("inf")}, "finite numbers"),
        ({"x": b"bytes"}, "what JSON knows"),
        ({"x": object()}, "what JSON knows"),
        ({"x": "nul\x00"}, "NUL"),
        ({"nul\x00": 1}, "NUL"),
        ({"x": "\ud800"}, "surrogate"),
        (__import__("functools").reduce(lambda inner, _: [inner], range(40), 1), "nested too deeply"),
    ],
    ids=range(10),
)
@on_one_engine
def test_what_is_no_value_is_refused_with_a_sentence(ann: AgentMemory, value: Any, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        ann.items.put(USER, "value", value)
    assert ann.items.get(USER, "value") is None


def test_the_largest_value_is_stored(ann: AgentMemory) -> None:
    value = {"text": "x" * (MAX_VALUE_BYTES - len('{"text":""}'))}
    ann.items.put(USER, "large", value)
    assert ann.items.get(USER, "large").value == value
    assert len(texts_of(ann)[0]) <= 10_000


@pytest.mark.parametrize(
    "namespace",
    [
        (),
        ("",),
        (" ",),
        ("a", ""),
        ("a\nb",),
        ("a\x00",),
        ("\ud800",),
        7,
        None,
        ("a", 7),
        "a//b",
        ["n"] * 21,
        ("n" * 1201,),
    ],
    ids=str,
)
@on_one_engine
def test_what_is_no_namespace_is_refused(ann: AgentMemory, namespace: Any) -> None:
    for call in (ann.items.get, ann.items.delete, lambda names, key: ann.items.put(names, key, 1)):
        with pytest.raises(Invalid):
            call(namespace, "key")


@pytest.mark.parametrize("key", ["", "k" * 513, "a\nb", "\x00", "\ud800", 7, None, "😀" * 400], ids=str)
@on_one_engine
def test_what_is_no_key_is_refused(ann: AgentMemory, key: Any) -> None:
    with pytest.raises(Invalid):
        ann.items.put(USER, key, 1)


def test_names_may_hold_any_printable_character(ann: AgentMemory) -> None:
    hostile = ("a/b", "100%", "%2F", "..", "'; DROP TABLE memories; --", '"', "\\", "日本", "a b", "$value", "_%", "0")
    for position, name in enumerate(hostile):
        ann.items.put(("n", name), name, position)
        ann.items.put((name,), name, -position)
    for position, name in enumerate(hostile):
        assert ann.items.get(("n", name), name).value == position
        assert ann.items.get((name,), name).value == -position
        assert [each.value for each in ann.items.search(("n", name))] == [position]
    assert set(ann.items.namespaces(("n",))) == {("n", name) for name in hostile}
    assert ann.items.get(("n", "a", "b"), "a/b") is None
    assert ann.items.get("n/a%2Fb", "a/b").value == 0


def test_the_longest_place_fits_the_index(tenant: TenantMemory) -> None:
    # Characters at random: PostgreSQL cannot compress them.
    rng = random.Random(7)
    ann = tenant.agent("".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(128)))
    user = "".join(chr(rng.randrange(0x20000, 0x2A6D6)) for _ in range(200))
    names = tuple("".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(23)) for _ in range(10))
    key = "".join(chr(rng.randrange(33, 126)) for _ in range(500))
    ann.items.put(names, key, {"a": 1}, user=user)
    assert ann.items.get(names, key, user=user).value == {"a": 1}


def test_items_of_two_users_are_two(ann: AgentMemory) -> None:
    ann.items.put(USER, "a", 1)
    ann.items.put(USER, "a", 2, user="lena")
    ann.items.put(USER, "a", 3, user="otto")
    read = [ann.items.get(USER, "a", user=user) for user in (None, "lena", "otto", "nobody")]
    assert [each and (each.value, each.user) for each in read] == [
        (1, None),
        (2, "lena"),
        (3, "otto"),
        (1, None),
    ]
    assert {each.value for each in ann.items.search(USER)} == {1, 2, 3}
    lena, alone = ann.for_user("lena"), ann.for_user("lena", shared=False)
    assert {each.value for each in lena.items.search(USER)} == {1, 2}
    assert [each.value for each in alone.items.search(USER)] == [2]
    assert alone.items.delete(USER, "a")
    assert lena.items.get(USER, "a").value == 1
    assert alone.items.get(USER, "a") is None
    assert lena.items.delete(USER, "a") is False, "a user reads what belongs to nobody, but does not change it"
    lena.items.put(("lena", "only"), "a", "pancakes of Lena")
    assert lena.items.namespaces() == [("lena", "only"), USER]
    assert ann.for_user("otto").items.namespaces() == [USER]
    assert ann.for_user("otto").items.search(query="pancakes") == []
    assert [each.user for each in lena.items.search(query="pancakes")] == ["lena"]
    with pytest.raises(Invalid):
        lena.items.put(USER, "a", 1, user="otto")
    assert ann.items.get(USER, "a").value == 1


def test_agents_and_tenants_have_their_own_items(wellkept: Wellkept, ann: AgentMemory, bob: AgentMemory) -> None:
    ann.items.put(USER, "a", "ann's pancakes")
    stranger = wellkept.tenant("elsewhere").agent("ann")
    for other in (bob, stranger):
        assert other.items.get(USER, "a") is None
        assert other.items.search() == other.items.search(query="pancakes") == other.items.namespaces() == []
        assert other.items.delete(USER, "a") is False


def test_a_version_is_compared_before_it_is_replaced(ann: AgentMemory) -> None:
    assert ann.items.put(USER, "n", 1, version=0).version == 1
    with pytest.raises(Conflict, match="version 1, not 0"):
        ann.items.put(USER, "n", 2, version=0)
    assert ann.items.put(USER, "n", 2, version=1).version == 2
    with pytest.raises(Conflict, match="version 2, not 1"):
        ann.items.put(USER, "n", 3, version=1)
    with pytest.raises(Conflict):
        ann.items.delete(USER, "n", version=1)
    with pytest.raises(Conflict, match="version 0, not 4"):
        ann.items.put(USER, "new", 1, version=4)
    assert ann.items.delete(USER, "n", version=2)


def test_a_batch_is_written_as_one(ann: AgentMemory) -> None:
    stored = ann.items.put_many(
        [
            {"namespace": USER, "key": "a", "value": 1},
            {"namespace": USER, "key": "b", "value": 2},
            {"namespace": USER, "key": "a", "value": 3},
            {"namespace": USER, "key": "b", "value": None},
        ]
    )
    assert [each and each.value for each in stored] == [1, 2, 3, None]
    read = ann.items.get_many([(USER, "a"), (USER, "b"), (USER, "a")])
    assert [each and (each.value, each.version) for each in read] == [(3, 2), None, (3, 2)]

    with pytest.raises(Conflict) as refused:
        ann.items.put_many(
            [{"namespace": USER, "key": "c", "value": 1}, {"namespace": USER, "key": "a", "value": 4, "version": 9}]
        )
    assert refused.value.item == 1
    assert ann.items.get(USER, "c") is None
    with pytest.raises(Invalid, match="namespace, key and value"):
        ann.items.put_many([{"namespace": USER, "key": "c"}])
    assert ann.items.put_many([]) == ann.items.get_many([]) == []


def test_an_item_expires_at_once_and_is_removed_by_maintenance(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as wellkept:
        ann = wellkept.agent("ann")
        ann.items.put(USER, "short", "pancakes for lunch", ttl=60)
        ann.items.put(USER, "long", "pancakes for dinner", ttl=3600)
        ann.items.put(("gone",), "only", 1, ttl=60)
        assert len(ann.items.search(query="pancakes")) == 2
        clock.forward(seconds=60)
        assert ann.items.get(USER, "short") is None
        assert [each.key for each in ann.items.search()] == ["long"]
        assert [each.key for each in ann.items.search(query="pancakes")] == ["long"]
        assert [hit.text for hit in ann.recall("pancakes")] == ["pancakes for dinner"]
        assert ann.items.namespaces() == [USER]
        assert ann.items.delete(USER, "short") is False

        assert wellkept.maintain().items == 1, "the deletion already removed the other one"
        assert [each.item_key for each in ann.list(kind="item")] == ["long"]
        assert len(ann.list(kind="item", state="archived")) == 1
        assert wellkept.maintain().items == 0


def test_an_expired_item_makes_room_for_a_new_one(ann: AgentMemory, clock: Clock) -> None:
    old = ann.items.put(USER, "a", {"is": "old"}, ttl=1)
    ann.items.put(USER, "a", {"is": "older"}, ttl=1)
    clock.forward(seconds=1)
    new = ann.items.put(USER, "a", {"is": "new"}, version=0)
    assert (new.version, new.created_at) == (1, clock())
    assert new.id != old.id
    assert len(ann.list(kind="item", state="all")) == 1


def test_writing_the_same_value_starts_its_lifetime_again(ann: AgentMemory, clock: Clock) -> None:
    ann.items.put(USER, "a", "pancakes", ttl=60)
    clock.forward(seconds=50)
    assert ann.items.put(USER, "a", "pancakes", ttl=60).expires_at == clock() + timedelta(seconds=60)
    clock.forward(seconds=50)
    assert ann.items.get(USER, "a").version == 1
    assert [each.key for each in ann.items.search(query="pancakes")] == ["a"]
    assert ann.items.put(USER, "a", "pancakes").expires_at is None
    clock.forward(days=900)
    assert [each.key for each in ann.items.search(query="pancakes")] == ["a"]


def test_reading_extends_the_life_of_a_sliding_item(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        for key in ("read", "found", "recalled", "peeked", "unread"):
            ann.items.put(USER, key, f"pancakes {key}", ttl=60, refresh=True)
        ann.items.put(USER, "fixed", "pancakes fixed", ttl=60)
        clock.forward(seconds=40)
        end = clock() + timedelta(seconds=60)
        assert ann.items.get(USER, "read").expires_at == end
        assert ann.items.search(query="pancakes found", limit=1)[0].expires_at == end
        assert ann.recall("pancakes recalled", limit=1)[0].memory.item_key == "recalled"
        ann.items.get(USER, "peeked", refresh=False)
        ann.items.get(USER, "fixed")
        # The queued marks count at once, also before they are written.
        clock.forward(seconds=30)
        assert ann.items.get(USER, "read", refresh=False) is not None
    with place.open(clock) as reopened:
        ann = reopened.tenant(tenant_id).agent("ann")
        keys = ("read", "found", "recalled", "peeked", "unread", "fixed")
        alive = [key for key in keys if ann.items.get(USER, key, refresh=False) is not None]
        assert alive == ["read", "found", "recalled"]
        assert {each.key for each in ann.items.search(query="pancakes", refresh=False)} == set(alive)
        clock.forward(seconds=30)
        assert ann.items.search() == []


def test_a_short_lived_sliding_item_lives_while_it_is_read(place: Place, clock: Clock, tenant_id: str) -> None:
    """Readings follow each other more quickly than their marks are written."""
    with place.open(clock) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        ann.items.put(USER, "short", "soon gone", ttl=1, refresh=True)
        for _ in range(5):
            clock.forward(seconds=0.7)
            assert ann.items.get(USER, "short") is not None
    with place.open(clock) as reopened:
        ann = reopened.tenant(tenant_id).agent("ann")
        assert ann.items.get(USER, "short", refresh=False) is not None
        clock.forward(seconds=1.1)
        assert ann.items.get(USER, "short") is None


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e300, True, "60"], ids=str)
@on_one_engine
def test_what_is_no_lifetime_is_refused(ann: AgentMemory, ttl: Any) -> None:
    with pytest.raises(Invalid, match=r"seconds|`ttl` must be a number, not (nan|inf|bool|str)"):
        ann.items.put(USER, "a", 1, ttl=ttl)


def test_items_outlive_a_restart(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock) as wellkept:
        wellkept.tenant(tenant_id).agent("ann").items.put(USER, "a", {"likes": "pancakes"})
    with place.open(clock) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        assert ann.items.get(USER, "a").value == {"likes": "pancakes"}
        assert [each.key for each in ann.items.search(query="pancakes")] == ["a"]


def test_only_the_chosen_fields_are_searched(ann: AgentMemory) -> None:
    value = {"title": "Pancakes", "body": "flour and milk", "tags": [{"of": "sweet"}, {"of": "lunch"}], "stars": 5}
    for key, index in {
        "all": None,
        "title": ["title"],
        "tags": ["tags[*].of"],
        "first": ["tags[0].of"],
        "whole": ["$"],
        "number": ["stars"],
        "missing": ["no.such"],
        "none": False,
    }.items():
        ann.items.put(("recipes",), key, value, index=index)  # type: ignore[arg-type]
    texts = {each.item_key: each.text for each in ann.list(kind="item")}
    assert texts == {
        "all": "title: Pancakes\nbody: flour and milk\ntags.of: sweet\ntags.of: lunch",
        "title": "title: Pancakes",
        "tags": "tags.of: sweet\ntags.of: lunch",
        "first": "tags.of: sweet",
        "whole": "title: Pancakes\nbody: flour and milk\ntags.of: sweet\ntags.of: lunch\nstars: 5",
        "number": "stars: 5",
        "missing": "",
        "none": "",
    }
    found = {each.key for each in ann.items.search(query="flour")}
    assert {"all", "whole"} <= found
    assert not found & {"missing", "none"}
    assert len(ann.items.search(limit=100)) == 8, "what is not searched is still listed"


@pytest.mark.parametrize("index", ["name", 7, True, [""], [7], ["a["], ["a"] * 21, ["n" * 201]], ids=str)
@on_one_engine
def test_what_names_no_field_is_refused(ann: AgentMemory, index: Any) -> None:
    with pytest.raises(Invalid, match="`index`"):
        ann.items.put(USER, "a", {}, index=index)


def test_an_item_that_is_no_longer_searched_leaves_the_index(ann: AgentMemory, wellkept: Wellkept) -> None:
    ann.items.put(USER, "a", "pancakes")
    assert ann.items.search(query="pancakes")
    ann.items.put(USER, "a", "pancakes", index=False)
    assert ann.items.search(query="pancakes") == []
    gaps = wellkept._services.store.count_index_gaps(ann.owner.tenant)
    assert (gaps.missing, gaps.surplus) == (0, 0)
    ann.items.put(USER, "a", "pancakes")
    assert ann.items.search(query="pancakes")


def test_a_search_is_limited_to_a_namespace_and_all_below_it(ann: AgentMemory, clock: Clock) -> None:
    for names in (("users",), ("users", "7"), ("users", "7", "docs"), ("users", "70"), ("users-x",), ("users0",)):
        clock.forward(seconds=1)
        ann.items.put(names, "a", "pancakes " + "/".join(names))
    listed = [each.namespace for each in ann.items.search(("users",))]
    assert listed == [("users", "70"), ("users", "7", "docs"), ("users", "7"), ("users",)]
    assert {each.namespace for each in ann.items.search(("users", "7"), query="pancakes")} == {
        ("users", "7"),
        ("users", "7", "docs"),
    }
    assert len(ann.items.search()) == len(ann.items.search(query="pancakes")) == 6
    assert ann.items.search(("user",)) == ann.items.search(("user",), query="pancakes") == []


def test_the_last_written_come_first_and_pages_fit_together(ann: AgentMemory, clock: Clock) -> None:
    for number in range(25):
        clock.forward(seconds=1)
        ann.items.put(("n",), f"{number}", {"text": f"pancakes number {number}"})
    clock.forward(seconds=1)
    ann.items.put(("n",), "3", {"text": "pancakes again"})
    keys = [each.key for start in range(0, 30, 10) for each in ann.items.search(("n",), offset=start)]
    assert keys == ["3", *(f"{number}" for number in range(24, -1, -1) if number != 3)]
    ranked = ann.items.search(("n",), query="pancakes", limit=100)
    assert len(ranked) == 25
    assert [each.score for each in ranked] == sorted((each.score or 0 for each in ranked), reverse=True)
    pages = [
        each.key for start in range(0, 30, 10) for each in ann.items.search(("n",), query="pancakes", offset=start)
    ]
    assert pages == [each.key for each in ranked]


def test_more_items_than_a_recall_returns_are_found(ann: AgentMemory) -> None:
    ann.items.put_many({"namespace": ("n",), "key": f"{number}", "value": "pancakes"} for number in range(230))
    assert len({each.key for each in ann.items.search(("n",), query="pancakes", limit=300)}) == 230
    assert len(ann.items.search(("n",), query="pancakes", limit=50, offset=200)) == 30


def test_namespaces_are_listed_sorted_and_matched(ann: AgentMemory) -> None:
    for path in ("a", "a/b", "a/b/c", "a/x/c", "a-b/c", "users/1/docs", "users/2/docs", "users/2/mail"):
        ann.items.put(path, "k1", 1)
        ann.items.put(path, "k2", 1)
    paths = lambda **match: ["/".join(names) for names in ann.items.namespaces(**match)]  # noqa: E731
    assert paths() == ["a", "a-b/c", "a/b", "a/b/c", "a/x/c", "users/1/docs", "users/2/docs", "users/2/mail"]
    assert paths(prefix=("a",)) == ["a", "a/b", "a/b/c", "a/x/c"]
    assert paths(prefix="a/b") == ["a/b", "a/b/c"]
    assert paths(suffix=("c",)) == ["a-b/c", "a/b/c", "a/x/c"]
    assert paths(prefix=("users", "*", "docs")) == ["users/1/docs", "users/2/docs"]
    assert paths(prefix=("a", "*"), suffix=("*", "c")) == ["a/b/c", "a/x/c"]
    assert paths(max_depth=1) == ["a", "a-b", "users"]
    assert paths(max_depth=2) == ["a", "a-b/c", "a/b", "a/x", "users/1", "users/2"]
    assert paths(prefix=("users",), max_depth=1) == ["users"]
    assert paths(limit=2, offset=3) == ["a/b/c", "a/x/c"]
    assert paths(max_depth=1, limit=1, offset=1) == ["a-b"]
    assert paths(prefix=("nothing",)) == paths(offset=100) == []


def test_many_namespaces_are_listed_in_parts(ann: AgentMemory) -> None:
    ann.items.put_many({"namespace": f"a/{number:04}/x", "key": "k", "value": number} for number in range(2_300))
    ann.items.put("b", "k", 1)
    assert ann.items.namespaces(max_depth=1) == [("a",), ("b",)]
    assert ann.items.namespaces(limit=3, offset=2_299) == [("a", "2299", "x"), ("b",)]
    assert ann.items.namespaces(suffix=("2250", "x")) == [("a", "2250", "x")]


def test_items_are_listed_only_when_they_are_asked_for(ann: AgentMemory) -> None:
    ann.remember("Likes waffles")
    ann.items.put(USER, "a", {"likes": "pancakes"})
    assert [each.kind for each in ann.list()] == [Kind.NOTE]
    assert [each.kind for each in ann.search("likes")] == [Kind.NOTE]
    assert [each.item_key for each in ann.list(kind="item")] == ["a"]
    assert [each.item_key for each in ann.search("likes", kind="item")] == ["a"]
    assert "pancakes" not in (ann.prompts.inject("pancakes") or "")
    assert {hit.memory.kind for hit in ann.recall("who likes pancakes and waffles?", min_relevance=0)} == {
        Kind.NOTE,
        Kind.ITEM,
    }


def test_items_are_neither_merged_nor_consolidated_nor_evicted(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, max_total=3, episode_quota=3) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        for key in "abcdefgh":
            ann.items.put(USER, key, {"text": "The standup is at nine"})
        clock.forward(days=4000)
        wellkept.tenant(tenant_id).upkeep.maintain()
        assert len(ann.items.search(USER)) == len(ann.items.search(USER, query="standup")) == 8
        assert ann.changes.consolidate() == []


def test_the_text_of_an_item_is_only_written_with_its_value(ann: AgentMemory) -> None:
    item = ann.items.put(USER, "a", "pancakes")
    with pytest.raises(Invalid, match="put"):
        ann.update(item.id, text="waffles")
    with pytest.raises(Invalid, match="put"):
        ann.remember("waffles", kind="item")
    assert ann.update(item.id, tags=["food"]).tags == ("food",)
    assert ann.items.put(USER, "a", "pancakes").version == 2


@pytest.mark.parametrize(
    "value", [{"token": SECRET}, [SECRET], SECRET, {"a": {"b": ["x", f"use {SECRET} here"]}}], ids=str
)
def test_a_secret_in_a_value_is_refused_redacted_or_flagged(
    place: Place, clock: Clock, tenant_id: str, value: Any
) -> None:
    with place.open(clock) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        for index in (None, False):
            with pytest.raises(SecretRejected, match=r"^value appears to contain a secret"):
                ann.items.put(USER, "a", value, index=index)
        assert ann.items.search() == []
    with place.open(clock, secrets="redact") as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        item = ann.items.put(USER, "a", value)
        assert SECRET not in str(item)
        assert "[secret removed" in str(item.value)
        assert SECRET not in str(ann.get(item.id))
    with place.open(clock, secrets="flag") as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        item = ann.items.put(USER, "b", value)
        assert item.value == value
        assert "secret" in (ann.get(item.id).flag or "")


@pytest.mark.parametrize("mode", ["reject", "redact", "flag"])
def test_a_secret_in_a_name_is_always_refused(place: Place, clock: Clock, tenant_id: str, mode: str) -> None:
    with place.open(clock, secrets=mode) as wellkept:
        ann = wellkept.tenant(tenant_id).agent("ann")
        for namespace, key in ((("n", SECRET), "k"), (("n",), SECRET)):
            with pytest.raises(SecretRejected):
                ann.items.put(namespace, key, 1)


def test_an_item_of_more_trust_is_not_changed_by_less(ann: AgentMemory) -> None:
    ann.items.put(USER, "a", "the user's")
    ann.items.put(USER, "b", "a tool's", origin="tool")
    with use_caller(Caller(trust=Origin.TOOL)):
        for change in (lambda: ann.items.put(USER, "a", "mine"), lambda: ann.items.delete(USER, "a")):
            with pytest.raises(Forbidden):
                change()
        assert ann.items.put(USER, "b", "mine").version == 2
        assert ann.get(ann.items.put(USER, "c", "new").id).origin is Origin.TOOL
    assert ann.items.get(USER, "a").value == "the user's"
    assert ann.get(ann.items.put(USER, "b", "mine").id).origin is Origin.USER


def test_the_audit_log_names_items_but_not_their_content(tenant: TenantMemory, ann: AgentMemory) -> None:
    item = ann.items.put(USER, "quiet-key", "quiet value")
    ann.items.put(USER, "quiet-key", "another value")
    ann.items.put(USER, "quiet-key", "another value")
    ann.items.delete(USER, "quiet-key")
    events = tenant.audit.list()
    actions = [each.action for each in events if each.meta.get("id") == item.id]
    assert actions == ["memory.delete", "memory.update", "memory.add"]
    assert not any("quiet" in f"{each.message}{each.meta}" for each in events)


def test_an_export_brings_items_along(
    tenant: TenantMemory, ann: AgentMemory, wellkept: Wellkept, tmp_path: Path
) -> None:
    ann.items.put(USER, "a", {"name": "Lena"}, ttl=600, refresh=True)
    ann.items.put(USER, "a", {"name": "Lena K."}, ttl=600, refresh=True)
    ann.items.put(USER, "list", [1, 2], user="lena", index=False)
    deepest: Any = "\\u0000"
    for _ in range(MAX_DEPTH):
        deepest = [deepest]
    ann.items.put(USER, "deepest", deepest)
    tenant.data.export(tmp_path / "a.jsonl")
    with Wellkept(":memory:", clock=wellkept.now) as other:
        other.tenant("t").data.import_(tmp_path / "a.jsonl")
        copy = other.tenant("t").agent("ann")
        assert copy.items.get(USER, "a", refresh=False) == ann.items.get(USER, "a", refresh=False)
        assert copy.items.get(USER, "list", user="lena") == ann.items.get(USER, "list", user="lena")
        assert copy.items.get(USER, "deepest").value == deepest
        assert [each.key for each in copy.items.search(query="Lena", where="key = a")] == ["a"]
        assert [each.metadata for each in copy.history("m-1")] == [{"name": "Lena"}]
        gaps = other._services.store.count_index_gaps("t")
        assert (gaps.missing, gaps.surplus) == (0, 0)


def test_an_import_keeps_an_item_whose_key_is_taken(tenant: TenantMemory, ann: AgentMemory, tmp_path: Path) -> None:
    ann.items.put(USER, "a", "of the file")
    ann.items.put(USER, "a", "of the file, changed")
    tenant.data.export(tmp_path / "a.jsonl")
    ann.items.delete(USER, "a")
    ann.items.put(USER, "a", "stored")
    tenant.data.import_(tmp_path / "a.jsonl", merge=True)
    assert ann.items.get(USER, "a").value == "stored"
    assert len(ann.list(kind="item", state="all")) == 1


def test_erasing_a_text_finds_it_in_values_keys_and_namespaces(tenant: TenantMemory, ann: AgentMemory) -> None:
    ann.items.put(USER, "value", {"name": "Qvarnström"}, index=False)
    ann.items.put(("people", "Qvarnström"), "name", 1)
    ann.items.put(USER, "Qvarnström", 2)
    ann.items.put(USER, "former", {"name": "Qvarnström"})
    ann.items.put(USER, "former", {"name": "somebody"})
    ann.items.put(USER, "other", {"name": "Lena"})
    tenant.data.erase("text:Qvarnström")
    assert [each.key for each in ann.items.search(limit=100) if each.key != "former"] == ["other"]
    left = ann.items.get(USER, "former")
    assert left is None or not any("Qvarn" in str(each) for each in ann.history(left.id))


def test_of_many_threads_the_last_wins_and_one_row_remains(ann: AgentMemory) -> None:
    versions: list[int] = []

    def write(number: int) -> None:
        for turn in range(5):
            versions.append(ann.items.put(USER, "shared", {"by": number, "turn": turn}).version)

    run_together(8, write)
    assert sorted(versions) == list(range(1, 41))
    read = ann.items.get(USER, "shared")
    assert read is not None
    assert read.version == 40
    assert len(ann.list(kind="item", state="all")) == 1


def test_of_many_threads_that_expect_a_version_one_succeeds(ann: AgentMemory) -> None:
    results: Counter[str] = Counter()

    def write(number: int) -> None:
        try:
            ann.items.put(USER, "once", number, version=0)
            results["stored"] += 1
        except Conflict:
            results["refused"] += 1

    run_together(8, write)
    assert results == {"stored": 1, "refused": 7}


def put_from_process(url: str, tenant: str, number: int) -> None:
    with Wellkept(url, settings=Settings(pool_size=2, busy_timeout=100)) as wellkept:
        ann = wellkept.tenant(tenant).agent("ann")
        for turn in range(10):
            ann.items.put(USER, "shared", {"by": number, "turn": turn})
            ann.items.put(USER, f"{number}-{turn}", "pancakes")


def test_many_processes_write_one_key(place: Place, ann: AgentMemory, clock: Clock) -> None:
    workers = [CLEAN.Process(target=put_from_process, args=(place.url, ann.owner.tenant, n)) for n in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(120)
    assert [each.exitcode for each in workers] == [0, 0, 0]
    clock.forward(days=3650)
    shared = ann.items.get(USER, "shared")
    assert shared is not None
    assert shared.version == 30
    assert shared.value["turn"] == 9
    assert len(ann.list(kind="item", state="all", limit=500)) == 31
    assert len(ann.items.search(USER, query="pancakes", limit=100)) == 30


def test_the_async_methods_do_the_same(place: Place, clock: Clock, tenant_id: str) -> None:
    async def use() -> None:
        async with AsyncWellkept(place.url, settings=Settings(pool_size=4), clock=clock) as wellkept:
            ann = wellkept.tenant(tenant_id).agent("ann")
            await asyncio.gather(*(ann.items.put(USER, f"{number}", {"n": number}) for number in range(20)))
            assert len(await ann.items.search(USER, limit=50)) == 20
            assert (await ann.items.get(USER, "3")).value == {"n": 3}
            assert await ann.items.namespaces() == [USER]
            assert await ann.items.delete(USER, "3")
            assert await ann.items.get_many([(USER, "3")]) == [None]

    asyncio.run(use())


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("value.age >= 18", "bc"),
        ("value.age < 18 or value.city = Oslo", "ab"),
        ("metadata.city = Oslo", "b"),
        ("not exists value.city", "ac"),
        ("value.tags = red", "c"),
        ("key in (a, c) and value.age > 1", "ac"),
        ("namespace = people", "abc"),
        ({"and": [{">": ["value.age", 17]}, {"!=": ["value.city", "Oslo"]}]}, "c"),
        ({"=": ["value.'first name'", "Otto"]}, "c"),
        ("value.age >= 18 and value.age <= 20", ""),
    ],
    ids=str,
)
def test_items_are_filtered_by_their_values(ann: AgentMemory, where: Any, found: str) -> None:
    ann.items.put(("people",), "a", {"age": 9, "likes": "pancakes"})
    ann.items.put(("people",), "b", {"age": 30, "city": "Oslo", "likes": "pancakes"})
    ann.items.put(("people",), "c", {"age": 50, "first name": "Otto", "tags": ["red", "blue"], "likes": "pancakes"})
    ann.items.put(("others",), "d", {"age": 50, "city": "Oslo", "likes": "pancakes"})
    assert sorted(each.key for each in ann.items.search(("people",), where=where)) == list(found)
    assert sorted(each.key for each in ann.items.search(("people",), query="pancakes", where=where)) == list(found)


def test_a_filter_without_sense_is_refused(ann: AgentMemory) -> None:
    for query in (None, "pancakes"):
        with pytest.raises(Invalid, match="filter"):
            ann.items.search(USER, query=query, where="value.age >")


def test_recall_can_be_limited_to_a_namespace(ann: AgentMemory) -> None:
    ann.remember("Otto likes pancakes")
    ann.items.put(USER, "a", "Lena likes pancakes")
    assert [hit.memory.item_key for hit in ann.recall("who likes pancakes?", where="namespace = 'users/7'")] == ["a"]
    assert [each.item_key for each in ann.list(where="kind = item")] == ["a"]


def test_a_restored_item_lives_as_long_as_a_new_one(ann: AgentMemory, clock: Clock) -> None:
    sliding = ann.items.put(USER, "a", "pancakes", ttl=60, refresh=True)
    ann.items.put(USER, "b", "pancakes", ttl=60)
    clock.forward(seconds=90)
    assert ann.restore(state="expired") == []
    ann.restore([sliding.id])
    assert ann.items.get(USER, "a", refresh=False).expires_at == clock() + timedelta(seconds=60)
    assert ann.items.get(USER, "b") is None


def test_a_file_of_langgraph_becomes_items(
    tenant: TenantMemory, ann: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "store.jsonl"
    file.write_text(
        '{"namespace": ["users", "7"], "key": "a", "value": {"data": "Lena plays chess"}, "created_at": '
        '"2025-01-02T03:04:05+00:00"}\n{"prefix": "users.8", "key": "b", "value": {}}\n'
        '{"namespace": ["users", "7"], "key": "a", "value": {"data": "again"}}\n'
        '{"namespace": [""], "key": "a", "value": 1}\n'
        '{"prefix": "users.9", "key": "slides", "value": 1, "ttl_minutes": 2}\n'
        '{"prefix": "users.9", "key": "ends", "value": 1, "expires_at": "2026-03-01T12:01:00+00:00"}\n'
        '{"prefix": "users.9", "key": "ended", "value": 1, "expires_at": "2026-03-01T11:59:00+00:00"}\n'
    )
    trial = tenant.data.import_(file, agent="ann", dry_run=True)
    assert (trial.added, trial.present, trial.refused_count) == ({"items": 4}, {"items": 1}, 2)
    done = tenant.data.import_(file, agent="ann")
    assert (done.added, done.present, done.refused_count) == ({"items": 4}, {"items": 1}, 2)
    item = ann.items.get(USER, "a")
    assert (item.value, item.created_at.year) == ({"data": "Lena plays chess"}, 2025)
    assert ann.get(item.id).origin is Origin.IMPORT
    assert tenant.data.import_(file, agent="ann").present == {"items": 5}
    clock.forward(seconds=59)
    ends = [ann.items.get(("users", "9"), key).expires_at for key in ("ends", "slides")]
    assert ends == [START + timedelta(seconds=60), START + timedelta(seconds=59 + 120)]
