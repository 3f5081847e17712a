"""The REST reference in a real browser: searched and tried out under its own policy, without the network."""

from __future__ import annotations

import json

import pytest

from tests.browser.conftest import Console
from wellkept import Wellkept

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_route_is_searched_and_tried_out(wellkept: Wellkept, console: Console) -> None:
    wellkept.agent("atlas").remember("Prefers two spaces", kind="note")
    page = console.page
    console.open("/docs")
    page.get_by_text("Authentication", exact=True).first.wait_for()
    page.get_by_placeholder("Filter").fill("explain")
    page.get_by_text("Explain", exact=True).first.wait_for()
    page.get_by_placeholder("Filter").fill("")
    page.get_by_text("Authentication", exact=True).first.click()
    page.get_by_placeholder("api-token").fill(console.key)
    page.get_by_role("button", name="Set").click()
    # The headings of the list may cover it.
    page.get_by_text("Recall", exact=True).first.dispatch_event("click")
    page.get_by_text("Scope of the key:").first.wait_for()
    page.get_by_placeholder("atlas").first.fill("atlas")
    with page.expect_response("**/api/agents/atlas/recall") as caught:
        page.get_by_role("button", name="Execute").first.click()
    answer = caught.value

    assert answer.status == 200
    assert json.loads(answer.request.post_data or "")["query"] == "two spaces or tabs?", "the example"
    assert answer.json()["hits"][0]["text"] == "Prefers two spaces"
    assert console.problems == []


def test_the_first_page_leads_to_the_first_routes(console: Console) -> None:
    console.open("/docs")
    console.page.locator('a[href*="route=post-/api/agents/-agent-/recall"]').last.click()

    console.page.get_by_text("Recall what matches a question best").first.wait_for()
    assert console.problems == []


def test_without_the_script_the_page_leads_to_the_document(console: Console) -> None:
    console.page.route("**/docs/viewer.js", lambda route: route.abort())
    console.open("/docs")

    assert "/openapi.json" in (console.page.locator("noscript").text_content() or "")
    console.problems.clear()
