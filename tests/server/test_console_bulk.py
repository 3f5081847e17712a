"""Several memories at once in the console: previewed and changed."""

from __future__ import annotations

import html
import re
import uuid

import httpx2
import pytest

from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept import Wellkept
from wellkept.api.agent import AgentMemory


@pytest.fixture
def ann(wellkept: Wellkept) -> AgentMemory:
    ann = wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")
    ann.remember("Tea at four", tags=["habit"], metadata={"city": "Oslo"}, importance=0.7)
    ann.remember("Coffee at nine", kind="episode")
    ann.remember("The user is king", kind="core", origin="tool")
    return ann


def post(browser: Browser, agent: AgentMemory, step: str, fields: dict[str, object]) -> httpx2.Response:
    path = f"/admin/agents/{agent.owner.agent}/bulk{step}"
    return browser.client.post(path, data=fields, headers={"Origin": browser.address})


def run(browser: Browser, agent: AgentMemory, action: str, ids: list[str], value: str = "") -> httpx2.Response:
    """Confirm the preview by sending its form."""
    preview = post(browser, agent, "", {"id": ids, "action": action, "value": value})
    assert preview.status_code == 200
    return post(browser, agent, "/run", hidden(preview))


def hidden(answer: httpx2.Response) -> dict[str, object]:
    """The hidden fields of the form on a page; ids may occur several times."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', answer.text):
        found.setdefault(name, []).append(html.unescape(value))
    return {name: values if name == "id" else values[0] for name, values in found.items()}


def test_a_preview_changes_nothing_and_names_what_is_left_out(browser: Browser, ann: AgentMemory) -> None:
    said = read(post(browser, ann, "", {"id": ["m-1", "m-3", "m-99"], "action": "approve"}))

    assert "Tea at four note left out: it does not wait for a review" in said
    assert "Approve: 1 memory" in said
    assert ann.get("m-3").held_at is not None
    nothing = post(browser, ann, "", {"action": "delete"})
    assert (nothing.status_code, "Nothing is selected" in read(nothing)) == (400, True)
    untold = post(browser, ann, "", {"id": "m-1", "action": "tag"})
    assert (untold.status_code, "Enter a tag" in read(untold)) == (400, True)
    assert post(browser, ann, "", {"id": "m-1", "action": "burn"}).status_code == 400


def test_tags_are_added_and_removed(browser: Browser, ann: AgentMemory) -> None:
    done = run(browser, ann, "tag", ["m-1", "m-2"], "drink")
    assert "2 memories tagged" in read(done)
    assert [ann.get(id).tags for id in ("m-1", "m-2")] == [("habit", "drink"), ("drink",)]

    run(browser, ann, "untag", ["m-1"], "habit")

    assert ann.get("m-1").tags == ("drink",)
    for change in ann.changes.list(state="applied"):
        ann.changes.undo(change.id)
    assert [ann.get(id).tags for id in ("m-1", "m-2")] == [("habit",), ()]


def test_memories_are_deleted_and_restored(wellkept: Wellkept, browser: Browser, ann: AgentMemory) -> None:
    wellkept._store.archive_memories(ann.owner, [2], now=wellkept.now())

    assert "1 memory restored" in read(run(browser, ann, "restore", ["m-2"]))
    ann.changes.undo("c-1")
    assert [each.id for each in ann.list(state="archived")] == ["m-2"]
    run(browser, ann, "restore", ["m-2"])
    assert "1 memory deleted" in read(run(browser, ann, "delete", ["m-1"]))

    assert [each.id for each in ann.list()] == ["m-2"]


def test_a_key_without_the_right_approves_nothing(wellkept: Wellkept, ann: AgentMemory) -> None:
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(wellkept.tenant().keys.create("write").key)
        steps = [post(browser, ann, step, {"id": "m-3", "action": "approve"}) for step in ("", "/run")]
        low = Browser(address)
        low.log_in(wellkept.tenant().keys.create("write", trust="tool").key)
        refused = post(low, ann, "/run", {"id": "m-1", "action": "tag", "value": "mine"})
        browser.close()
        low.close()

    assert [each.status_code for each in steps] == [403, 403]
    assert ann.get("m-3").held_at is not None
    assert "Nothing was changed: This key is trusted as tool" in read(refused)
    assert ann.get("m-1").tags == ("habit",)


def test_what_waits_is_approved_and_an_address_elsewhere_is_not_followed(browser: Browser, ann: AgentMemory) -> None:
    preview = post(browser, ann, "", {"id": "m-3", "action": "approve", "back": "https://evil.example/"})
    assert "evil.example" not in preview.text

    post(browser, ann, "/run", hidden(preview))

    assert ann.get("m-3").held_at is None
    ann.changes.undo("c-1")
    assert ann.get("m-3").held_at is not None


def test_times_are_offered_as_filters(browser: Browser, ann: AgentMemory) -> None:
    path = f"/admin/agents/{ann.owner.agent}"

    (week,) = links(browser.get(path), "last 7 days")

    assert re.search(r"where=created_at\+%3E%3D\+20\d\d-\d\d-\d\d$", week)
    narrowed = browser.get(week)
    assert "Tea at four" in narrowed.text
    assert links(narrowed, "last 30 days") == []


def test_filters_are_chips_and_the_page_is_exported(browser: Browser, ann: AgentMemory) -> None:
    path = f"/admin/agents/{ann.owner.agent}"
    both = browser.get(path, where=["metadata.city = 'Oslo'", "importance > 0.5"])
    assert re.findall(r'name="id" value="(m-\d+)"', both.text) == ["m-1"]
    assert f'href="{path}?where=importance+%3E+0.5"' in both.text, "a chip is removed by its link"
    wrong = browser.get(path, where="metadata.city ==")
    assert (wrong.status_code, 'role="alert"' in wrong.text) == (200, True)
    assert browser.get(path, sort="colour").status_code == 400

    ordered = browser.get(path, sort="importance")
    assert re.findall(r'name="id" value="(m-\d+)"', ordered.text) == ["m-3", "m-1", "m-2"]
    exported = browser.get(f"{path}/shown", where="metadata.city = 'Oslo'")

    assert [each["text"] for each in exported.json()] == ["Tea at four"]
    assert "attachment" in exported.headers["Content-Disposition"]


def test_one_search_finds_words_and_meaning(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Enjoys a hot drink made of leaves in the afternoon")

    page = browser.get(f"/admin/agents/{ann.owner.agent}", q="tea")

    assert "Tea at four" in read(page)
    assert "contains the words" in read(page) or "contain the words" in read(page)
    assert ann.get("m-1").last_retrieved_at is None, "looking is not recalling"
