"""Filters and metadata in the library, on every engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import AsyncWellkept, Invalid, SecretRejected, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.language.values import MAX_DEPTH

SECRET = "AKIAQYLPMN5HIEXAMP42"


def nest(levels: int) -> dict[str, Any]:
    return {"x": nest(levels - 1) if levels > 1 else "\\u0000"}


@pytest.fixture
def trips(ann: AgentMemory) -> AgentMemory:
    cities = ["Oslo" if number % 10 == 0 else "Rome" for number in range(200)]
    ann.remember_many(
        {"text": f"Dinner number {n} in town", "kind": "episode", "metadata": {"city": city, "n": n}, "tags": ["food"]}
        for n, city in enumerate(cities)
    )
    return ann


def test_ten_are_found_if_ten_exist(trips: AgentMemory) -> None:
    """Filtered before the cut: nine in ten of what matches best is left out."""
    oslo = "tags = food and metadata.city = 'Oslo'"

    recalled = trips.recall("dinner in town", limit=10, min_relevance=0, where=oslo)
    listed = trips.list(where=oslo, limit=10)
    found = trips.search("dinner", where=oslo, limit=10)

    for memories in ([hit.memory for hit in recalled], listed, found):
        assert len(memories) == 10
        assert {memory.metadata["city"] for memory in memories if memory is not None} == {"Oslo"}
    assert len(trips.list(where={"and": [{"=": ["metadata.city", "Oslo"]}, {"<": ["metadata.n", 50]}]})) == 5
    with pytest.raises(Invalid, match="wrong at character 7"):
        trips.recall("dinner", where="tags =")


def test_filters_and_arguments_hold_together(ann: AgentMemory) -> None:
    ann.remember("a", tags=["x"], session_id="s-1", metadata={"n": 1})
    ann.remember("b", tags=["x"], session_id="s-2", metadata={"n": 1})
    ann.remember("c", kind="core", metadata={"n": 1})

    assert [each.text for each in ann.list(where="metadata.n = 1", tag="X", session_id="s-1")] == ["a"]
    assert [each.text for each in ann.list(where="kind in (note, core) and not tags = x")] == ["c"]


def test_a_filter_may_name_the_state(ann: AgentMemory, clock: Clock) -> None:
    kept = ann.remember("Tea at four", kind="journal", tags=["food"])
    clock.forward(days=400)

    assert ann.list(where="tags = food") == []
    assert [each.id for each in ann.list(where="state = expired and tags = food")] == [kept.id]
    assert ann.restore(where="state = archived") == []
    assert [each.id for each in ann.restore(where="state != live and tags = food")] == [kept.id]
    assert [each.id for each in ann.list(where="tags = food")] == [kept.id]
    with pytest.raises(Invalid, match="Name the memories to restore"):
        ann.restore(tag="food")
    with pytest.raises(Invalid, match="not by both"):
        ann.restore(kept.id, where="tags = food")


def test_metadata_is_edited_with_history(ann: AgentMemory) -> None:
    kept = ann.remember("Tea at four", metadata={"n": 1, "deep": {"list": [1, "two", None, True]}})
    assert ann.get(kept.id).metadata == {"n": 1, "deep": {"list": [1, "two", None, True]}}

    edited = ann.update(kept.id, metadata={"n": 2})
    assert (edited.version, edited.metadata, edited.text) == (2, {"n": 2}, "Tea at four")
    assert ann.update(kept.id, metadata={"n": 2}).version == 2
    assert ann.update(kept.id, text="Tea at five").metadata == {"n": 2}
    assert [each.metadata["n"] for each in ann.history(kept.id)] == [2, 1]
    assert ann.update(kept.id, metadata={}).metadata == {}
    assert ann.list(where="exists metadata.n") == []


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ([1], "must be a mapping, not a list of int"),
        ({1: 2}, "must be a mapping, not a dict with int as names"),
        ({"x": "y" * 9_000}, "at most 8,192 bytes"),
        ({"x": float("nan")}, "only what JSON knows"),
        ({"x": 2**64}, "store numbers of more than 64 bits as texts"),
        ({"x": "\x00"}, "NUL"),
        ({"\x00": 1}, "NUL"),
        ({"x": "\ud800"}, "surrogate"),
        (nest(MAX_DEPTH + 1), "nested too deeply"),
    ],
)
@on_one_engine
def test_metadata_that_cannot_be_kept_is_refused(ann: AgentMemory, metadata: Any, problem: str) -> None:
    kept = ann.remember("Tea at four")
    with pytest.raises(Invalid, match=problem):
        ann.remember("Tea at five", metadata=metadata)
    with pytest.raises(Invalid, match=problem):
        ann.update(kept.id, metadata=metadata)


def test_metadata_of_the_greatest_depth_survives_an_export(
    tenant: TenantMemory, ann: AgentMemory, tmp_path: Path
) -> None:
    metadata = nest(MAX_DEPTH)
    ann.remember("Tea at four", metadata=metadata)
    ann.sessions.start("monday", metadata=metadata)
    tenant.data.export(tmp_path / "all.jsonl")
    with Wellkept(":memory:") as other:
        other.tenant("t").data.import_(tmp_path / "all.jsonl")
        copy = other.tenant("t").agent("ann")
        assert [each.metadata for each in copy.list()] == [metadata]
        assert [each.metadata for each in copy.sessions.list()] == [metadata]


def test_secrets_in_metadata_are_refused(ann: AgentMemory, tenant: TenantMemory) -> None:
    kept = ann.remember("Tea at four")
    for metadata in ({"deep": {"key": [SECRET]}}, {SECRET: 1}, {"password": "hunter2"}):
        with pytest.raises(SecretRejected, match="metadata appears to contain a secret"):
            ann.remember("Tea at five", metadata=metadata)
        with pytest.raises(SecretRejected):
            ann.update(kept.id, metadata=metadata)
        with pytest.raises(SecretRejected):
            ann.sessions.start(metadata=metadata)
        with pytest.raises(SecretRejected):
            tenant.knowledge.ingest_text("# Tea\n\nAt four.", metadata=metadata)
    assert [each.text for each in ann.list()] == ["Tea at four"]
    assert (ann.sessions.list(), tenant.knowledge.list()) == ([], [])


@pytest.mark.parametrize("mode", ["redact", "flag"])
def test_secrets_in_metadata_follow_the_setting(place: Place, clock: Clock, mode: str) -> None:
    with place.open(clock, secrets=mode) as store:
        tenant = store.tenant(f"metadata-{mode}")
        ann = tenant.agent("ann")
        kept = ann.remember("Tea at four", metadata={"key": f"it is {SECRET}", "n": 1})
        (document,) = tenant.knowledge.ingest_text("# Tea\n\nAt four.", metadata={"key": SECRET}).documents

        if mode == "redact":
            assert kept.metadata == {"key": "it is [secret removed: aws-access-key]", "n": 1}
            assert SECRET not in repr(ann.get(kept.id)) + repr(document.document)
        else:
            assert kept.flag == document.document.flag == "secret: aws-access-key"
            shelves = {each.shelf for each in tenant.secrets.scan()}
            assert {"memories", "documents"} <= shelves


def test_documents_have_metadata(tenant: TenantMemory, ann: AgentMemory) -> None:
    for number in range(30):
        lang = "en" if number % 10 == 0 else "de"
        tenant.knowledge.ingest_text(
            f"# Refunds {number}\n\nRefunds are paid within {number} days.", metadata={"lang": lang}
        )
    english = "metadata.lang = 'en'"

    for view in (tenant, ann):
        hits = view.knowledge.search("refunds are paid", limit=3, where=english)
        assert {hit.document.metadata["lang"] for hit in hits if hit.document is not None} == {"en"}
        assert len(hits) == 3
        assert view.knowledge.search("refunds are paid", where="metadata.lang = 'fr'") == []
    listed = tenant.knowledge.list(where=english)
    assert len(listed) == 3
    edited = tenant.knowledge.update(listed[0].id, metadata={"lang": "fr"})
    assert tenant.knowledge.get(edited.id).metadata == {"lang": "fr"}
    assert len(tenant.knowledge.list(where=english)) == 2
    assert len(tenant.knowledge.search("refunds are paid", where=english)) == 2
    again = tenant.knowledge.ingest_text("# Refunds 0\n\nRefunds are paid within 0 days.").documents[0].document
    assert again.metadata in ({"lang": "en"}, {"lang": "fr"})
    with pytest.raises(Invalid, match="there is no field `tags`"):
        tenant.knowledge.search("refunds", where="tags = x")


def test_sessions_have_metadata(tenant: TenantMemory, ann: AgentMemory) -> None:
    ann.sessions.start("mon", metadata={"channel": "mail"})
    ann.sessions.start("tue", metadata={"channel": "chat"})
    ann.log_turn("tue", user="Hello", assistant="Hello")

    for view in (tenant, ann):
        assert [each.id for each in view.sessions.list(where="metadata.channel = chat")] == ["tue"]
        assert [each.id for each in view.sessions.list(where="not exists metadata.channel")] == []
    assert ann.sessions.get("tue").metadata == {"channel": "chat"}


def test_a_prompt_recalls_what_passes_the_filter(trips: AgentMemory) -> None:
    made = trips.context("dinner in town", session="s-1", min_relevance=0, where="metadata.city = Oslo")

    recalled = next(block for block in made.blocks if block.name == "memories").items
    assert recalled
    assert {trips.get(item.id).metadata["city"] for item in recalled} == {"Oslo"}


def test_explain_names_the_filter(trips: AgentMemory) -> None:
    explanation = trips.explain("dinner in town", "m-2", where="metadata.city = Oslo")

    assert explanation.outcome == "filtered"


def test_async_is_the_same(place: Place, clock: Clock) -> None:
    async def run() -> None:
        async with AsyncWellkept(place.url, clock=clock) as store:
            ann = store.tenant("async-filters").agent("ann")
            await ann.remember("Tea at four", metadata={"n": 1})
            assert len(await ann.list(where="metadata.n = 1")) == 1
            assert len(await ann.recall("tea", where="metadata.n = 1")) == 1
            assert await ann.search("tea", where="metadata.n = 2") == []

    asyncio.run(run())
