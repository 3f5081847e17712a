"""Documents, chat, details and the audit log in a real browser, with the mouse and with the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import Console
from tests.browser.test_console import go_to, photograph
from tests.server.live import serving
from wellkept import Settings, Wellkept
from wellkept.testing.fake_model import ModelServer, calls, says

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def talking(endpoint: ModelServer, tmp_path: Path, chromium: BrowserContext) -> Iterator[tuple[Wellkept, Console]]:
    """A store with a model, and its console."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    settings = Settings(url=url, openai_model="small", openai_base_url=endpoint.url)
    with Wellkept(settings=settings) as store, serving(store, no_auth=False) as address:
        page = chromium.new_page()
        console = Console(address, store.tenant().keys.create("operator").key, page)
        console.watch()
        yield store, console
        page.close()
        chromium.clear_cookies()
    assert console.problems == []


def test_somebody_chats_with_the_keyboard(endpoint: ModelServer, talking: tuple[Wellkept, Console]) -> None:
    store, console = talking
    ann = store.agent("ann")
    ann.remember("Prefers tabs over spaces", tags=["style"])
    ann.remember("The office opens at nine")
    endpoint.script.extend([calls("remember", text="Lives in Oslo"), says("Tabs. And I noted that you live in Oslo.")])
    console.log_in()
    console.open("/admin/agents/ann/sessions")
    photograph(console, "chat-begun")

    go_to(console, "textbox", "Message")
    console.page.keyboard.type("Which indentation do I like? I live in Oslo, by the way.")
    go_to(console, "button", "Send")
    console.page.keyboard.press("Enter")

    console.page.get_by_text("Tabs. And I noted").first.wait_for()
    assert console.page.locator(".is-written a").count()
    assert console.page.locator(".is-used a").count()
    photograph(console, "chat-answered")


def test_a_file_is_uploaded_found_and_deleted(wellkept: Wellkept, console: Console, tmp_path: Path) -> None:
    file = tmp_path / "refunds.md"
    file.write_text("# Refunds\n\nRefunds are paid within 14 days.\n\n# Fees\n\nThe fee is 7 euro.\n")
    console.log_in()
    console.open("/admin/documents")
    page = console.page
    page.get_by_label("Drop files here").set_input_files(file)
    page.get_by_label("Category").fill("policy")
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("added, 2 passages").or_(page.get_by_text("added, 1 passage")).wait_for()

    page.get_by_label("Ask the documents").fill("how long does a refund take?")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="for “how long").wait_for()
    assert page.get_by_text("paid within 14 days").is_visible()
    photograph(console, "documents-searched")
    page.get_by_role("link", name="Refunds").first.click()
    page.get_by_text("Edit or delete").click()
    page.get_by_role("link", name="Delete …").click()
    page.get_by_role("heading", name="Delete this document?").wait_for()
    assert wellkept.tenant().knowledge.browse()
    page.get_by_role("button", name="Delete permanently").click()
    page.wait_for_url("**/documents?category=policy")
    assert not wellkept.tenant().knowledge.browse()


def test_files_are_dropped_on_the_whole_zone(wellkept: Wellkept, console: Console) -> None:
    console.log_in()
    console.open("/admin/documents")
    page = console.page
    dropped = page.evaluate_handle(
        "() => { const data = new DataTransfer();"
        " data.items.add(new File(['# Fees\\n\\nThe fee is 7 euro.'], 'fees.md')); return data; }"
    )
    page.get_by_text("Drop files here").dispatch_event("drop", {"dataTransfer": dropped})
    page.get_by_role("button", name="Upload").click()

    page.get_by_text("added, 1 passage").wait_for()
    assert [each.document.title for each in wellkept.tenant().knowledge.browse()] == ["Fees"]


def test_a_user_is_erased_with_the_mouse(wellkept: Wellkept, console: Console) -> None:
    ann = wellkept.agent("ann")
    ann.for_user("mara").remember("Mara prefers tea at four")
    console.log_in()
    page = console.page
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_role("link", name="mara").click()
    page.get_by_role("button", name="Erase this user").click()
    page.get_by_role("button", name="Erase permanently").click()
    page.get_by_role("heading", name="Receipt").wait_for()
    photograph(console, "erasure-receipt")

    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()

    assert download.value.suggested_filename.startswith("erasure-")
    assert not ann.for_user("mara").list()
