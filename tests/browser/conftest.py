"""A real Chromium, a server for it, and a page that fails its test when anything goes wrong in the browser."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Error, Page, Request, Response, sync_playwright

from tests.server.live import serving
from wellkept import Settings, Wellkept

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync""".split()
AXE = "axe-core@4.11"
SKILL = "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A missing browser is an error, never a skip."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise RuntimeError("no Chromium found; run: make browser")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=program, args=OPTIONS
        )
        yield context
        context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, a checker of accessibility that npm fetches for these tests alone."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, so axe-core cannot be fetched; run: apt-get install npm")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-save", "--prefix", str(folder), AXE]
    subprocess.run(command, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@dataclass
class Console:
    """The console of one server, and the only tab of the browser that looks at it."""

    address: str
    key: str
    page: Page
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        answer = self.page.goto(f"{self.address}{path}")
        assert answer is not None
        assert answer.status == 200, path

    def log_in(self) -> None:
        """Type the key into the form, and send it with the Enter key."""
        self.open("/admin/login")
        self.page.locator("#key:focus").wait_for()  # the browser gives it the focus a moment after the page is loaded
        self.page.keyboard.type(self.key)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.address}/admin")

    def watch(self) -> None:
        """Take down errors, refused content (the browser reports it as an error), dialogs and requests elsewhere."""
        self.page.on("console", self._on_message)
        self.page.on("pageerror", self._on_error)
        self.page.on("dialog", self._on_dialog)
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def _on_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{self.page.url}: {message.text}")

    def _on_error(self, error: Error) -> None:
        self.problems.append(f"{self.page.url}: {error}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"{self.page.url}: a dialog says {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.address).netloc:
            self.problems.append(f"{self.page.url}: asks for {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"{self.page.url}: {response.status} for {response.url}")


@pytest.fixture
def wellkept(tmp_path: Path) -> Iterator[Wellkept]:
    (tmp_path / "greeting").mkdir()
    (tmp_path / "greeting" / "SKILL.md").write_text(SKILL)
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", skills=(str(tmp_path),))
    with Wellkept(settings=settings) as opened:
        yield opened


@pytest.fixture
def console(wellkept: Wellkept, chromium: BrowserContext) -> Iterator[Console]:
    """Nobody is logged in yet."""
    key = wellkept.tenant().keys.create("operator").key
    with serving(wellkept, no_auth=False) as address:
        page = chromium.new_page()
        console = Console(address, key, page)
        console.watch()
        yield console
        page.close()
        chromium.clear_cookies()
    assert console.problems == []
