"""Takes the picture of the console for README: python tools/site/screenshot.py docs/assets/console.png."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from playwright.sync_api import sync_playwright

from wellkept import Wellkept

QUESTION = "who leads the billing team?"
PAGE = "/admin/agents/atlas/why"
OPTIONS = "--headless --no-sandbox --disable-gpu --hide-scrollbars".split()
FACTS = (
    "Lena leads the billing team",
    "The billing service runs on PostgreSQL",
    "Invoices are sent on the first of the month",
    "Ben leads the search team",
    "The team indents with two spaces",
    "Deployments to production need two approvals",
    "The invoice export ships on Thursday",
    "Lena prefers mail over chat",
)


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        _fill(url)
        with _serve(url) as address:
            _take(f"{address}{PAGE}?q={QUESTION}", target)


def _fill(url: str) -> None:
    """Store memories of the last weeks."""
    now = datetime.now(UTC)
    with Wellkept(url) as store:
        atlas = store.agent("atlas")
        atlas.remember_many(
            {"text": text, "tags": ["work"], "created_at": now - timedelta(days=3 * number)}
            for number, text in enumerate(FACTS)
        )
        atlas.log_turn("monday", user="We ship the invoice export on Thursday", assistant="Noted.", remember=True)


@contextmanager
def _serve(url: str) -> Iterator[str]:
    """Run a server on a free port; yield its address."""
    command = [sys.executable, "-m", "wellkept", "serve", "--no-auth", "--port", "0", "--workers", "1", "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(match[0] for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        finally:
            server.terminate()


def _take(address: str, target: str) -> None:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 760})
        answer = page.goto(address)
        assert answer is not None
        assert answer.ok, f"{address} answers {answer.status}"
        page.wait_for_load_state("networkidle")
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
