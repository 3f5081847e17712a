"""The console's pages for what happened: conversations, chat, details, workflows and the audit log."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.server.console.pages import PAGE_BYTES
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, calls, says, status

MAX_PAGE_BYTES = 100_000
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def agent() -> str:
    return f"ann-{uuid.uuid4().hex[:8]}"


def test_a_turn_leads_to_its_prompt_and_its_memories(
    wellkept: Wellkept, browser: Browser, clock: MovableClock, agent: str
) -> None:
    ann, session = wellkept.agent(agent), f"s-{agent}"
    used = ann.remember("The office opens at nine", tags=["office"]).id
    for question in ("When does the office open?", "And who opens the office?"):
        ann.context(question, session=session)
        clock.ahead += timedelta(minutes=1)
        ann.log_turn(session, user=question, assistant=f"At nine {SCRIPT}", remember=True)
        clock.ahead += timedelta(minutes=10)
    first, second = reversed(ann.prompts.list(session_id=session))

    shown = browser.get(f"/admin/agents/{agent}/sessions/{session}")

    before, _, after = shown.text.partition('id="turn-4"')
    assert f"/prompts/{first.id}" in before
    assert f"/prompts/{second.id}" not in before
    assert f"/prompts/{second.id}" in after
    assert f'<a href="/admin/agents/{agent}/memories/{used}">The office opens at nine</a>' in before
    assert "is-written" in before
    assert "is-written" in after
    assert SCRIPT not in shown.text
    # The second page assigns the prompt of its first answer, too.
    second_page = browser.get(f"/admin/agents/{agent}/sessions/{session}", after=2)
    assert f"/prompts/{second.id}" in second_page.text
    assert f"/prompts/{first.id}" not in second_page.text


def test_a_long_conversation_is_paged_and_small(wellkept: Wellkept, browser: Browser, agent: str) -> None:
    ann = wellkept.agent(agent)
    for number in range(8):
        ann.log_turn(f"s-{agent}", user=f"question {number}", assistant=f"answer {number} " + "<&> word " * 2_000)

    address, positions = f"/admin/agents/{agent}/sessions/s-{agent}", 0
    while address:
        shown = browser.get(address)
        assert len(shown.content) < MAX_PAGE_BYTES
        positions += shown.text.count('<li class="turn ')
        address = next(iter(links(shown, "Next page")), "")
    assert positions == 16
    assert PAGE_BYTES < MAX_PAGE_BYTES


def test_the_place_where_a_summary_ends_is_shown() -> None:
    with ModelServer() as endpoint:
        endpoint.usual = says("They talked about tea.")
        settings = Settings(
            openai_model="small",
            openai_base_url=endpoint.url,
            summary_enabled=True,
            summary_threshold=4,
            summary_keep_last=2,
        )
        with Wellkept(":memory:", settings=settings) as store, serving(store) as address:
            browser, ann = Browser(address), store.agent("ann")
            for number in range(5):
                ann.log_turn("s-1", user=f"question {number}", assistant=f"answer {number}")
            ann.sessions.conversation("s-1")
            count = ann.sessions.get("s-1").summarized_count
            assert count

            said = read(browser.get("/admin/agents/ann/sessions/s-1"))

            assert f"Summary of the first {count} messages They talked about tea." in said
            assert "The summary ends here" in said
            browser.close()


def test_somebody_chats_with_an_agent_and_sees_its_memory() -> None:
    with ModelServer() as endpoint:
        settings = Settings(openai_model="small", openai_base_url=endpoint.url)
        with Wellkept(":memory:", settings=settings) as store, serving(store, no_auth=False) as address:
            browser, ann, tenant = Browser(address), store.agent("ann"), store.tenant()
            note = ann.remember("Likes tabs over spaces").id
            browser.log_in(tenant.keys.create("write").key)
            endpoint.script.extend([calls("remember", text="Works in Oslo"), says("Tabs & Oslo.")])
            assert "Send" in read(browser.get("/admin/agents/ann/sessions"))

            answer = browser.send("/admin/agents/ann/sessions", prompt="Which indentation do I like?\r\nI am in Oslo.")

            assert answer.status_code == 200
            said = read(answer)
            assert "Tabs & Oslo." in said
            assert "Which indentation do I like? I am in Oslo." in said
            written = {each.id for each in ann.list(query="Oslo", state="all")}
            assert len(written) == 4
            beside = answer.text.partition('class="beside is-written"')[2]
            assert all(f"/memories/{id}" in beside for id in written)
            assert f"/memories/{note}" in answer.text
            assert "is-used" in answer.text
            assert "is-written" in answer.text
            (session,) = ann.sessions.list()
            endpoint.script.append(says("Still tabs."))
            again = browser.send(f"/admin/agents/ann/sessions/{session.id}", prompt="Still?")
            assert "Still tabs." in read(again)
            assert ann.sessions.get(session.id).message_count == 4

            endpoint.usual = status(500)
            failed = browser.send(f"/admin/agents/ann/sessions/{session.id}", prompt="What about <b>tea</b>?")
            assert failed.status_code == 400
            assert 'role="alert"' in failed.text
            assert "What about &lt;b&gt;tea&lt;/b&gt;?" in failed.text
            browser.send("/admin/logout")
            browser.log_in(tenant.keys.create("read").key)
            assert "Send" not in read(browser.get("/admin/agents/ann/sessions"))
            assert browser.send("/admin/agents/ann/sessions", prompt="Hi").status_code == 403
            browser.close()


def test_details_are_listed_read_searched_hidden_and_downloaded(
    wellkept: Wellkept, browser: Browser, agent: str
) -> None:
    ann = wellkept.agent(agent)
    text = "\n".join(f"line {number} {'needle' if number == 777 else SCRIPT}" for number in range(3_000))
    key = ann.details.store(text, description=f"Log {SCRIPT}", session_id="s-1").key
    other = ann.details.store("short", description="Other")

    listed = browser.get(f"/admin/agents/{agent}/details")
    assert SCRIPT not in listed.text
    assert links(listed, "Other") == [f"/admin/agents/{agent}/details/{other.key}"]
    assert "Other" not in read(browser.get(f"/admin/agents/{agent}/details", q="log"))
    address, pages = f"/admin/agents/{agent}/details/{key}", 0
    at: str = address
    while at:
        shown = browser.get(at)
        assert len(shown.content) < MAX_PAGE_BYTES
        assert SCRIPT not in shown.text
        pages, at = pages + 1, next(iter(links(shown, "Next part")), "")
    assert pages > 3
    assert "line 2999" in shown.text
    found = read(browser.get(address, grep="NEEDLE"))
    assert "1 match" in found
    assert "line 777 needle" in found
    assert browser.get(address, grep="/(/").status_code == 400
    whole = browser.get(f"{address}/text")
    assert whole.text == text
    assert whole.headers["Content-Disposition"] == f'attachment; filename="{key}.txt"'

    hidden = browser.send(f"{address}/hide", hidden="yes")
    assert "It is hidden" in read(hidden)
    assert not ann.details.get(key).is_active
    assert "line 0" in browser.send(f"{address}/hide", hidden="").text
    assert "Delete this detail?" in read(browser.get(f"{address}/delete"))
    assert ann.details.get(key).is_active, "asking deletes nothing"
    browser.send(f"{address}/delete")
    assert browser.get(address).status_code == 404
    assert browser.get(f"/admin/agents/{agent}/details", at="x", id="y").status_code == 400


def test_workflows_show_their_steps(wellkept: Wellkept, browser: Browser, agent: str) -> None:
    tenant = wellkept.tenant()
    wellkept.agent(agent).remember("x")
    workflow = tenant.workflows.create(f"Release {agent} {SCRIPT}")
    for number in range(9):
        tenant.workflows.record(workflow=workflow.id, step=f"step {number}", output="<&> " * 2_500, agent=agent)

    assert f"Release {agent}" in read(browser.get("/admin/workflows"))
    address, steps = f"/admin/workflows/{workflow.id}", 0
    while address:
        shown = browser.get(address)
        assert len(shown.content) < MAX_PAGE_BYTES
        assert SCRIPT not in shown.text
        steps += read(shown).count("completed")
        address = next(iter(links(shown, "Next page")), "")
    assert steps == 9
    assert browser.get("/admin/workflows/nothing").status_code == 404


def test_the_audit_log_is_filtered_and_its_ids_are_links(
    wellkept: Wellkept, browser: Browser, clock: MovableClock, agent: str
) -> None:
    tenant = wellkept.tenant()
    memory = wellkept.agent(agent).remember("Tea at four")
    tenant.audit.record("tea.made", f"Tea {SCRIPT} for {memory.id}", agent=agent)
    tenant.audit.record("tea.made", "Tea for nobody")
    tomorrow = f"{wellkept.now() + timedelta(days=1):%Y-%m-%d}"

    both = browser.get("/admin/audit", action="tea.made")
    one = browser.get("/admin/audit", action="tea.made", agent=agent)
    assert (read(both).count("tea.made"), read(one).count("tea.made")) == (2, 1)
    assert f'href="/admin/agents/{agent}/memories/{memory.id}">{memory.id}</a>' in one.text
    assert SCRIPT not in one.text
    assert links(one, agent) == [f"/admin/agents/{agent}"]
    assert "No events match." in read(browser.get("/admin/audit", agent=agent, since=tomorrow))
    assert read(browser.get("/admin/audit", agent=agent, until=tomorrow)).count("tea.made") == 1
    wrong = browser.get("/admin/audit", since="yesterday")
    assert (wrong.status_code, "A day is written like" in read(wrong)) == (400, True)
    assert f"event {tenant.audit.head().id:,}" in read(browser.get("/admin/audit"))


def test_events_are_filtered_by_the_key_that_caused_them(wellkept: Wellkept, agent: str) -> None:
    tenant = wellkept.tenant()
    with serving(wellkept, no_auth=False) as address:
        browser, key = Browser(address), tenant.keys.create("admin")
        browser.log_in(key.key)
        browser.send("/admin/new-agent", id=agent, is_active="yes")

        shown = browser.get("/admin/audit", actor=key.record.id)

        assert "agent.add" in read(shown)
        assert read(shown).count(f"Agent {agent} was made.") == 1
        browser.close()
