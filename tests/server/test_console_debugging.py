"""The console's two questions: why was this (not) recalled, and what did the agent see at that call."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from wellkept.api.wellkept import AgentMemory, Wellkept

QUESTION = "when is the office open?"


@pytest.fixture
def ann(wellkept: Wellkept) -> AgentMemory:
    return wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")


def why(browser: Browser, agent: AgentMemory, id: str, **query: object) -> str:
    answer = browser.get(f"/admin/agents/{agent.owner.agent}/why", q=QUESTION, id=id, **query)
    assert answer.status_code == 200
    return read(answer)


@pytest.mark.proves("E13")
def test_the_page_says_why_something_is_or_is_not_recalled(
    wellkept: Wellkept, browser: Browser, ann: AgentMemory, clock: MovableClock
) -> None:
    clock.ahead = timedelta(days=-8)
    ann.remember("The office opens at nine", kind="journal")  # m-1
    clock.ahead = timedelta()
    ann.remember("The office opens at ten")  # m-2
    ann.remember("The office opens at eleven", supersedes="m-2")  # m-3
    ann.remember("The office opens at midnight", kind="core", origin="tool")  # m-4
    clock.ahead = timedelta(days=-400)
    ann.remember("The office opened at one", kind="episode", category="routine")  # m-5
    clock.ahead = timedelta()
    wellkept.maintain()
    for number in range(12):
        ann.remember(f"The office is open in week {number}", kind="episode")
    tea = wellkept.tenant().audit.record("kitchen.tea", "Tea")

    (best,) = ann.explain(QUESTION, "", limit=1, sources=["memory"]).hits
    assert f"{best.id} : Recalled It is recalled, as number" in why(browser, ann, best.id)
    out_ranked = why(browser, ann, "m-3", limit=1)
    assert "m-3 : Out-ranked It is number" in out_ranked
    assert f"Shown instead: {best.id} , {best.score:.3f}" in out_ranked
    assert "m-1 : Expired It has expired" in why(browser, ann, "m-1")
    assert "m-2 : Corrected It was corrected" in why(browser, ann, "m-2")
    assert "m-4 : Held for review It is held for review" in why(browser, ann, "m-4")
    assert "m-5 : Archived It was archived" in why(browser, ann, "m-5")
    assert f"a-{tea.id} : No match It shares no word" in why(browser, ann, f"a-{tea.id}")
    assert "m-99 : Not found There is nothing of this id" in why(browser, ann, "m-99")


def test_the_page_shows_what_the_question_recalls_with_the_parts_of_each_score(
    browser: Browser, ann: AgentMemory
) -> None:
    kept = ann.remember("The office opens at nine")
    (hit,) = ann.explain(QUESTION, "", sources=["memory"]).hits

    said = why(browser, ann, "")

    assert f"{hit.score:.3f} {kept.id} memory" in said
    for name, value in hit.parts.items():
        assert f"{name} {hit.weights[name]:g} × {value:.3f}" in said
    assert ann.get(kept.id).last_retrieved_at is None, "looking is not recalling"
    assert "Enter the question to the agent" in read(browser.get(f"/admin/agents/{ann.owner.agent}/why"))
    assert browser.get(f"/admin/agents/{ann.owner.agent}/why", q="x", limit=0).status_code == 400
    assert browser.get(f"/admin/agents/{ann.owner.agent}/why", q="x", limit="many").status_code == 422


@pytest.mark.proves("E13")
def test_what_found_no_room_in_a_prompt_says_budget_on_both_pages(browser: Browser, ann: AgentMemory) -> None:
    for number in range(5):
        ann.remember(f"The office is open in week {number} of the {'very ' * 40}long year", kind="episode")
    made = ann.context(QUESTION, session="s-1", budget=300)
    (dropped,) = [block for block in made.blocks if block.name == "memories"]
    out = [item.id for item in dropped.items if item.left_out == "budget"]
    shown = [item.id for item in dropped.items if not item.left_out]
    assert out
    assert shown

    assert "memories no: budget" in why(browser, ann, out[0])
    assert "s-1 memories yes" in why(browser, ann, shown[0])

    listed = browser.get(f"/admin/agents/{ann.owner.agent}/seen")
    assert f"{made.id} s-1 {made.tokens} of 300 standard by" in read(listed)
    call = read(browser.get(f"/admin/agents/{ann.owner.agent}/seen/{made.id}"))
    assert f"{made.tokens} of 300 tokens, layout standard" in call
    assert "not shown: budget" in call
    assert "The office is open in week" in call
    assert "Truncation" in call


@pytest.mark.proves("E13")
def test_the_page_shows_what_the_agent_saw_and_what_happened_since(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("I am careful with money", kind="core")
    ann.remember("Invoices are written in euros")
    made = ann.context("invoices?", session="s-2", system_prompt="You keep the accounts.")
    ann.update("m-1", text="I am generous")
    ann.forget("m-2")

    call = read(browser.get(f"/admin/agents/{ann.owner.agent}/seen/{made.id}"))

    assert "m-1 memory changed since I am generous" in call
    assert "m-2 memory gone since Its text is deleted" in call
    assert "Nothing was shortened" in call
    assert browser.get(f"/admin/agents/{ann.owner.agent}/seen/c-0").status_code == 404


def test_calls_are_listed_in_pages_and_by_conversation(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Invoices are written in euros")
    made = [ann.context("invoices?", session=f"s-{number % 2}").id for number in range(25)]
    path = f"/admin/agents/{ann.owner.agent}/seen"

    first = browser.get(path)
    (older,) = links(first, "Older")
    second = browser.get(older)

    assert [id for id in made if id in first.text] == made[5:]
    assert [id for id in made if id in second.text] == made[:5]
    assert links(second, "Older") == []
    one = browser.get(path, session="s-1")
    assert [id for id in made if id in one.text] == made[1::2]
    assert "There are no stored prompts for this conversation" in read(browser.get(path, session="s-9"))
