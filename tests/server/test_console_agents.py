"""The console's forms for agents: made, edited and deleted, with what was typed kept when it is refused."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Iterator

import httpx2
import pytest

from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.errors import NotFound

FIELDS = {
    "name": "Ann & Co",
    "system_prompt": "Be brief.\r\nNever <guess>.",
    "model": "small-1",
    "tools": "notes, recall,",
    "knowledge_categories": "policy, hr",
    "colour": "#2f6fdb",
    "icon": "🦉",
    "is_active": "yes",
}


def new_id() -> str:
    return f"ann-{uuid.uuid4().hex[:8]}"


def typed(answer: httpx2.Response) -> dict[str, str]:
    """What the form holds."""
    inputs = re.findall(r'<input name="(\w+)" value="([^"]*)"', answer.text)
    prompt = re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>\n(.*?)</textarea>', answer.text, re.DOTALL)
    return {name: html.unescape(value) for name, value in [*inputs, *prompt]}


@pytest.fixture
def locked(wellkept: Wellkept) -> Iterator[Browser]:
    """A visitor of a server that asks for a key."""
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        yield browser
        browser.close()


@pytest.mark.proves("J5")
def test_an_agent_is_created_edited_and_deleted_with_forms(wellkept: Wellkept, browser: Browser) -> None:
    tenant, id = wellkept.tenant(), new_id()
    (new,) = links(browser.get("/admin"), "New agent")

    made = browser.send(new, id=f" {id} ", **FIELDS)

    assert made.status_code == 200
    agent = tenant.agents.get(id)
    assert (agent.name, agent.model, agent.colour, agent.icon) == ("Ann & Co", "small-1", "#2f6fdb", "🦉")
    assert agent.system_prompt == "Be brief.\nNever <guess>."
    assert (agent.tools, agent.knowledge_categories, agent.is_active) == (("notes", "recall"), ("policy", "hr"), True)
    assert 'fill="#2f6fdb"' in made.text

    (settings,) = links(made, "Settings")
    form = typed(browser.get(settings))
    assert form == {
        **{name: value for name, value in FIELDS.items() if name not in ("tools", "is_active")},
        "system_prompt": "Be brief.\nNever <guess>.",
        "tools": "notes, recall",
    }
    browser.send(settings, **form | {"name": "Ann", "tools": "", "model": ""})
    agent = tenant.agents.get(id)
    assert (agent.name, agent.tools, agent.model, agent.is_active) == ("Ann", (), "", False)
    assert (agent.system_prompt, agent.colour) == ("Be brief.\nNever <guess>.", "#2f6fdb")

    (delete,) = links(browser.get(settings), "Delete")
    wellkept.agent(id).remember("Tea at four")
    assert "Its 1 memory, conversations" in read(browser.get(delete))
    unsure = browser.send(delete, confirmed="yes")
    assert (unsure.status_code, f"Type {id} to confirm." in read(unsure)) == (400, True)
    assert tenant.agents.get(id).name == "Ann"
    assert str(browser.send(delete, confirmed=id).url) == f"{browser.address}/admin"
    with pytest.raises(NotFound):
        tenant.agents.get(id)


def test_a_new_agent_is_named_like_its_id_unless_it_gets_a_name(wellkept: Wellkept, browser: Browser) -> None:
    id = new_id()
    browser.send("/admin/new-agent", id=id, is_active="yes")

    assert wellkept.tenant().agents.get(id).name == id


def test_a_refused_form_says_why_and_keeps_what_was_typed(wellkept: Wellkept, browser: Browser) -> None:
    id = new_id()
    wellkept.tenant().agents.add(id, name="Old")

    taken = browser.send("/admin/new-agent", id=id, **FIELDS)
    odd = browser.send("/admin/new-agent", id="a b", **FIELDS)
    blank = browser.send(f"/admin/agents/{id}/edit", **FIELDS | {"name": " "})
    secret = browser.send(f"/admin/agents/{id}/edit", **FIELDS | {"system_prompt": "Use AKIAQ3EGRIXYZ4NP7W2M"})

    for answer in (taken, odd, blank, secret):
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
        assert typed(answer)["model"] == "small-1"
        assert typed(answer)["tools"] == "notes, recall,"
    assert typed(odd)["id"] == "a b"
    assert "name cannot be blank" in read(blank)
    assert wellkept.tenant().agents.get(id).name == "Old"
    assert browser.get("/admin/agents/nobody/edit").status_code == 404
    assert browser.send("/admin/agents/nobody/edit", **FIELDS).status_code == 404
    assert browser.send("/admin/agents/nobody/delete", confirmed="nobody").status_code == 404


def test_what_people_write_as_a_colour_stays_text(wellkept: Wellkept, browser: Browser) -> None:
    id = new_id()
    wellkept.tenant().agents.add(id, colour='url("https://evil.example/x")')

    assert "fill=" not in browser.get(f"/admin/agents/{id}").text.partition("<main>")[2].partition("<nav")[0]
    assert typed(browser.get(f"/admin/agents/{id}/edit"))["colour"] == 'url("https://evil.example/x")'


def test_forms_are_shown_to_keys_that_may_use_them(wellkept: Wellkept, locked: Browser) -> None:
    tenant, id = wellkept.tenant(), new_id()
    tenant.agents.add(id, name="Ann")
    home = f"/admin/agents/{id}"

    locked.log_in(tenant.keys.create("read").key)
    assert links(locked.get("/admin"), "New agent") == links(locked.get(home), "Settings") == []
    assert locked.get(f"{home}/edit").status_code == locked.send(f"{home}/edit", name="x").status_code == 403

    locked.send("/admin/logout")
    locked.log_in(tenant.keys.create("write").key)
    assert links(locked.get(f"{home}/edit"), "Delete") == []
    assert locked.send(f"{home}/delete", confirmed=id).status_code == 403

    # A key of low trust changes how an agent looks, never its prompt.
    locked.send("/admin/logout")
    locked.log_in(tenant.keys.create("write", trust="tool").key)
    shown = typed(locked.get(f"{home}/edit")) | {"is_active": "yes"}
    assert locked.send(f"{home}/edit", **shown | {"colour": "teal"}).status_code == 200
    refused = locked.send(f"{home}/edit", **shown | {"system_prompt": "Obey."})
    assert (refused.status_code, typed(refused)["system_prompt"]) == (400, "Obey.")
    assert (tenant.agents.get(id).colour, tenant.agents.get(id).system_prompt) == ("teal", "")
