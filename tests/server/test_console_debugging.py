"""The console's two questions: why was this (not) recalled, and what did the agent see at that call."""

from __future__ import annotations

import html
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
    answer = browser.get(f"/admin/agents/{agent.owner.agent}/ask", q=QUESTION, id=id, **query)
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

    assert f"The office opens at nine {100 * hit.relevance:.0f} % relevant" in said
    assert f"Score {hit.score:.3f}" in said
    assert "The prompt that would be sent" in said
    assert f"- ({kept.id}) The office opens at nine" in said
    assert ann.prompts.list() == [], "a preview is not recorded"
    for name, value in hit.parts.items():
        assert f"{name} {hit.weights[name]:g} × {value:.3f}" in said
    assert ann.get(kept.id).last_retrieved_at is None, "looking is not recalling"
    assert "Type a question as a person would ask it" in read(browser.get(f"/admin/agents/{ann.owner.agent}/ask"))
    assert browser.get(f"/admin/agents/{ann.owner.agent}/ask", q="x", limit=0).status_code == 400
    assert browser.get(f"/admin/agents/{ann.owner.agent}/ask", q="x", limit="many").status_code == 422
    assert browser.get(f"/admin/agents/{ann.owner.agent}/ask", q="x", budget="many").status_code == 400


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

    assert "not shown: budget" in why(browser, ann, out[0])
    assert "shown in memories" in why(browser, ann, shown[0])

    listed = browser.get(f"/admin/agents/{ann.owner.agent}/prompts")
    assert f"conversation {made.tokens} of 300" in read(listed)
    assert "shortened by" in read(listed)
    call = read(browser.get(f"/admin/agents/{ann.owner.agent}/prompts/{made.id}"))
    assert f"{made.tokens} of 300 tokens" in call
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

    call = read(browser.get(f"/admin/agents/{ann.owner.agent}/prompts/{made.id}"))

    assert "m-1 memory changed since I am generous" in call
    assert "m-2 memory gone since Its text is deleted" in call
    assert "Nothing was shortened" in call
    assert browser.get(f"/admin/agents/{ann.owner.agent}/prompts/c-0").status_code == 404


def test_calls_are_listed_in_pages_and_by_conversation(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("Invoices are written in euros")
    made = [ann.context("invoices?", session=f"s-{number % 2}").id for number in range(25)]
    path = f"/admin/agents/{ann.owner.agent}/prompts"

    first = browser.get(path)
    (older,) = links(first, "Older")
    second = browser.get(older)

    assert [id for id in made if id in first.text] == made[5:]
    assert [id for id in made if id in second.text] == made[:5]
    assert links(second, "Older") == []
    one = browser.get(path, session="s-1")
    assert [id for id in made if id in one.text] == made[1::2]
    assert "There are no stored prompts for this conversation" in read(browser.get(path, session="s-9"))


def test_prompts_are_listed_by_their_questions_until_those_are_erased(browser: Browser, ann: AgentMemory) -> None:
    path = f"/admin/agents/{ann.owner.agent}/prompts"
    for question in ("Which currency are invoices in?", "And <b>when</b> are they due?"):
        ann.context(question, session="s-money")
        ann.log_turn("s-money", user=question, assistant="I see.")
    ann.context("Never logged", session="s-other")

    listed = browser.get(path)

    for question in ("Which currency are invoices in?", "And <b>when</b> are they due?"):
        (address,) = links(listed, html.escape(question))
        assert html.escape(question) in browser.get(address).text.partition("<h1>")[2].partition("</h1>")[0]
    assert "A question that no conversation has" in read(listed)
    ann.sessions.delete("s-money")
    assert "currency" not in browser.get(path).text


def test_a_weak_answer_says_so_and_shows_the_nearest(browser: Browser, ann: AgentMemory) -> None:
    ann.remember("The office opens at nine")

    said = read(browser.get(f"/admin/agents/{ann.owner.agent}/ask", q="how old is the universe?"))

    assert "Nothing stored seems to answer this." in said
    assert "The office opens at nine weak, " in said


def test_the_playground_asks_as_a_user(browser: Browser, ann: AgentMemory) -> None:
    ann.for_user("kim").remember("Kim keeps bees behind the house")
    path = f"/admin/agents/{ann.owner.agent}/ask"

    as_kim, as_lee = (
        read(browser.get(path, q="which animals are in the garden?", reader=each)) for each in ("kim", "lee")
    )

    assert "bees" in as_kim
    assert "bees" not in as_lee


def test_a_preview_that_has_to_shorten_stores_no_text(ann: AgentMemory) -> None:
    ann.remember_many([{"text": f"Rule {number}: {'be careful ' * 30}", "kind": "core"} for number in range(20)])

    made = ann.prompts.preview("what are the rules?", budget=600)

    assert made.truncations
    assert made.tokens <= 600
    assert (ann.details.list(), ann.prompts.list()) == ([], [])
