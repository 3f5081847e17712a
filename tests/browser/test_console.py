"""The console in a real browser: every page, editing and deleting with the mouse and with the keyboard alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest

from tests.browser.conftest import Console
from tests.server.routes import CONSOLE
from wellkept import Wellkept
from wellkept.errors import NotFound

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SIZES = ((1440, 900), (1024, 768), (390, 844))
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
NO_PAGES = {
    "/admin/static/{name}",
    "/admin/export",
    "/admin/audit/verify",
    "/admin/open/{code}",
    "/admin/login",
    "/admin/agents/{agent}/shown",
    "/admin/agents/{agent}/details/{id}/text",
    "/admin/backup/file",
    "/admin/user",
}
PATHS = [path for method, _, path in (route.partition(" ") for route in CONSOLE) if method == "GET"]
PAGES = [path for path in PATHS if path not in NO_PAGES]
MAX_TABS = 80
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "</textarea></p><svg onload=alert(3)>",
    "\"><a href='javascript:alert(4)'>click</a>",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;b&gt; &amp; <b>bold</b>",
    "<style>body { display: none }</style>",
    "<meta http-equiv=refresh content='0; url=https://evil.example/'>",
    "\u202egnp.exe\u202c <!-- -->",
]


def fill(wellkept: Wellkept) -> dict[str, str]:
    """Write something for every page; returns the id each path with an id shows."""
    tenant, ann = wellkept.tenant(), wellkept.agent("ann")
    ann.remember("I am careful with money", kind="core")
    ann.remember("Prefers tabs over spaces", tags=["preference", "style"])
    ann.remember("Deployed version 2.4.\nAll green.", kind="journal")
    ann.remember("The build server in 東京 broke again, and nobody knew why for a whole day", kind="episode")
    ann.remember("The user is king", kind="core", origin="tool")
    ann.remember("Prefers tabs over spaces!", supersedes="m-2")
    for number in range(2):
        ann.remember(f"The office on Baker Street opens at nine o'clock in the morning{'!' * number}")
    ann.changes.consolidate()
    ann.log_turn("monday", user="When does the office open?", assistant="At nine.")
    ann.context("which indentation?", session="monday")
    ann.log_turn("monday", user="which indentation?", assistant="Tabs, as you told me.", remember=True)
    (call,) = ann.prompts.list()
    tenant.knowledge.ingest_text("The office is closed on Friday.", title="Whiteboard: Friday", category="whiteboard")
    document = tenant.knowledge.ingest_text(
        "Refunds take 14 days.", title="Refund policy", category="policy"
    ).documents[0]
    detail = ann.details.store(
        "\n".join(f"line {number} of the log" for number in range(400)), description="npm install"
    )
    workflow = tenant.workflows.create("Release 2.4")
    for step, status in (("build", "completed"), ("test", "failed"), ("ship", "completed")):
        tenant.workflows.record(
            workflow=workflow.id, step=step, output=f"The output of {step}", agent="ann", status=status
        )
    ann.for_user("mara").remember("Mara prefers tea at four")
    ids = {"details": detail.key, "workflows": workflow.id}
    return {"memories": "m-1", "sessions": "monday", "prompts": call.id, "documents": document.document.id, **ids}


def address_of(path: str, ids: dict[str, str]) -> str:
    of = re.search(r"/(\w+)/\{id\}", path)
    return path.replace("{agent}", "ann").replace("{id}", ids[of[1]] if of else "")


def photograph(console: Console, name: str) -> None:
    """Save the page in every size, light and dark; it must never be wider than the window."""
    for width, height in SIZES:
        console.page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            console.page.emulate_media(color_scheme=scheme)
            folder = SCREENSHOTS / f"{scheme}-{width}x{height}"
            console.page.screenshot(path=folder / f"{name}.png", full_page=True)
        wide = console.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (name, width, wide)


def name_of(path: str) -> str:
    return re.sub(r"\W+", "-", path.removeprefix("/admin")).strip("-") or "overview"


@pytest.mark.parametrize("has_memories", [False, True], ids=["empty", "filled"])
def test_every_page_opens(wellkept: Wellkept, console: Console, has_memories: bool) -> None:
    wellkept.tenant().agents.add("ann")
    ids = fill(wellkept) if has_memories else {}
    state = "filled" if has_memories else "empty"
    console.open("/admin/login")
    photograph(console, f"login-{state}")
    console.log_in()
    opened = [path for path in PAGES if has_memories or "{id}" not in path]

    for path in opened:
        console.open(address_of(path, ids))
        assert console.page.locator("h1").count() == 1
        photograph(console, f"{name_of(path)}-{state}")
    if has_memories:
        console.open("/admin/user?id=mara")
        photograph(console, "user-filled")
        console.page.get_by_role("button", name="Erase this user").click()
        console.page.get_by_role("button", name="Erase permanently").wait_for()
        photograph(console, "erasure-previewed")
    console.open("/admin/agents/ann/ask?q=which+indentation%3F&id=m-6" if has_memories else "/docs")

    photograph(console, "ask-answered" if has_memories else "reference")
    assert len(opened) > 8


def test_a_wrong_key_is_refused_and_the_right_one_opens_the_page_wanted(console: Console) -> None:
    console.open("/admin/audit")
    assert console.page.url == f"{console.address}/admin/login?next=%2Fadmin%2Faudit"
    console.page.get_by_label("Key").fill("wellkept_nonsense")
    console.page.get_by_role("button", name="Log in").click()
    assert console.page.get_by_role("alert").is_visible()
    refused = [problem for problem in console.problems if "401" in problem]
    assert len(refused) == len(console.problems)
    console.problems.clear()

    console.page.get_by_label("Key").fill(console.key)
    console.page.get_by_role("button", name="Log in").click()

    console.page.wait_for_url(f"{console.address}/admin/audit")
    assert console.page.get_by_role("heading", level=1).inner_text() == "Audit log"


def test_a_memory_is_edited_and_deleted_with_the_mouse(wellkept: Wellkept, console: Console) -> None:
    ann = wellkept.agent("ann")
    ann.remember("Tea at four")
    console.log_in()
    page = console.page
    page.get_by_role("main").get_by_role("link", name="ann").click()

    page.get_by_role("link", name="Tea at four").click()
    page.get_by_label("Text").fill("Tea at five")
    page.get_by_label("Tags").fill("habit, drinks")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="History").wait_for()
    memory = ann.get("m-1")
    assert (memory.text, set(memory.tags), memory.version) == ("Tea at five", {"habit", "drinks"}, 2)

    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("ann has no memories yet.").wait_for()
    with pytest.raises(NotFound):
        ann.get("m-1")


def go_to(console: Console, role: Literal["link", "button", "textbox"], name: str) -> None:
    """Press Tab until this is what the keyboard speaks to, and everybody sees that it is."""
    wanted = console.page.get_by_role(role, name=name, exact=True)
    for _ in range(MAX_TABS):
        console.page.keyboard.press("Tab")
        if wanted.evaluate("each => each === document.activeElement"):
            assert wanted.evaluate("each => getComputedStyle(each).outlineStyle") != "none", f"{name} shows no focus"
            return
    raise AssertionError(f"Tab never gets to {name}")


def test_a_memory_is_edited_and_deleted_with_the_keyboard(wellkept: Wellkept, console: Console) -> None:
    ann = wellkept.agent("ann")
    ann.remember("Tea at four")
    console.log_in()
    page, keyboard = console.page, console.page.keyboard
    go_to(console, "link", "ann")
    keyboard.press("Enter")
    page.wait_for_url("**/agents/ann")

    keyboard.press("j")
    keyboard.press("e")
    page.wait_for_url("**/memories/m-1")
    go_to(console, "textbox", "Text")
    keyboard.press("Control+A")
    keyboard.type("Tea at five")
    go_to(console, "button", "Save")
    keyboard.press("Enter")
    page.get_by_role("heading", name="History").wait_for()
    assert ann.get("m-1").text == "Tea at five"

    go_to(console, "link", "Delete")
    keyboard.press("Enter")
    page.wait_for_url("**/delete")
    go_to(console, "button", "Delete")
    keyboard.press("Enter")
    page.get_by_text("ann has no memories yet.").wait_for()
    with pytest.raises(NotFound):
        ann.get("m-1")


def test_the_first_tab_leads_past_the_menu(wellkept: Wellkept, console: Console) -> None:
    wellkept.agent("ann").remember("Tea at four")
    console.log_in()
    console.open("/admin/agents/ann")

    console.page.keyboard.press("Tab")
    console.page.keyboard.press("Enter")
    console.page.keyboard.press("Tab")

    assert console.page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_hostile_text_is_shown_as_text_on_every_page(wellkept: Wellkept, console: Console) -> None:
    ann, tenant = wellkept.agent("ann"), wellkept.tenant()
    ids = fill(wellkept)
    for text in HOSTILE:
        ann.remember(text, tags=[text[:60]] if text.isprintable() else ())
        tenant.knowledge.ingest_text(text, title=f"Whiteboard: {text}", category="whiteboard")
        tenant.knowledge.ingest_text(text, title=f"Of {text}", category="policy")
    tenant.agents.update("ann", name=HOSTILE[0])
    ann.update("m-1", text="\n".join(HOSTILE))
    ann.log_turn("monday", user="\n".join(HOSTILE), assistant="\n".join(HOSTILE))
    console.log_in()

    for path in PAGES:
        console.open(address_of(path, ids))
        assert console.page.locator("body script, style, meta[http-equiv], main img, [onload], [onerror]").count() == 0
        assert console.page.locator("script").count() == 1
        assert console.page.locator("a[href^='javascript:']").count() == 0
        assert console.page.locator("main").is_visible()
    console.open("/admin/agents/ann")
    seen = console.page.locator(".text-cell a").all_inner_texts()
    assert {" ".join(text.split()) for text in HOSTILE} <= {" ".join(text.split()) for text in seen}
    console.open("/admin/agents/ann/memories/m-1")
    assert console.page.get_by_label("Text").input_value() == "\n".join(HOSTILE)
    assert HOSTILE[0] in console.page.get_by_label("Breadcrumb").inner_text()
    console.open("/admin/agents/ann/sessions/monday")
    assert console.page.locator(".turn .text").all_inner_texts()[-2:] == ["\n".join(HOSTILE)] * 2
    photograph(console, "hostile")
