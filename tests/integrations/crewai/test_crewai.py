"""The storage back end under CrewAI's `Memory`, on both engines."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_TRACKING": "true", "OTEL_SDK_DISABLED": "true"}

from crewai import LLM
from crewai.memory import Memory
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from tests.integrations.examples import read_expected, run_example
from wellkept import Invalid, SecretRejected, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.integrations.crewai import WellkeptStorage, embed
from wellkept.testing.fake_model import ModelServer, says

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def atlas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentMemory]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'memory.db'}" if is_sqlite else request.getfixturevalue("postgres_url")
    with Wellkept(url) as store:
        yield store.agent(f"atlas-{uuid.uuid4().hex[:8]}")


def test_crewais_memory_works_on_it(atlas: AgentMemory) -> None:
    storage = WellkeptStorage(atlas)
    with ModelServer(says("{}")) as model:
        llm = LLM(model="openai/test", base_url=model.url, api_key="none")
        memory = Memory(storage=storage, embedder=embed, llm=llm)
        texts = ["Anna drinks green tea", "Anna drives a green car", "Anna drinks green tea"]
        memory.remember_many(texts, scope="/people/anna", categories=["taste"], importance=0.7, metadata={"it's": 1})
        best = memory.recall("What does Anna like to drink?", depth="shallow")
        assert best[0].record.content == "Anna drinks green tea"
        assert memory.list_scopes("/people") == ["/people/anna"]
        # CrewAI itself dropped the text that came twice.
        assert memory.list_categories() == {"taste": 2}
        memory.update(best[0].record.id, content="Anna drinks black tea", scope="/people/moved")
        assert storage.get_record(best[0].record.id).content == "Anna drinks black tea"  # type: ignore[union-attr]
        assert memory.list_scopes("/people") == ["/people/anna", "/people/moved"]
        assert memory.forget(scope="/people/anna") == 1
        memory.reset()
        assert model.bodies == []
    assert storage.count() == 0


def test_every_method_of_the_protocol(atlas: AgentMemory) -> None:
    storage, now = WellkeptStorage(atlas), datetime(2026, 11, 18, 12, tzinfo=UTC).replace(tzinfo=None)
    records = [
        MemoryRecord(
            id=f"r-{day}",
            content=f"The harvest of day {day} was apples",
            scope=f"/farm/{'north' if day % 2 else 'south'}",
            categories=["even"] if day % 2 == 0 else ["odd"],
            metadata={"day": day},
            created_at=now - timedelta(days=day) if day else (now.replace(tzinfo=UTC)),
            source="field",
            private=True,
        )
        for day in range(6)
    ]
    question = embed(["harvest apples"])[0]
    assert isinstance(storage, StorageBackend)

    asyncio.run(storage.asave(records))

    assert storage.list_records() == records
    assert storage.list_records("/farm/north", limit=1, offset=1) == [records[3]]
    assert {each.id for each, _ in storage.search(question, categories=["odd"])} == {"r-1", "r-3", "r-5"}
    assert [each.id for each, _ in storage.search(question, metadata_filter={"day": 4})] == ["r-4"]
    assert len(asyncio.run(storage.asearch(question, scope_prefix="/farm/south", limit=2))) == 2
    assert storage.search(question, min_score=1.1) == []
    info = storage.get_scope_info("/farm")
    assert (info.record_count, info.child_scopes, info.categories) == (
        6,
        ["/farm/north", "/farm/south"],
        ["even", "odd"],
    )
    assert (info.newest_record, info.oldest_record) == (records[0].created_at, records[5].created_at)
    assert storage.list_scopes() == ["/farm"]
    assert storage.get_scope_info("/nowhere").record_count == 0
    assert storage.get_record("missing") is None
    assert storage.delete(older_than=now - timedelta(days=3, hours=12)) == 2
    assert asyncio.run(storage.adelete(record_ids=["r-0", "missing"])) == 1
    assert storage.count("/farm/north") == 2
    storage.reset("/farm/north")
    assert [each.id for each in storage.list_records()] == ["r-2"]


def test_users_have_records_of_their_own(atlas: AgentMemory) -> None:
    views: list[Any] = [atlas, atlas.for_user("anna"), atlas.for_user("bob")]
    for number, each in enumerate(views):
        WellkeptStorage(each).save([MemoryRecord(id="same", content=f"Text number {number}")])

    contents = [[record.content for record in WellkeptStorage(each).list_records()] for each in views]

    assert contents == [["Text number 0"], ["Text number 1"], ["Text number 2"]]


def test_other_vectors_and_secrets_are_refused(atlas: AgentMemory) -> None:
    storage = WellkeptStorage(atlas)

    with pytest.raises(Invalid, match="embedder=embed"):
        storage.search([0.1] * 1536)
    with pytest.raises(SecretRejected):
        storage.save([MemoryRecord(content="The wifi password is Falcon#77")])


def test_vectors_of_different_texts_point_elsewhere() -> None:
    first, second = embed(["I like red tea", "I like tan tea"])

    cosine = sum(a * b for a, b in zip(first, second, strict=True)) / sum(a * a for a in first)

    assert abs(cosine) < 0.3


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    printed = run_example("crewai", tmp_path).splitlines()

    assert [line for line in printed if line.startswith(("Best:", "Scopes:", "Recalled:"))] == read_expected(
        "crewai"
    ).splitlines()
