"""The console's pages for what all agents know: documents and skills, to look at."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

SKILL = "---\nname: {name}\ndescription: How to.\n{more}---\nDo <b>it</b>.\n"


def test_documents_are_listed_by_category_and_in_pages(wellkept: Wellkept, browser: Browser) -> None:
    tenant, category = wellkept.tenant(), f"c-{uuid.uuid4().hex[:8]}"
    for number in range(51):
        tenant.knowledge.ingest_text(f"Text {number}", title=f"<b>Page</b> {number} of {category}", category=category)

    first = browser.get("/admin/documents", category=category)
    (more,) = links(first, "More documents")
    second = browser.get(more)

    shown = [read(answer).count(f"of {category}") for answer in (first, second)]
    assert shown == [50, 1]
    assert "<b>" not in first.text
    assert links(second, "More documents") == []
    assert "There are no documents in this category." in read(browser.get("/admin/documents", category="no such"))


def test_a_document_is_read_passage_by_passage(wellkept: Wellkept, browser: Browser) -> None:
    tenant, word = wellkept.tenant(), f"zorg{uuid.uuid4().hex[:6]}"
    text = "\n\n".join(f"# Part {number}\n\n{word} {number} " + "and more of it. " * 60 for number in range(60))
    document = tenant.knowledge.ingest_text(text, title=f"All about {word}", category="policy").documents[0].document
    count = len(tenant.knowledge.passages(document.id))
    assert count > 50

    pages = [browser.get(f"/admin/documents/{document.id}")]
    while more := links(pages[-1], "Next page"):
        pages.append(browser.get(more[0]))
    first, *_, last = map(read, pages)

    assert f"All about {word}" in first
    assert f"{count} passages" in first
    assert (f"{word} 0 " in first, f"{word} 59 " in first, f"{word} 59 " in last) == (True, False, True)
    assert sum(page.text.count('<li class="card"') for page in pages) == count
    agent = wellkept.agent(f"ann-{word}")
    agent.remember("Something else")
    why = browser.get(f"/admin/agents/{agent.owner.agent}/ask", q=f"what is {word}?")
    assert f'href="/admin/documents/{document.id}"' in why.text

    tenant.knowledge.update(document.id, is_published=False)
    assert "Hidden: no agent finds it." in read(browser.get(f"/admin/documents/{document.id}"))
    theirs = wellkept.tenant("acme").knowledge.ingest_text("A private matter", title="Theirs").documents[0].document
    missing = browser.get("/admin/documents/d-0000")
    foreign = browser.get(f"/admin/documents/{theirs.id}")
    assert (missing.status_code, foreign.status_code) == (404, 404)
    assert foreign.text.replace(theirs.id, "d-0000") == missing.text


def test_skills_are_shown_with_what_is_wrong_with_their_files(tmp_path: Path) -> None:
    for name, more in (("all", ""), ("some", "agents: [atlas]\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(SKILL.format(name=name, more=more))
    settings = Settings(skills=(str(tmp_path),))
    with Wellkept(":memory:", settings=settings) as store, serving(store, no_auth=True) as address:
        browser = Browser(address)
        said = read(browser.get("/admin/skills"))
        assert "all For every agent How to. Text Do <b>it</b>." in said
        assert "some For atlas" in said
        assert "Needs attention" not in said

        (tmp_path / "all" / "SKILL.md").write_text("broken")
        assert "SKILL.md:1: must begin with" in read(browser.get("/admin/skills"))
        browser.close()


def test_the_page_one_is_on_is_marked_above(browser: Browser) -> None:
    for path in ("/admin", "/admin/agents", "/admin/users", "/admin/documents", "/admin/skills", "/admin/manage"):
        assert f'href="{path}" aria-current="page">' in browser.get(path).text
