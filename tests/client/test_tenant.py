"""Verbs of a tenant through a server, on both engines."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from wellkept import AsyncClient, Client, Conflict, Forbidden, Invalid, NotFound, Wellkept, captured
from wellkept.api.wellkept import TenantMemory


@pytest.fixture
def library(wellkept: Wellkept) -> TenantMemory:
    return wellkept.tenant("acme")


@pytest.fixture
def word() -> str:
    return f"w{uuid.uuid4().hex[:8]}"


def test_agents(client: Client, library: TenantMemory, word: str) -> None:
    made = client.agents.add(word, name="Ann", tools=["notes"])

    assert made == library.agents.get(word) == client.agents.get(word)
    assert made in client.agents.list()
    assert client.agents.list(after=word) == library.agents.list(after=word)
    assert client.agents.update(word, system_prompt="Be kind.").system_prompt == "Be kind."
    assert client.agents.count_memories(word) == library.agents.count_memories(word)
    with pytest.raises(Conflict):
        client.agents.add(word)
    client.agents.delete(word)
    with pytest.raises(NotFound):
        client.agents.get(word)


def test_documents(client: Client, library: TenantMemory, word: str, tmp_path: Path) -> None:
    (tmp_path / f"{word}.md").write_text(f"# {word}\n\nTea is served at four.\n")
    report = client.knowledge.ingest(
        tmp_path / f"{word}.md", category="house", metadata={"floor": 2}, is_published=True
    )
    text = client.knowledge.ingest(f"# About {word}\n\nCoffee is served at nine.", is_published=False)

    assert report.document == library.knowledge.get(report.id) == client.knowledge.get(report.id)
    assert report.documents[0].change == "added"
    assert not text.document.is_published
    assert (
        client.knowledge.ingest_bytes((tmp_path / f"{word}.md").read_bytes(), f"{word}.md").documents[0].change
        == "unchanged"
    )
    assert client.knowledge.list(category="house") == library.knowledge.list(category="house")
    assert [each.id for each in client.knowledge.list(where="metadata.floor = 2")] == [report.id]
    passages = client.knowledge.passages(report.id)
    assert [each.text for each in passages] == [each.text for each in library.knowledge.passages(report.id)]
    assert client.knowledge.update(report.id, title=f"{word} two").title == f"{word} two"
    client.knowledge.search("when is tea served?")  # which embeds what was just stored
    hits = client.knowledge.search("when is tea served?")
    assert hits == library.knowledge.search("when is tea served?")
    client.knowledge.delete(report.id)
    with pytest.raises(NotFound):
        client.knowledge.get(report.id)
    with pytest.raises(Invalid, match="one file at a time"):
        client.knowledge.ingest(tmp_path)


def test_workflows(client: Client, library: TenantMemory, word: str) -> None:
    step = client.workflows.record(workflow=f"Run {word}", step="check", output="fine", agent=word)
    workflow = client.workflows.get(step.workflow_id)

    assert client.workflows.steps(workflow.id) == library.workflows.steps(workflow.id) == [step]
    assert client.workflows.record(workflow=workflow.id, step="pay", is_new=False).position == 2
    assert workflow in client.workflows.list()
    assert client.workflows.create(word) == library.workflows.get(word)
    with pytest.raises(NotFound):
        client.workflows.record(workflow="nothing", step="x", is_new=False)
    with pytest.raises(Invalid, match="A name with a slash cannot be sent"):
        client.workflows.record(workflow="a/b", step="x")


def test_the_audit_log(client: Client, library: TenantMemory, word: str) -> None:
    event = client.audit.record("order.refund", f"Refund {word}", agent=word, meta={"euro": 30})

    assert client.audit.search(word) == library.audit.search(word) == [event] == client.audit.search(word)
    assert client.audit.list(limit=3, before=event.id) == library.audit.list(limit=3, before=event.id)
    assert client.audit.verify() == library.audit.verify() == client.audit.verify()
    assert client.audit.head() == library.audit.head()


def test_an_export_is_imported_again(client: Client, library: TenantMemory, word: str, tmp_path: Path) -> None:
    client.agent(word).remember("The kettle is in the blue cupboard")

    reports = [client.data.export(tmp_path / "0.zst"), library.data.export(tmp_path / "1.gz")]
    imported = client.data.import_(tmp_path / "0.zst", dry_run=True)

    assert reports[0].counts["memories"] == reports[1].counts["memories"] == imported.present["memories"]
    assert (imported.is_dry_run, imported.added.get("memories", 0)) == (True, 0)
    with pytest.raises(Invalid, match="cannot be read"):
        client.data.import_(tmp_path / "none.jsonl")


def test_keys(client: Client, library: TenantMemory, word: str) -> None:
    issued = client.keys.create(name=word, agents=["atlas"], trust="tool")

    assert issued.record.scope == "read"
    assert issued.key not in repr(issued)
    # The times of use are written later.
    assert [each.id for each in client.keys.list()] == [each.id for each in library.keys.list()]
    assert issued.record in client.keys.list()
    client.keys.revoke(issued.record.id)
    assert [each.revoked_at is None for each in client.keys.list() if each.name == word] == [False]


def test_upkeep(client: Client, library: TenantMemory, word: str) -> None:
    client.agent(word).remember(f"About {word}")
    dry = client.data.erase(f"text:About {word}", dry_run=True)

    assert dry.found == library.data.erase(f"text:About {word}", dry_run=True).found
    assert client.data.erase(f"agent:{word}").removed["memories"] == 1
    assert client.secrets.allow(f"AKIA{word.upper()[:8]}EXAMPLQ7"[:20].replace("W", "X")) >= 1
    assert list(client.secrets.scan()) == list(library.secrets.scan())
    assert client.maintain().agents >= 0
    assert [each.name for each in client.skills()] == ["tea"]
    assert client.skill_problems() == []


def test_a_client_is_its_own_tenant(client: Client) -> None:
    assert client.tenant() is client.tenant("acme") is client
    with pytest.raises(Forbidden, match="one tenant"):
        client.tenant("other")


def test_all_of_it_can_be_awaited(address: str, key: str, wellkept: Wellkept, word: str) -> None:
    async def work() -> None:
        async with AsyncClient(address, key) as client:
            atlas = client.agent(word)
            kept = await asyncio.gather(*(atlas.remember(f"Fact {number}", kind="journal") for number in range(20)))
            assert len({each.id for each in kept}) == 20
            assert await atlas.list() == wellkept.agent(word, "acme").list()
            assert await client.audit.head() == wellkept.tenant("acme").audit.head()
            assert (await atlas.tools())[0]["type"] == "function"
            with pytest.raises(NotFound):
                await atlas.get("m-99")

            assert (await atlas.call_tool("memory_store", {"text": "Likes oolong"}))["ok"]

            @captured(atlas)
            async def build() -> str:
                return "line\n" * 5_000

            assert "[MemoryRef:" in await build()

    asyncio.run(work())
