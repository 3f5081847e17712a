"""Takes the picture of the console for README: python tools/site/screenshot.py docs/assets/console.png."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

PAGE = "/admin/agents/sample/ask?reader=lena&q=which+dessert+is+dangerous+for+Lena%3F"
OPTIONS = "--headless --no-sandbox --disable-gpu --hide-scrollbars".split()


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder, _serve(f"sqlite:///{folder}/memory.db") as address:
        _take(f"{address}{PAGE}", target)


@contextmanager
def _serve(url: str) -> Iterator[str]:
    """Run a server with the sample data on a free port; yield its address."""
    options = f"--no-auth --demo --port 0 --workers 1 --url {url}"
    command = [sys.executable, "-m", "wellkept", "serve", *options.split()]
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
