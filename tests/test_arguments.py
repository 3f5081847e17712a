"""Arguments of the wrong type are refused at the public boundary, by one rule and in a sentence."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable
from datetime import datetime
from io import StringIO
from operator import attrgetter
from typing import Any

import pytest

from tests.fuzz.values import Zone
from wellkept import AsyncWellkept, Client, Invalid, Wellkept, acting_as, captured
from wellkept.api.agent import AgentMemory
from wellkept.api.wellkept import TenantMemory
from wellkept.arguments import FORMER
from wellkept.details.capturing import capture_calls

SETTINGS: dict[str, Any] = {}
NOWHERE = "http://127.0.0.1:9"


def naive() -> datetime:
    return datetime.fromisoformat("2026-01-01T00:00:00")


AGENT: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {"text": 7}, "`text` must be a string, not int."),
    ("remember", {"text": "a\x00"}, r"`text` must be a string, not one with a NUL character \(U\+0000\)."),
    ("remember", {"text": "\ud800"}, "`text` must be a string, not one with half a surrogate pair."),
    ("remember", {"text": "a", "tags": "tea"}, "`tags` must be a list of strings, not str."),
    ("remember", {"text": "a", "tags": ["tea", 5]}, "`tags` must be a list of strings, not a list of str, int."),
    ("remember", {"text": "a", "tags": ["\ud800"]}, "`tags` must be a list of strings, not a list of one with half"),
    ("remember", {"text": "a", "importance": True}, "`importance` must be a number, not bool."),
    ("remember", {"text": "a", "importance": float("nan")}, "`importance` must be a number, not nan."),
    ("remember", {"text": "a", "created_at": naive()}, "`created_at` must be a time with a zone, not one without"),
    (
        "remember",
        {"text": "a", "created_at": naive().replace(tzinfo=Zone(None))},
        "a time with a zone, not one without",
    ),
    (
        "remember",
        {"text": "a", "created_at": naive().replace(tzinfo=Zone(NotImplemented))},
        "a time with a zone, not one without",
    ),
    ("remember", {"text": "a", "metadata": {1: 2}}, "`metadata` must be a mapping, not a dict with int as names."),
    ("remember_many", {"items": "tea"}, "`items` must be a list, not str."),
    ("remember_many", {"items": [{"text": "a", "tags": 5}]}, "`tags` must be a list of strings, not int."),
    ("remember_many", {"items": (each for each in [{"text": 5}])}, "`text` must be a string, not int."),
    ("items.put_many", {"items": [{"namespace": "a", "key": "b", "value": 1, "ttl": "x"}]}, "`ttl` must be a number"),
    (
        "items.get_many",
        {"places": None},
        r"`places` must be a list of \(a string or a list of strings, a string\), not",
    ),
    ("items.get_many", {"places": ["tea"]}, "`places` must be a list of"),
    ("recall", {"query": None}, "`query` must be a string, not None."),
    ("recall", {"query": "a", "kinds": "note"}, "`kinds` must be a list of strings, not str."),
    ("recall", {"query": "a", "limit": 2.0}, "`limit` must be a whole number, not float."),
    ("recall", {"query": "a", "where": 5}, r"`where` must be a filter such as .*, not int\."),
    ("recall", {"query": "a", "where": {"=": ["metadata.a", object()]}}, "The filter is wrong"),
    ("recall", {"query": "a", "min_score": 0.5}, FORMER["min_score"]),
    ("explain", {"query": "a", "min_score": 0.5}, FORMER["min_score"]),
    ("context", {"message": "a", "min_score": 0.5}, FORMER["min_score"]),
    ("search", {"query": "a", "min_score": 0.5}, FORMER["min_score"]),
    ("knowledge.search", {"query": "a", "min_score": 0.5}, FORMER["min_score"]),
    (
        "sessions.list",
        {"before": ("a", "b")},
        r"`before` must be \(a time with a zone, a string\), not a tuple of str.",
    ),
    ("prompts.count_tokens", {"said": {}}, "`said` must be a string or a list of mappings, not dict."),
    ("prompts.count_tokens", {"said": [{"role": "user", "content": object()}]}, "only what JSON knows"),
    ("details.capture", {"output": 7}, "`output` must be a string, not int."),
    (
        "details.capture_output",
        {"output": StringIO("tea")},
        "`output` must be a string or a file opened in binary mode",
    ),
    ("details.hide", {"key": "a", "is_hidden": 1}, "`is_hidden` must be True or False, not int."),
    ("review.similar", {"memory": 7}, "`memory` must be a string or Memory, not int."),
]
TENANT: list[tuple[str, dict[str, Any], str]] = [
    ("knowledge.browse", {"after": "a"}, r"`after` must be \(a string, a string\), not str."),
    ("agents.add", {"id": "ann", "is_active": "yes"}, "`is_active` must be True or False, not str."),
    ("knowledge.ingest", {"path_or_text": 5}, "`path_or_text` must be a string or a path, not int."),
    ("knowledge.ingest_bytes", {"content": "tea", "name": "a.md"}, "`content` must be bytes, not str."),
    ("knowledge.search", {"query": "a", "min_score": 0.5}, FORMER["min_score"]),
    ("data.import_", {"path": "a\x00b"}, "`path` must be a string or a path, not one with a NUL"),
    ("data.export", {"path": "x" * 300}, "cannot be written"),
]
STORE: list[tuple[str, dict[str, Any], str]] = [
    ("verify_receipt", {"receipt": "tea"}, "`receipt` must be Receipt or a mapping, not str."),
    ("agent", {"id": 7}, "`id` must be a string, not int."),
    ("backup", {"path": "x" * 300}, "cannot be written"),
]


@pytest.mark.parametrize(("method", "given", "sentence"), AGENT)
def test_a_wrong_type_is_refused_with_a_sentence(
    opened: Wellkept, method: str, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        attrgetter(method)(opened.agent("ann"))(**given)


@pytest.mark.parametrize(("method", "given", "sentence"), TENANT)
def test_so_it_is_by_a_tenant(opened: Wellkept, method: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        attrgetter(method)(opened.tenant())(**given)


@pytest.mark.parametrize(("method", "given", "sentence"), STORE)
def test_so_it_is_by_a_store(opened: Wellkept, method: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        attrgetter(method)(opened)(**given)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Wellkept(5), "`url` must be a string or a path, not int."),  # type: ignore[arg-type]
        (lambda: Wellkept(":memory:", embedder=5), "`embedder` must be an object with embed, not int."),  # type: ignore[arg-type]
        (lambda: Wellkept(":memory:", clock=5), "`clock` must be a function, not int."),  # type: ignore[arg-type]
        (lambda: Wellkept("sqlite://[::1/x"), "A store's address is"),
        (lambda: Wellkept("sqlite:///a%00b"), "A store's address is"),
        (lambda: Wellkept("postgresql://h/%00"), "The address of the database is wrong"),
        (lambda: acting_as(5), "`actor` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: captured(None, source=5), "`source` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: capture_calls(None, len, type=5), "`type` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: Client(NOWHERE, 5), "`key` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: Client(NOWHERE).agent(5), "`id` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: Client(NOWHERE).agent("ann").recall(5), "`query` must be a string, not int."),  # type: ignore[arg-type]
        (lambda: Client(NOWHERE).agent("ann").context("a", min_score=0.5), FORMER["min_score"]),  # type: ignore[call-arg]
        (lambda: Client(NOWHERE).agent("ann").recall("a", min_score=0.5), FORMER["min_score"]),  # type: ignore[call-arg]
        (lambda: Client(NOWHERE).agent("ann").list(where="x" * 70_000), "too long for the address"),
        (lambda: Client(NOWHERE).agent("ann").list(where={"=": [10**5_000]}), "cannot be sent"),
    ],
)
def test_so_it_is_by_what_is_built(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        call()


def test_awaited_methods_refuse_alike() -> None:
    async def ask() -> None:
        async with AsyncWellkept(":memory:") as store:
            for wrong in (store.agent("ann").remember(7), store.tenant().knowledge.browse(after="a")):  # type: ignore[arg-type]
                with pytest.raises(Invalid, match="must be"):
                    await wrong
            for former in (store.agent("ann").context, store.agent("ann").recall, store.agent("ann").search):
                with pytest.raises(Invalid, match="`min_relevance`"):
                    await former("a", min_score=0.5)  # type: ignore[call-arg]
            with pytest.raises(Invalid, match="`id` must be a string, not int"):
                store.agent(7)  # type: ignore[arg-type]

    asyncio.run(ask())


def test_the_refused_one_of_many_is_named(opened: Wellkept) -> None:
    ann = opened.agent("ann")
    calls: list[tuple[Any, Any]] = [(ann.remember_many, ["a", {"text": "b", "tags": 5}]), (ann.items.put_many, [{}])]
    for method, items in calls:
        with pytest.raises(Invalid) as refusal:
            method(items)
        assert refusal.value.item == len(items) - 1


def test_what_no_receipt_can_hold_is_none(opened: Wellkept) -> None:
    for receipt in ({"a": "\ud800"}, {"a": object()}, {"hash": None}, {}):
        assert not opened.verify_receipt(receipt)


def test_a_missing_or_unknown_argument_is_left_to_python(opened: Wellkept) -> None:
    ann = opened.agent("ann")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        ann.remember()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'txt'"):
        ann.remember("a", txt="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional argument"):
        ann.remember("a", "b")  # type: ignore[call-arg, arg-type]


def test_what_was_right_stays_so(opened: Wellkept) -> None:
    ann = opened.agent("ann")
    half = ann.details.store("half \ud800 pair\x00")

    assert ann.details.read(half.key).content == "half \ufffd pair\x00"
    assert ann.details.capture("\ud800", source="\x00") == "\ufffd"
    items: list[Any] = ["one", {"text": "two", "tags": ("a",)}]
    assert ann.remember_many(iter(items))[1].tags == ("a",)
    assert ann.items.put("a", "b", 1, index=False) is not None
    assert ann.items.get_many([("a", "b"), (("a",), "b")])[0] is not None
    assert ann.call_tool("\ud800", {})["ok"] is False


def test_signatures_and_tracebacks_stay_as_they_were(opened: Wellkept) -> None:
    assert list(inspect.signature(AgentMemory.get).parameters) == ["self", "id"]
    assert AgentMemory.get.__doc__ == "Return one memory. Raises: NotFound."
    assert TenantMemory.agent.__qualname__ == "TenantMemory.agent"

    with pytest.raises(Invalid) as refusal:
        opened.agent("ann").get(7)  # type: ignore[arg-type]
    assert len(traceback.extract_tb(refusal.tb)) == 3  # this test, the method, the check


def test_a_refusal_quotes_nothing(opened: Wellkept) -> None:
    with pytest.raises(Invalid) as refusal:
        opened.agent("ann").remember("a", tags={"hunter2-Zebra": "hunter2-Zebra"})  # type: ignore[arg-type]
    assert "Zebra" not in str(refusal.value)
