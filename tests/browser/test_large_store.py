"""The console with 100,000 memories: every page opens, stays small, and its main task is done by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.browser.conftest import Console
from tests.browser.test_console import photograph
from wellkept import Settings, Wellkept

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COUNT = 100_000
BATCH = 2_000
MAX_BYTES = 100_000
KINDS = ("note", "episode", "note", "journal", "episode", "note", "core", "episode")
SUBJECTS = ("the night train to Lisbon", "oat milk", "the invoice of March", "the staging cluster", "tabs over spaces")


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that is filled once for all tests of this module."""
    path, now = tmp_path_factory.mktemp("large") / "memory.db", datetime.now(UTC)
    with Wellkept(settings=settings_of(path)) as opened:
        ann = opened.agent("ann")
        for start in range(0, COUNT, BATCH):
            ann.remember_many(
                {
                    "text": f"Entry {number} is about {SUBJECTS[number % len(SUBJECTS)]}, and nothing else",
                    "kind": KINDS[number % len(KINDS)],
                    "tags": [f"tag-{number % 7}"],
                    "user": f"user-{number % 5}" if number % 3 else None,
                    "created_at": now - timedelta(days=80 * (1 - number / COUNT)),
                }
                for number in range(start, start + BATCH)
            )
        ann.context("what about Lisbon?", session="monday")
    return path


def settings_of(path: Path) -> Settings:
    return Settings(url=f"sqlite:///{path}", max_total=COUNT, maintenance_interval=0, episode_quota=COUNT)


@pytest.fixture
def wellkept(large_file: Path) -> Iterator[Wellkept]:
    with Wellkept(settings=settings_of(large_file)) as opened:
        yield opened


def test_every_page_opens_and_stays_small(wellkept: Wellkept, console: Console) -> None:
    (call,) = wellkept.agent("ann").prompts.list()
    console.log_in()
    pages = {
        "home": "/admin",
        "agents": "/admin/agents",
        "memories": "/admin/agents/ann",
        "search": "/admin/agents/ann?q=Lisbon",
        "filtered": "/admin/agents/ann?kind=note&where=user+%3D+%27user-1%27&sort=expires",
        "memory": "/admin/agents/ann/memories/m-99999",
        "prompts": "/admin/agents/ann/prompts",
        "prompt": f"/admin/agents/ann/prompts/{call.id}",
        "ask": "/admin/agents/ann/ask?q=what+about+Lisbon%3F&id=m-1",
        "sessions": "/admin/agents/ann/sessions",
        "changes": "/admin/agents/ann/changes",
        "audit": "/admin/audit",
        "details": "/admin/agents/ann/details",
        "edit": "/admin/agents/ann/edit",
        "delete": "/admin/agents/ann/delete",
        "users": "/admin/users",
        "user": "/admin/user?id=user-1",
        "documents": "/admin/documents",
        "workflows": "/admin/workflows",
        "erasure": "/admin/erasure",
        "maintenance": "/admin/maintenance/preview",
        "settings": "/admin/settings",
        "backup": "/admin/backup",
    }

    for name, address in pages.items():
        answer = console.page.goto(f"{console.address}{address}")
        assert answer is not None
        assert answer.status == 200
        assert len(answer.body()) < MAX_BYTES, name
        photograph(console, f"{name}-large")


def test_a_memory_among_many_is_found_with_the_keyboard(wellkept: Wellkept, console: Console) -> None:
    console.log_in()
    console.open("/admin/agents/ann")
    page, keyboard = console.page, console.page.keyboard

    keyboard.press("/")
    keyboard.type("Entry 4242 is")
    keyboard.press("Enter")
    page.wait_for_url("**q=Entry**")
    keyboard.press("j")
    keyboard.press("e")

    page.wait_for_url("**/memories/m-*")
    assert "Entry 4242 is about" in page.get_by_label("Text").input_value()


def test_a_memory_among_many_is_found_with_the_mouse(wellkept: Wellkept, console: Console) -> None:
    console.log_in()
    page = console.page
    page.get_by_role("main").get_by_role("link", name="ann", exact=True).click()
    page.get_by_label("Search words and meaning").fill("Entry 777 is")
    page.get_by_role("button", name="Search").click()

    page.get_by_role("link", name="Entry 777 is about the invoice of March").click()

    assert "Entry 777 is about" in page.get_by_label("Text").input_value()
