"""Memories in a real browser: found, selected and changed, by mouse and keyboard."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Console
from wellkept import Wellkept
from wellkept.api.agent import AgentMemory

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def ann(wellkept: Wellkept) -> AgentMemory:
    ann = wellkept.agent("ann")
    ann.remember("Tea at four", tags=["habit"])
    ann.remember("Coffee at nine", importance=0.9)
    ann.remember("Milk in the fridge", importance=0.1)
    return ann


def test_twenty_memories_fit_a_screen(wellkept: Wellkept, console: Console) -> None:
    wellkept.agent("ann").remember_many([{"text": f"Entry {each}", "kind": "episode"} for each in range(60)])
    console.page.set_viewport_size({"width": 1440, "height": 900})
    console.log_in()
    console.open("/admin/agents/ann")

    ends = console.page.locator(".memory-row").evaluate_all("all => all.map(row => row.getBoundingClientRect().bottom)")

    assert sum(end <= 900 for end in ends) >= 20


def test_keys_move_select_search_and_help(console: Console, ann: AgentMemory) -> None:
    console.log_in()
    console.open("/admin/agents/ann")
    page, keyboard = console.page, console.page.keyboard

    keyboard.press("j")
    keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "Coffee at nine"
    keyboard.press("x")
    keyboard.press("k")
    keyboard.press("x")
    assert page.locator("#selected").inner_text() == "2 selected"
    keyboard.press("?")
    assert page.get_by_text("next, previous").is_visible()
    keyboard.press("/")
    keyboard.type("jkx tea")
    assert page.get_by_label("Search words and meaning").input_value() == "jkx tea"
    assert page.locator("#selected").inner_text() == "2 selected", "keys are letters in a field"
    keyboard.press("Control+A")
    keyboard.type("tea")
    keyboard.press("Enter")

    page.wait_for_url("**q=tea**")
    assert page.locator(".memory-row").first.locator(".text-cell").inner_text() == "Tea at four"


def test_selected_memories_are_deleted(console: Console, ann: AgentMemory) -> None:
    console.log_in()
    console.open("/admin/agents/ann")
    page = console.page

    page.get_by_label("Select m-1").check()
    page.get_by_label("Select m-2").check()
    page.get_by_label("With the selected").select_option("delete")
    page.get_by_role("button", name="Preview").click()
    assert page.get_by_text("nothing has changed yet").is_visible()
    page.get_by_role("button", name="Delete: 2 memories").click()
    page.get_by_role("heading", name="2 memories deleted").wait_for()
    assert [each.text for each in ann.list()] == ["Milk in the fridge"]


def test_filters_are_added_and_removed_as_chips(console: Console, ann: AgentMemory) -> None:
    console.log_in()
    console.open("/admin/agents/ann")
    page = console.page

    page.get_by_text("Filter and sort").click()
    page.get_by_role("link", name="tag habit").click()
    page.locator(".memory-row").nth(0).wait_for()
    assert page.locator(".memory-row").count() == 1
    page.get_by_role("link", name="tags = 'habit' remove").click()

    page.locator(".memory-row").nth(2).wait_for()
