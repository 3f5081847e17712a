"""A tenant's documents through the library, on both engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.documents import PAGE, pdf
from tests.services.conftest import Clock, Place
from wellkept import AsyncWellkept, Settings, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.deadline import DEADLINE, Deadline
from wellkept.errors import Cancelled, Conflict, Invalid, ModelError, NotFound, SecretRejected
from wellkept.knowledge.ingest import DocumentChange
from wellkept.model import Hit, Source
from wellkept.tools import catalog
from wellkept.upkeep.embedding import Embedding

pytestmark = pytest.mark.proves("E5")

POLICY = "# Refund policy\n\nRefunds are paid within 14 days.\n\n## Fees\n\nNorway pays 3 EUR.\n"
KEY = "AKIA" + "Z7QWE4RTY2UIOP6A"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, so that paths are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def actions(tenant: TenantMemory) -> list[str]:
    return [event.action for event in reversed(tenant.audit.list())]


def test_a_text_becomes_a_document_that_is_found(tenant: TenantMemory, clock: Clock) -> None:
    ingested = tenant.knowledge.ingest("Refunds are paid within 14 days.", title="Refund policy", category="policy")

    document = tenant.knowledge.get(ingested.id)
    assert document == ingested.document
    assert (document.title, document.category, document.source) == ("Refund policy", "policy", "")
    assert (document.created_at, document.is_published) == (clock.moment, True)
    assert ingested.documents[0].change is DocumentChange.ADDED
    (hit,) = tenant.knowledge.search("refund policy")
    assert hit.text == "Refund policy\n\nRefunds are paid within 14 days."
    assert (hit.source, hit.id, hit.document) == (Source.KNOWLEDGE, f"{document.id}#0", document)
    assert 0.5 < hit.score == hit.parts["similarity"] < 1
    assert actions(tenant) == ["document.add"]
    assert "Refund" not in tenant.audit.list()[0].message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", POLICY.encode()),
        ("a.txt", b"Refund policy\n\nRefunds are paid within 14 days."),
        ("a.html", PAGE.encode()),
        ("a.pdf", pdf("Refund policy\nRefunds are paid within 14 days.")),
    ],
)
def test_every_kind_of_file_is_read(tenant: TenantMemory, folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)

    by_path = tenant.knowledge.ingest(name)
    assert "14 days" in tenant.knowledge.search("when are refunds paid")[0].text
    assert by_path.document.source == name
    assert (
        tenant.knowledge.ingest(folder / name).documents[0].change is DocumentChange.ADDED
    )  # another path is another document
    uploaded = tenant.knowledge.ingest_bytes(content, f"C:\\files\\{name}")
    assert uploaded.id == by_path.id
    assert uploaded.documents[0].change is DocumentChange.UNCHANGED


def test_the_same_again_changes_nothing(tenant: TenantMemory, folder: Path, clock: Clock) -> None:
    (folder / "a.md").write_text(POLICY)
    first = tenant.knowledge.ingest("a.md", category="policy")
    clock.forward(days=1)

    again = tenant.knowledge.ingest("./a.md")

    assert again.documents[0].change is DocumentChange.UNCHANGED
    assert again.document == first.document
    assert again.documents[0].passages == first.documents[0].passages == 2
    assert actions(tenant) == ["document.add"]


def test_a_changed_file_takes_the_place_of_the_old_one(tenant: TenantMemory, folder: Path, clock: Clock) -> None:
    (folder / "a.md").write_text(POLICY)
    first = tenant.knowledge.ingest("a.md", category="policy").document
    clock.forward(days=1)
    (folder / "a.md").write_text(POLICY.replace("14", "30"))

    updated = tenant.knowledge.ingest("a.md")

    assert updated.documents[0].change is DocumentChange.UPDATED
    assert (updated.document.id, updated.document.created_at) == (first.id, first.created_at)
    assert (updated.document.updated_at, updated.document.category) == (clock.moment, "policy")
    found = texts(tenant.knowledge.search("when are refunds paid", limit=10))
    assert any("30 days" in text for text in found)
    assert not any("14 days" in text for text in found)
    assert len(tenant.knowledge.list()) == 1
    assert actions(tenant) == ["document.add", "document.update"]


def test_a_text_is_known_by_its_title(tenant: TenantMemory) -> None:
    first = tenant.knowledge.ingest("One.", title="Rules")
    assert tenant.knowledge.ingest("One.", title="Rules").documents[0].change is DocumentChange.UNCHANGED
    assert tenant.knowledge.ingest("Two.", title="Rules").id == first.id
    assert tenant.knowledge.ingest("# Rules\n\nThree.").id == first.id
    assert tenant.knowledge.ingest("Two.", title="Other rules").id != first.id
    assert tenant.knowledge.ingest("Words " * 50).document.title == ("Words " * 50)[:79] + "…"


def test_what_is_said_about_a_document_can_change(tenant: TenantMemory, clock: Clock) -> None:
    id = tenant.knowledge.ingest(POLICY, category="policy").id
    clock.forward(days=1)

    renamed = tenant.knowledge.update(id, title="Returns", category="law")
    assert (renamed.title, renamed.category, renamed.updated_at) == ("Returns", "law", clock.moment)
    assert [chunk.text.split("\n")[0] for chunk in tenant.knowledge.passages(id)] == ["Returns", "Returns > Fees"]
    assert len(tenant.knowledge.search("returns", categories=["law"])) == 2
    assert tenant.knowledge.search("returns", categories=["policy"]) == []

    tenant.knowledge.update(id, is_published=False)
    assert tenant.knowledge.search("returns") == []
    assert len(tenant.knowledge.passages(id)) == 2
    assert (
        tenant.knowledge.ingest(POLICY).document.is_published is False
    )  # known by its first title; nobody published it
    tenant.knowledge.update(id, is_published=True, category="")
    assert len(tenant.knowledge.search("returns")) == 2
    assert tenant.knowledge.search("returns", categories=["law"]) == []
    before = len(actions(tenant))
    assert tenant.knowledge.update(id, is_published=True) == tenant.knowledge.get(id)
    assert len(actions(tenant)) == before


def test_passages_that_stay_keep_their_numbers(tenant: TenantMemory) -> None:
    id = tenant.knowledge.ingest(POLICY, title="Refunds").id

    def numbers() -> dict[str, Any]:
        return {chunk.text.split("\n")[0]: chunk.id for chunk in tenant.knowledge.passages(id)}

    first = numbers()
    assert list(first) == ["Refunds > Refund policy", "Refunds > Refund policy > Fees"]

    tenant.knowledge.ingest(f"Before all.\n\n{POLICY.replace('14', '30')}", title="Refunds")
    second = numbers()
    assert list(second) == ["Refunds", *first]
    assert second["Refunds > Refund policy > Fees"] == first["Refunds > Refund policy > Fees"]
    assert second["Refunds > Refund policy"] not in first.values()
    tenant.knowledge.ingest("# Refund policy\n\n## Fees\n\nNorway pays 3 EUR.", title="Refunds")
    assert list(numbers().values()) == [first["Refunds > Refund policy > Fees"]]
    assert [chunk.position for chunk in tenant.knowledge.passages(id)] == [0]


def test_a_deleted_document_is_gone(tenant: TenantMemory) -> None:
    id = tenant.knowledge.ingest(POLICY).id
    tenant.knowledge.delete(id)

    assert tenant.knowledge.search("refund") == []
    for attempt in (tenant.knowledge.get, tenant.knowledge.passages, tenant.knowledge.delete, tenant.knowledge.update):
        with pytest.raises(NotFound, match=r"^There is no such document\.$"):
            attempt(id)
    assert actions(tenant) == ["document.add", "document.delete"]
    assert tenant.knowledge.ingest(POLICY).documents[0].change is DocumentChange.ADDED


def test_another_tenant_sees_nothing(wellkept: Wellkept, tenant: TenantMemory, tenant_id: str) -> None:
    id = tenant.knowledge.ingest(POLICY).id
    other = wellkept.tenant(f"{tenant_id}-other")

    assert other.knowledge.search("refund policy") == other.knowledge.list() == []
    with pytest.raises(NotFound):
        other.knowledge.get(id)


def test_an_agent_may_be_limited_to_categories(tenant: TenantMemory, ann: AgentMemory, bob: AgentMemory) -> None:
    tenant.knowledge.ingest("Salaries are paid on the 25th.", title="Pay", category="hr")
    tenant.knowledge.ingest("Invoices are paid within 14 days.", title="Invoices", category="finance")
    tenant.knowledge.ingest("Coffee is paid by the company.", title="Coffee")
    tenant.agents.add("ann", knowledge_categories=["finance", "law"])

    def found(agent: AgentMemory, *categories: str) -> set[str]:
        return {hit.document.title for hit in agent.knowledge.search("paid", categories=categories) if hit.document}

    assert found(bob) == {"Pay", "Invoices", "Coffee"}
    assert found(ann) == {"Invoices"}
    assert found(ann, "hr") == set()
    assert found(ann, "hr", "finance") == {"Invoices"}
    recalled = [hit.document.title for hit in ann.recall("what is paid", sources=["knowledge"]) if hit.document]
    assert recalled == ["Invoices"]
    tool = ann.call_tool("search_knowledge", {"query": "paid"})
    assert [result["title"] for result in tool["results"]] == ["Invoices"]
    assert ann.call_tool("search_knowledge", {"query": "paid", "categories": ["hr"]}) == {"count": 0, "results": []}

    assert tenant.agents.update("ann", knowledge_categories=[]).knowledge_categories == ()
    assert found(ann) == {"Pay", "Invoices", "Coffee"}
    for wrong in ("hr", [" "], ["x" * 101], ["x"] * 0 + [f"c{n}" for n in range(101)], 7):
        with pytest.raises(Invalid):
            tenant.agents.update("ann", knowledge_categories=wrong)  # type: ignore[arg-type]


def test_the_tool_answers_with_titles_and_sources(tenant: TenantMemory, ann: AgentMemory) -> None:
    id = tenant.knowledge.ingest("Refunds take 14 days.", title="Refunds", category="policy").id

    answer = ann.call_tool("search_knowledge", {"query": "refunds", "limit": 99})
    text = "Refunds\n\nRefunds take 14 days."
    (result,) = answer["results"]
    assert 0 < result.pop("score") < 1
    assert result == {"id": f"{id}#0", "title": "Refunds", "text": text, "category": "policy"}
    assert ann.call_tool("search_knowledge", {"query": " "})["ok"] is False
    assert catalog.call(None, "search_knowledge", {"query": "refunds"})["ok"] is False


def test_recall_and_search_rank_passages_alike(tenant: TenantMemory, ann: AgentMemory) -> None:
    for number in range(12):
        tenant.knowledge.ingest(
            f"Rule {number}: refunds of kind {number} take {number * 2} days.", title=f"Rule {number}"
        )

    searched = [hit.id for hit in ann.knowledge.search("refunds of kind 7", limit=5)]
    recalled = [hit.id for hit in ann.recall("refunds of kind 7", sources=["knowledge"], limit=5)]
    assert recalled[0] == searched[0]
    assert len(set(recalled) & set(searched)) >= 4


def test_a_secret_is_refused_by_its_line_and_never_told(tenant: TenantMemory, folder: Path) -> None:
    (folder / "a.md").write_text(f"# Set-up\n\nFirst.\n\nSecond:\nthe key is {KEY} today\n")

    with pytest.raises(SecretRejected) as refusal:
        tenant.knowledge.ingest("a.md", secrets="reject")
    assert refusal.value.sentence == "Line 6 of a.md appears to contain a secret — not stored"
    assert "aws-access-key" in str(refusal.value)
    assert "wellkept admin secrets allow" in str(refusal.value)
    assert tenant.knowledge.list() == []
    with pytest.raises(SecretRejected, match="The title appears"):
        tenant.knowledge.ingest("text", title=f"key {KEY}")
    with pytest.raises(SecretRejected, match=r"Page 2 of a\.pdf"):
        tenant.knowledge.ingest_bytes(pdf("one", f"the key is {KEY}"), "a.pdf", secrets="reject")
    with pytest.raises(SecretRejected, match=r"of a\.html"):
        tenant.knowledge.ingest_bytes(f"<p>the key is {KEY}".encode(), "a.html", secrets="reject")
    with pytest.raises(Invalid, match="secrets must be redact or reject"):
        tenant.knowledge.ingest_text("harmless", secrets="flag")  # type: ignore[arg-type]
    assert set(actions(tenant)) == {"document.refuse"}
    assert KEY not in str(tenant.audit.list())

    tenant.secrets.allow(f"the key is {KEY} today")
    assert tenant.knowledge.ingest("a.md").documents[0].change is DocumentChange.ADDED


def test_secrets_are_removed_from_a_document_and_named_by_line_and_rule(tenant: TenantMemory, folder: Path) -> None:
    (folder / "a.md").write_text(f"# Key {KEY}\n\nFirst.\n\nSecond:\nthe key is {KEY} today\n")

    (ingested,) = tenant.knowledge.ingest("a.md").documents

    mark = "[secret removed: aws-access-key]"
    assert [(each.place, each.rule) for each in ingested.removed_secrets] == [
        ("line 1", "aws-access-key"),
        ("line 6", "aws-access-key"),
    ]
    assert ingested.document.title == f"Key {mark}"
    assert f"the key is {mark} today" in tenant.knowledge.passages(ingested.document.id)[0].text
    assert actions(tenant) == ["document.add", "document.secret"]
    assert KEY not in f"{tenant.audit.list()}{tenant.knowledge.passages(ingested.document.id)}{ingested}"
    assert tenant.knowledge.ingest("a.md").documents[0].change is DocumentChange.UNCHANGED


def test_secrets_are_redacted_or_flagged_as_the_settings_say(place: Place, clock: Clock, tenant_id: str) -> None:
    text = f"The key is {KEY} today."
    with place.open(clock, secrets="redact") as store:
        tenant = store.tenant(f"{tenant_id}-redact")
        assert (
            "[secret removed: aws-access-key]"
            in tenant.knowledge.passages(tenant.knowledge.ingest(text, title="a").id)[0].text
        )
    with place.open(clock, secrets="flag") as store:
        tenant = store.tenant(f"{tenant_id}-flag")
        document = tenant.knowledge.ingest(text, title="a").document
        assert document.flag == "secret: aws-access-key"
        assert tenant.knowledge.get(document.id) == document


class Broken:
    """An embedder that fails until it is mended."""

    name = "broken"
    dimensions = 4
    is_broken = True

    def embed(self, texts: Sequence[str]) -> Any:
        if self.is_broken:
            raise ModelError("It does not answer.")
        return np.tile(np.array([1, 0, 0, 0], np.float32), (len(texts), 1))


def test_a_failing_embedder_loses_no_document(clock: Clock) -> None:
    embedder = Broken()
    with Wellkept(":memory:", settings=Settings(), clock=clock, embedder=embedder) as store:
        tenant = store.tenant("acme")
        tenant.knowledge.ingest(POLICY)
        assert len(tenant.knowledge.search("refund policy")) == 2  # by words
        assert store.embedding.count_waiting() == 2
        embedder.is_broken = False
        store.embedding.embed_waiting()
        assert store.embedding.count_waiting() == 0


def test_a_folder_is_taken_in_with_all_below_it(tenant: TenantMemory, folder: Path) -> None:
    for name, content in {"docs/a.md": "# A\n\nApples.", "docs/sub/b.txt": "Bananas.", "docs/.c.md": "No."}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "docs" / "broken.pdf").write_bytes(b"no")
    (folder / "docs" / "secret.md").write_text(f"x\n\nthe key is {KEY}")
    seen: list[tuple[int, int]] = []

    report = tenant.knowledge.ingest(
        "docs", category="fruit", secrets="reject", progress=lambda done, total: seen.append((done, total))
    )

    assert [each.document.source for each in report.documents] == ["docs/a.md", "docs/sub/b.txt"]
    assert {each.document.category for each in report.documents} == {"fruit"}
    assert [each.source for each in report.failures] == ["docs/broken.pdf", "docs/secret.md"]
    assert "broken" in report.failures[0].reason
    assert report.failures[1].reason.startswith("Line 3 of secret.md")
    assert KEY not in str(report)
    assert seen == [(number, 4) for number in range(1, 5)]

    (folder / "docs" / "sub" / "b.txt").unlink()
    alone = tenant.knowledge.ingest("Not of a file.", title="Alone").id
    again = tenant.knowledge.ingest(folder / "docs" / "..", exclude=["*.pdf", "secret.md"])
    assert all(Path(each.document.source).is_absolute() for each in again.documents)
    assert tenant.knowledge.ingest("docs/", exclude=["secret.md"]).removed == ()
    pruned = tenant.knowledge.ingest("docs", prune=True, include=["*.html"])
    assert pruned.removed == (report.documents[1].document.id,)
    left = {each.title for each in tenant.knowledge.list()}
    assert left == {"A", "Alone"}
    assert tenant.knowledge.get(alone).title == "Alone"
    assert (
        tenant.knowledge.ingest("docs/a.md").documents[0].change is DocumentChange.UNCHANGED
    )  # the same by its own path


def test_what_cannot_be_taken_in_is_explained(tenant: TenantMemory, folder: Path) -> None:
    (folder / "empty.md").write_text("\n \n")
    for wrong, says in {
        "empty.md": "empty.md has no text",
        "missing.md": "There is no file or folder 'missing.md'",
        "": "The text has no text|title cannot be blank",
        "half \ud800": "half a surrogate pair",
    }.items():
        with pytest.raises(Invalid, match=says):
            tenant.knowledge.ingest(wrong)
    with pytest.raises(Invalid, match="title is too long"):
        tenant.knowledge.ingest("x", title="x" * 301)
    with pytest.raises(Invalid, match="title cannot be blank"):
        tenant.knowledge.ingest("x", title=" ")
    with pytest.raises(Invalid, match="category is too long"):
        tenant.knowledge.ingest("x", category="x" * 101)
    with pytest.raises(Invalid, match="query is blank"):
        tenant.knowledge.search(" ")
    with pytest.raises(Invalid, match="`categories` must be a list of strings"):
        tenant.knowledge.search("x", categories="policy")
    assert tenant.knowledge.list() == []


def test_the_same_text_from_two_at_once_is_added_once(tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = tenant._store.prepare_document

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        assert tenant.knowledge.ingest(POLICY, title="Rules").documents[0].change is DocumentChange.ADDED
        return prepare(*given)

    monkeypatch.setattr(tenant._store, "prepare_document", meanwhile)
    assert tenant.knowledge.ingest(POLICY, title="Rules").documents[0].change is DocumentChange.UNCHANGED
    assert actions(tenant) == ["document.add"]


def test_the_same_text_from_many_at_once_is_added_by_one_of_them(
    tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, all_have_looked = tenant._store.prepare_document, threading.Barrier(8)

    def together(*given: Any) -> Any:
        all_have_looked.wait(60)
        return prepare(*given)

    monkeypatch.setattr(tenant._store, "prepare_document", together)
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda _: tenant.knowledge.ingest(POLICY, title="Rules").documents[0], range(8)))

    assert sorted(each.change for each in told) == [DocumentChange.ADDED, *[DocumentChange.UNCHANGED] * 7]
    assert len({each.document for each in told}) == 1
    assert actions(tenant) == ["document.add"]


def test_a_change_that_somebody_else_made_first_is_not_undone(
    tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = tenant.knowledge.ingest(POLICY, title="Rules").id
    prepare = tenant._store.prepare_document

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        tenant.knowledge.ingest("All new.", title="Rules")
        return prepare(*given)

    monkeypatch.setattr(tenant._store, "prepare_document", meanwhile)
    with pytest.raises(Conflict, match="in the meantime"):
        tenant.knowledge.update(id, category="law")
    assert [chunk.text for chunk in tenant.knowledge.passages(id)] == ["Rules\n\nAll new."]


def test_ingest_computes_index_entries_before_the_transaction(
    tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = tenant._store
    encoded, inside = store._engine.index.encoded, []

    def watched(*given: Any) -> Any:
        inside.append(store._unit(tenant.id) is not None)
        return encoded(*given)

    monkeypatch.setattr(store._engine.index, "encoded", watched)
    id = tenant.knowledge.ingest(POLICY, title="Rules").id
    tenant.knowledge.update(id, category="law")
    assert inside == [False, False]


def test_ingest_stores_nothing_after_its_deadline(tenant: TenantMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant.knowledge.ingest("Old text.", title="Rules")
    store, deadline = tenant._store, Deadline(3600)
    prepare = store.prepare_document

    def late(*given: Any) -> Any:
        write = prepare(*given)
        deadline.cancel()
        return write

    monkeypatch.setattr(store, "prepare_document", late)
    token = DEADLINE.set(deadline)
    try:
        with pytest.raises(Cancelled):
            tenant.knowledge.ingest(POLICY, title="Rules")
    finally:
        DEADLINE.reset(token)
    (document,) = tenant.knowledge.list()
    assert [chunk.text for chunk in tenant.knowledge.passages(document.id)] == ["Rules\n\nOld text."]
    assert actions(tenant) == ["document.add"]


def test_ingest_rejects_too_many_passages(tenant: TenantMemory) -> None:
    with pytest.raises(Invalid, match=r"20,001 passages \(max 20,000\); split it"):
        tenant.knowledge.ingest("# a\n" * 20_001, title="Rules")
    assert tenant.knowledge.list() == []


def test_the_awaited_library_does_the_same(folder: Path) -> None:
    async def work() -> list[str]:
        async with AsyncWellkept(":memory:", settings=Settings()) as store:
            acme = store.tenant("acme")
            await acme.knowledge.ingest(POLICY, category="policy")
            assert len(await acme.knowledge.list()) == 1
            return texts(await store.agent("atlas", "acme").knowledge.search("refunds paid when"))

    assert "14 days" in asyncio.run(work())[0]


def test_an_unrelated_question_finds_nothing_that_fits(tenant: TenantMemory, ann: AgentMemory) -> None:
    tenant.knowledge.ingest("# Cluster\n\nIn theory, workers share the load evenly between all cores of the machine.")
    tenant.knowledge.ingest(POLICY)

    unrelated, small_talk = "Who is the king of Spain?", "thanks, that's all"
    for find in (tenant.knowledge.search, ann.knowledge.search, partial(ann.recall, sources=["knowledge"])):
        assert find(small_talk) == []
        assert find(unrelated, min_relevance=0.1) == []
        assert all(hit.weak for hit in find(unrelated))
    assert ann.recall(unrelated, sources=["knowledge"])
    (best,) = tenant.knowledge.search("quantum chromodynamics theory", limit=1, min_relevance=0)
    assert best.title == "Cluster"


def test_a_minimum_score_leaves_weaker_passages_out(tenant: TenantMemory, ann: AgentMemory) -> None:
    tenant.knowledge.ingest(POLICY)
    found = tenant.knowledge.search("when are refunds paid", min_relevance=0)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)

    assert texts(tenant.knowledge.search("when are refunds paid", min_relevance=found[0].score)) == [found[0].text]
    assert tenant.knowledge.search("when are refunds paid", min_relevance=1) == []
    assert ann.call_tool("search_knowledge", {"query": "refunds", "min_relevance": 1})["count"] == 0
    for wrong in (-0.1, 1.1, "high", True, float("nan")):
        with pytest.raises(Invalid, match="min_relevance"):
            tenant.knowledge.search("refunds", min_relevance=wrong)  # type: ignore[arg-type]


def test_a_passage_can_be_cited(tenant: TenantMemory, ann: AgentMemory) -> None:
    long = "The effects of long titles on the search for passages of documents with very many words in their titles"
    tenant.knowledge.ingest(f"# {long}\n\nIntroduction.\n\n## Fees\n\n### EU\n\nA transfer costs 2 EUR.")

    hit = tenant.knowledge.search("what does a transfer cost", min_relevance=0)[0]
    assert (hit.title, hit.heading, hit.page) == (long, "Fees > EU", None)
    assert hit.text.startswith(f"{long} > Fees > EU\n\n")
    (result, *_) = ann.call_tool("search_knowledge", {"query": "what does a transfer cost", "min_relevance": 0})[
        "results"
    ]
    assert (result["title"], result["heading"]) == (long, "Fees > EU")


def test_documents_with_the_same_title_are_found_apart(tenant: TenantMemory, folder: Path) -> None:
    for name, days in (("eu", 14), ("us", 30)):
        (folder / name).mkdir()
        (folder / name / "refunds.md").write_text(f"# Refunds\n\nRefunds are paid within {days} days.")
    tenant.knowledge.ingest(folder)

    hits = tenant.knowledge.search("when are refunds paid")
    assert len({hit.document.id for hit in hits if hit.document}) == 2
    assert {hit.title for hit in hits} == {"Refunds"}


def test_texts_whose_titles_are_secrets_stay_apart(tenant: TenantMemory) -> None:
    for token, text in (
        ("16C7e42F292c6912E7710c838347Ae178B4a", "Cats"),
        ("99C7e42F292c6912E7710c838347Ae178B4b", "Dogs"),
    ):
        tenant.knowledge.ingest(f"# ghp_{token}\n\n{text} sleep a lot.")

    documents = tenant.knowledge.list()
    assert len(documents) == 2
    assert all("ghp_" not in each.title for each in documents)


def test_a_paragraph_between_two_rules_is_no_front_matter(tenant: TenantMemory) -> None:
    tenant.knowledge.ingest(
        "---\nOpening hours: Monday to Friday.\n---\n\nParking is behind the house.", title="Office"
    )
    tenant.knowledge.ingest("---\ntitle: Menu\ntags:\n  - food\n---\n\nSoup is served at noon.")

    assert "Opening hours" in tenant.knowledge.search("when are the opening hours?", min_relevance=0)[0].text
    assert not any("food" in hit.text for hit in tenant.knowledge.search("food menu", min_relevance=0))


def test_patterns_are_a_list(tenant: TenantMemory, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Tea")
    for wrong in ({"include": "*.md"}, {"exclude": "*.md"}):
        with pytest.raises(Invalid, match="must be a list of strings, not str"):
            tenant.knowledge.ingest(tmp_path, **wrong)  # type: ignore[arg-type]


def test_the_first_search_finds_by_meaning_what_was_just_ingested(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the search came before the thread's first batch.
    monkeypatch.setattr(Embedding, "wake", lambda self: None)
    with Wellkept(":memory:", settings=Settings()) as store:
        acme = store.tenant("acme")
        acme.knowledge.ingest("Refunds take 14 days.", title="Policy")
        assert texts(acme.knowledge.search("money back?")) == ["Policy\n\nRefunds take 14 days."]
