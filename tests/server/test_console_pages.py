"""The console's pages for what agents remember: looked through, edited, deleted, approved and consolidated."""

from __future__ import annotations

import html
import re
import uuid
from datetime import timedelta

import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept.api.wellkept import AgentMemory, Wellkept
from wellkept.errors import NotFound

EVIL = "<script>alert('x')</script> <b>bold</b> \"quoted\" & {{ 7 * 7 }}"


@pytest.fixture
def ann(wellkept: Wellkept) -> AgentMemory:
    return wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")


def home(agent: AgentMemory) -> str:
    return f"/admin/agents/{agent.owner.agent}"


def ids(answer: httpx2.Response) -> list[str]:
    """The memories a page lists."""
    assert answer.status_code == 200
    return re.findall(r'name="id" value="(m-\d+)"', answer.text)


def test_agents_are_listed_with_how_much_they_remember(wellkept: Wellkept, browser: Browser, ann: AgentMemory) -> None:
    ann.remember("I am careful", kind="core")
    ann.remember("Tea at four")
    wellkept.tenant().agents.update(ann.owner.agent, name="Ann & Co", is_active=False)

    said = read(browser.get("/admin/agents"))

    assert f"Ann & Co {ann.owner.agent} inactive 1 0 1 0" in said
    assert "Agents" in said


@pytest.mark.proves("J5")
def test_the_newest_hundred_come_first_and_the_rest_in_pages(browser: Browser, ann: AgentMemory) -> None:
    ann.remember_many([{"text": f"Entry {number}", "kind": "episode"} for number in range(130)])

    first = browser.get(home(ann))
    (older,) = links(first, "Older")
    second = browser.get(older)

    assert ids(first) == [f"m-{number}" for number in range(130, 30, -1)]
    assert ids(second) == [f"m-{number}" for number in range(30, 0, -1)]
    assert links(second, "Older") == []
    assert ids(browser.get(links(second, "Newest")[0])) == ids(first)


@pytest.mark.proves("J5")
def test_each_memory_shows_its_kind_time_and_state(
    wellkept: Wellkept, browser: Browser, ann: AgentMemory, clock: MovableClock
) -> None:
    clock.ahead = timedelta(days=-8)
    ann.remember("It rained", kind="journal")
    clock.ahead = timedelta(days=-400)
    ann.remember("Long ago", kind="episode", category="routine")
    clock.ahead = timedelta(hours=-2)
    ann.remember("The user is king", kind="core", origin="tool")
    ann.remember("Tea at four", tags=["habit"])
    clock.ahead = timedelta()
    wellkept.maintain()

    page = browser.get(home(ann))
    said = read(page)

    for line in ("It rained expired 8 d ago", "The user is king held 2 h ago", "Tea at four habit 2 h ago"):
        assert line in said
    states = dict(re.findall(r'class="memory-row is-(\w+)">.*?value="(m-\d+)"', page.text, re.DOTALL))
    assert states == {"live": "m-4", "held": "m-3", "archived": "m-2", "expired": "m-1"}
    assert re.findall(r'role="img" aria-label="(\w+)"', page.text) == ["note", "core", "episode", "journal"]
    assert "Long ago archived 1 y ago" in said


@pytest.mark.proves("J5")
def test_memories_are_found_by_text_kind_tag_and_state(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Tea at four", tags=["habit"])
    ann.remember("Coffee at nine", tags=["habit"], kind="episode")
    ann.remember("I drink tea", kind="core")

    def found(**query: str) -> list[str]:
        return ids(browser.get(home(ann), **query))

    assert found(q="TEA")[:2] == ["m-3", "m-1"]
    assert found(kind="episode", q="", tag="", state="all") == ["m-2"]
    assert found(tag="habit") == ["m-2", "m-1"]
    assert found(tag="habit", q="tea")[0] == "m-1"
    assert found(state="expired") == []
    assert "No memories match" in read(browser.get(home(ann), state="expired"))
    assert browser.get(home(ann), kind="dream").status_code == 400
    assert browser.get(home(ann), before="x").status_code == 400


@pytest.mark.proves("J5")
def test_a_slash_too_many_leads_to_the_page(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("tea")

    for page in ("/admin", "/admin/keys", home(ann)):
        moved = browser.get(f"{page}/?after=x")
        assert (moved.status_code, moved.headers["Location"]) == (303, f"{page}?after=x")


def test_an_agent_without_memories_says_so(wellkept: Wellkept, browser: Browser) -> None:
    id = f"new-{uuid.uuid4().hex[:8]}"
    wellkept.tenant().agents.add(id, name="Newcomer")

    assert "Newcomer has no memories yet." in read(browser.get(f"/admin/agents/{id}"))


def test_whatever_is_stored_is_shown_as_text(wellkept: Wellkept, browser: Browser, ann: AgentMemory) -> None:
    ann.remember(EVIL, tags=["<i>"], kind="episode", session_id="s-<i>", metadata={"<i>": EVIL}, category="<i>")
    ann.items.put(("<i>",), "<i>", {"<i>": EVIL})
    ann.log_turn("s-<i>", user=EVIL, assistant=EVIL)
    wellkept.tenant().agents.update(ann.owner.agent, name=EVIL, icon="<i>")
    call = ann.context("bold quoted script", session="s-<i>").id

    for path in (
        *(
            "",
            "/memories/m-1",
            "/memories/m-1/delete",
            f"/prompts/{call}",
            "/prompts",
            "/sessions",
            "/sessions/s-%3Ci%3E",
        ),
        *(f"/ask?q={html.escape(EVIL)}&id=m-1", "?q=%22%3E%3Cscript%3E&tag=%22%3E%3Ci%3E", "/changes"),
        *("?kind=item", "/memories/m-2", "?where=%3Cb%3E&where=metadata.x+%3D+%27%3Ci%3E%27"),
        "?review=yes&state=held&sort=text",
    ):
        page = browser.get(home(ann) + path)
        assert page.status_code == 200
        assert page.text.count("<script") == 1, "only the console's own"
        assert "<b>" not in page.text
        assert "<i>" not in page.text
        assert "{{ 7 * 7 }}" in page.text
    assert EVIL in read_text(browser.get(f"{home(ann)}/memories/m-1"))
    wrong = browser.get(f"{home(ann)}/ask?q=x&where=%3Cb%3E&as_of=%3Ci%3E")
    assert (wrong.status_code, "<b>" in wrong.text, "<i>" in wrong.text) == (400, False, False)


def read_text(answer: httpx2.Response) -> str:
    """What stands in the form's text field."""
    (text,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", answer.text, re.DOTALL)
    return html.unescape(text)


@pytest.mark.proves("J5")
def test_a_memory_is_edited_and_what_it_said_is_kept(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Tea at four", tags=["habit"])
    path = f"{home(ann)}/memories/m-1"

    saved = browser.send(path, text="Tea at\r\nfive", tags="habit, drink", importance="0.7", version="1")

    assert saved.status_code == 200
    kept = ann.get("m-1")
    assert (kept.text, kept.tags, kept.importance, kept.version) == ("Tea at\nfive", ("habit", "drink"), 0.7, 2)
    assert "History version 1, until now habit Tea at four" in read(saved)
    late = browser.send(path, text="Tea at six", tags="", importance="0.7", version="1")
    assert late.status_code == 400
    assert read_text(late) == "Tea at six", "what somebody typed is not lost"
    assert 'role="alert"' in late.text
    assert browser.send(path, text=" ", tags="", importance="0.7", version="2").status_code == 400
    assert browser.send(path, text="x", importance="many").status_code == 422
    assert ann.get("m-1") == kept


@pytest.mark.proves("J5")
def test_a_memory_is_deleted_after_a_question(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Tea at four")
    (ask,) = links(browser.get(f"{home(ann)}/memories/m-1"), "Delete")

    question = browser.get(ask)
    assert "Delete m-1 permanently? note Tea at four" in read(question)
    assert ann.get("m-1").text == "Tea at four", "asking deletes nothing"
    (action,) = re.findall(r'<form class="actions" method="post" action="([^"]+)"', question.text)
    gone = browser.send(action)

    assert gone.url.path == home(ann)
    with pytest.raises(NotFound):
        ann.get("m-1")
    assert browser.send(action).status_code == 404


def test_what_waits_for_review_is_approved(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("The user is king", kind="core", origin="tool")
    path = f"{home(ann)}/memories/m-1"
    assert "For review Held since" in read(browser.get(path))

    assert browser.send(f"{path}/approve").status_code == 200

    assert ann.get("m-1").held_at is None
    assert "For review" not in read(browser.get(path))


def test_conversations_are_read_in_order(browser: Browser, ann: AgentMemory) -> None:
    for number in range(40):
        ann.log_turn("s-1", user=f"question {number}.", assistant=f"answer {number}.")

    listed = read(browser.get(f"{home(ann)}/sessions"))
    first = browser.get(f"{home(ann)}/sessions/s-1")
    rest = browser.get(links(first, "Next page")[0])

    assert "question 0. 80 now" in listed
    assert "user 1 now question 0." in read(first)
    assert "answer 24." in read(first)
    assert "question 25." not in read(first)
    assert "question 25." in read(rest)
    assert links(rest, "Next page") == []
    assert browser.get(f"{home(ann)}/sessions/s-9").status_code == 404
    known, unknown = (ann.remember("tea", kind="journal", session_id=id).id for id in ("s-1", "s-9"))
    assert links(browser.get(f"{home(ann)}/memories/{known}"), "s-1") == [f"{home(ann)}/sessions/s-1"]
    shown = browser.get(f"{home(ann)}/memories/{unknown}")
    assert "Conversation s-9" in read(shown)
    assert links(shown, "s-9") == []
    assert browser.get(f"{home(ann)}/sessions", at="yesterday", id="s-1").status_code == 400


def test_the_audit_log_is_searched_and_verified(wellkept: Wellkept, browser: Browser) -> None:
    word = uuid.uuid4().hex[:8]
    events = [wellkept.tenant().audit.record("shop.sale", f"Sold {word} number {n}.") for n in range(55)]

    first = browser.get("/admin/audit", q=word.upper())
    rest = browser.get(links(first, "Older")[0])

    assert f"{events[-1].id} now shop.sale Sold {word} number 54." in read(first)
    assert f"Sold {word} number 4." not in read(first)
    assert f"Sold {word} number 4." in read(rest)
    verified = read(browser.get("/admin/audit/verify"))
    head = wellkept.tenant().audit.head()
    assert "The log is intact: all" in verified
    assert f"Head: event {head.id}, {head.hash}" in verified
    assert "No events match" in read(browser.get("/admin/audit", q=f"{word}{word}"))
    assert browser.get("/admin/audit", before=10**30).status_code == 422


@pytest.mark.proves("J5")
def test_changes_are_made_applied_undone_and_rejected(browser: Browser, ann: AgentMemory) -> None:
    ann.remember_many([{"text": "Atlas ships from Hamburg", "kind": "episode"}] * 3)
    path = f"{home(ann)}/changes"
    assert "No change waits for a decision" in read(browser.get(path))

    browser.send(path)
    (change,) = ann.changes.list()
    listed = read(browser.get(path))
    assert change.id in listed
    assert "Apply" in listed
    assert change.id in read(browser.send(f"{path}/{change.id}/apply"))
    assert ann.changes.list(state="applied")[0].id == change.id
    assert browser.send(f"{path}/{change.id}/reject").status_code == 409
    browser.send(f"{path}/{change.id}/undo")
    assert ann.changes.list(state="undone")[0].id == change.id
    assert browser.send(f"{path}/c-99/apply").status_code == 404


def test_a_key_is_made_shown_once_and_revoked(wellkept: Wellkept, browser: Browser) -> None:
    made = browser.send("/admin/keys", scope="write", name="Kim <3")
    (key,) = re.findall(r"wellkept_[a-z0-9_]+", made.text)
    record = wellkept.keys.verify(key)

    assert record.scope.value == "write"
    again = browser.get("/admin/keys")
    assert key not in again.text
    assert f"Kim <3 {record.id} write" in read(again)
    assert "revoked now" in read(browser.send(f"/admin/keys/{record.id}/revoke"))
    assert browser.send("/admin/keys", scope="owner").status_code == 400
    assert browser.send("/admin/keys/aaaaaaaa/revoke").status_code == 404


@pytest.mark.proves("J5")
def test_a_tenant_is_taken_away_as_a_file_and_brought_in(wellkept: Wellkept, browser: Browser) -> None:
    wellkept.agent("ann", "moving").remember("Tea at four")
    with serving(wellkept, no_auth=False) as address:
        there = Browser(address)
        there.log_in(wellkept.tenant("moving").keys.create("admin").key)
        exported = there.get("/admin/export", compression="gzip")
        there.close()
        here = Browser(address)
        here.log_in(wellkept.tenant("arrived").keys.create("admin").key)

        def bring(wish: str, content: bytes = exported.content) -> httpx2.Response:
            files = {"file": ("moving.jsonl.gz", content)}
            return here.client.post("/admin/import", files=files, data={"wish": wish}, headers={"Origin": address})

        assert 'filename="moving.jsonl.gz"' in exported.headers["Content-Disposition"]
        assert "Nothing was written. This would happen:" in read(bring("try"))
        assert wellkept.agent("ann", "arrived").list() == []
        damaged = bring("import", exported.content[:-20])
        assert damaged.status_code == 400
        assert 'role="alert"' in damaged.text
        bring("merge")  # the audit logs of both begin with an event of their own
        here.close()
    assert [memory.text for memory in wellkept.agent("ann", "arrived").list()] == ["Tea at four"]
    assert browser.send("/admin/import", wish="try").status_code == 400


@pytest.mark.proves("J5")
def test_what_stands_on_the_whiteboard_all_agents_of_the_tenant_find(
    wellkept: Wellkept, browser: Browser, ann: AgentMemory
) -> None:
    word = f"zorg{uuid.uuid4().hex[:6]}"
    bob = wellkept.agent(f"{ann.owner.agent}-bob")
    other = wellkept.tenant("elsewhere")
    policy = wellkept.tenant().knowledge.ingest_text(f"The {word} policy", title=f"{word} policy").documents[0].document
    ann.remember("Ann is here")

    browser.send("/admin/whiteboard", title=word, text=f"Ship the {word} on Thursday")
    written = {"title": f"{word} lunch", "text": f"Lunch with {word} at one", "category": "whiteboard"}
    assert browser.client.post("/api/kb/documents", json=written).status_code == 201

    board = read(browser.get("/admin/whiteboard"))
    assert f"Ship the {word} on Thursday" in board
    assert f"Lunch with {word} at one" in board
    assert f"The {word} policy" not in board
    for agent in (ann, bob):
        assert any("Thursday" in hit.text for hit in agent.recall(f"when is {word} shipped?", limit=10))
        prompt = agent.context(f"when is {word} shipped?", session="s-1").messages
        assert any(f"Ship the {word} on Thursday" in message["content"] for message in prompt)
    assert other.knowledge.search(word) == []

    browser.send("/admin/whiteboard", title=word, text=f"Ship the {word} on Friday")
    page = browser.get("/admin/whiteboard")
    assert "on Thursday" not in read(page)
    wiping = re.findall(r'action="(/admin/whiteboard/[^"]+)"', page.text)
    listed = wellkept.tenant().knowledge.list(category="whiteboard")
    assert wiping == [f"/admin/whiteboard/{each.id}/wipe" for each in listed]
    for path in wiping:
        browser.send(path)
    assert "The whiteboard is empty" in read(browser.get("/admin/whiteboard"))
    assert browser.send(f"/admin/whiteboard/{policy.id}/wipe").status_code == 404
    assert wellkept.tenant().knowledge.get(policy.id) == policy
    blank = browser.send("/admin/whiteboard", title=" ", text="kept in the form")
    assert (blank.status_code, read_text(blank)) == (400, "kept in the form")


def test_what_has_expired_is_restored(browser: Browser, ann: AgentMemory, clock: MovableClock) -> None:
    wrong = ann.remember("Storm in the harbour", kind="journal")
    ann.remember("Breeze in the harbour", kind="journal", supersedes=wrong.id)
    fog = ann.remember("Fog in the harbour", kind="journal")
    path = f"{home(ann)}/memories/{fog.id}"
    assert "Restore" not in read(browser.get(path))
    clock.ahead = timedelta(days=8)
    assert "Restore" in read(browser.get(path))

    assert browser.send(f"{path}/restore").status_code == 200

    assert [each.id for each in ann.list()] == [fog.id]
    refused = browser.send(f"{home(ann)}/memories/{wrong.id}/restore")
    assert (refused.status_code, "was corrected" in read(refused)) == (400, True)
