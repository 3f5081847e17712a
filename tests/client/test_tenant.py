"""Verbs of a tenant through a server, on both engines."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from wellkept import AsyncClient, Client, Conflict, Forbidden, Invalid, NotFound, Wellkept
from wellkept.api.wellkept import TenantMemory


@pytest.fixture
def library(wellkept: Wellkept) -> TenantMemory:
    return wellkept.tenant("acme")


@pytest.fixture
def word() -> str:
    return f"w{uuid.uuid4().hex[:8]}"


def test_agents(client: Client, library: TenantMemory, word: str) -> None:
    made = client.add_agent(word, name="Ann", tools=["notes"])

    assert made == library.get_agent(word) == client.get_agent(word)
    assert made in client.list_agents()
    assert client.list_agents(after=word) == library.list_agents(after=word)
    assert client.update_agent(word, system_prompt="Be kind.").system_prompt == "Be kind."
    assert client.count_memories(word) == library.count_memories(word)
    with pytest.raises(Conflict):
        client.add_agent(word)
    client.delete_agent(word)
    with pytest.raises(NotFound):
        client.get_agent(word)


def test_documents(client: Client, library: TenantMemory, word: str, tmp_path: Path) -> None:
    (tmp_path / f"{word}.md").write_text(f"# {word}\n\nTea is served at four.\n")
    report = client.ingest(tmp_path / f"{word}.md", category="house", metadata={"floor": 2}, is_published=True)
    text = client.ingest(f"# About {word}\n\nCoffee is served at nine.", is_published=False)

    assert report.document == library.get_document(report.id) == client.get_document(report.id)
    assert report.documents[0].change == "added"
    assert not text.document.is_published
    assert client.ingest_bytes((tmp_path / f"{word}.md").read_bytes(), f"{word}.md").documents[0].change == "unchanged"
    assert client.list_documents(category="house") == library.list_documents(category="house")
    assert [each.id for each in client.list_documents(where="metadata.floor = 2")] == [report.id]
    passages = client.list_passages(report.id)
    assert [each.text for each in passages] == [each.text for each in library.list_passages(report.id)]
    assert client.update_document(report.id, title=f"{word} two").title == f"{word} two"
    client.search_knowledge("when is tea served?")  # which embeds what was just stored
    hits = client.search_knowledge("when is tea served?")
    assert hits == library.search_knowledge("when is tea served?")
    client.delete_document(report.id)
    with pytest.raises(NotFound):
        client.get_document(report.id)
    with pytest.raises(Invalid, match="one file at a time"):
        client.ingest(tmp_path)


def test_workflows(client: Client, library: TenantMemory, word: str) -> None:
    step = client.record_step(workflow=f"Run {word}", step="check", output="fine", agent=word)
    workflow = client.get_workflow(step.workflow_id)

    assert client.list_steps(workflow.id) == library.list_steps(workflow.id) == [step]
    assert client.record_step(workflow=workflow.id, step="pay", is_new=False).position == 2
    assert workflow in client.list_workflows()
    assert client.add_workflow(word) == library.get_workflow(word)
    with pytest.raises(NotFound):
        client.record_step(workflow="nothing", step="x", is_new=False)
    with pytest.raises(Invalid, match="add_workflow"):
        client.record_step(workflow="a/b", step="x")


def test_the_audit_log(client: Client, library: TenantMemory, word: str) -> None:
    event = client.audit.record("order.refund", f"Refund {word}", agent=word, meta={"euro": 30})

    assert client.audit.search(word) == library.audit.search(word) == [event] == client.audit_events(word)
    assert client.audit.list(limit=3, before=event.id) == library.audit.list(limit=3, before=event.id)
    assert client.audit.verify() == library.audit.verify() == client.verify_audit()
    assert client.audit.head() == library.audit.head()


def test_keys(client: Client, library: TenantMemory, word: str) -> None:
    issued = client.add_key(name=word, agents=["atlas"], trust="tool")

    assert issued.record.scope == "read"
    assert issued.key not in repr(issued)
    # The times of use are written later.
    assert [each.id for each in client.list_keys()] == [each.id for each in library.list_keys()]
    assert issued.record in client.list_keys()
    client.revoke_key(issued.record.id)
    assert [each.revoked_at is None for each in client.list_keys() if each.name == word] == [False]


def test_upkeep(client: Client, library: TenantMemory, word: str) -> None:
    client.agent(word).remember(f"About {word}")
    dry = client.erase(f"text:About {word}", dry_run=True)

    assert dry.found == library.erase(f"text:About {word}", dry_run=True).found
    assert client.erase(f"agent:{word}").removed["memories"] == 1
    assert client.allow_secret(f"AKIA{word.upper()[:8]}EXAMPLQ7"[:20].replace("W", "X")) >= 1
    assert list(client.scan()) == list(library.scan())
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

            @atlas.captured
            async def build() -> str:
                return "line\n" * 5_000

            assert "[MemoryRef:" in await build()

    asyncio.run(work())
