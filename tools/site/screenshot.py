"""Takes the picture of the console for README: python tools/site/screenshot.py docs/assets/console.png."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import sync_playwright

from wellkept import Wellkept

PAGE = "/admin/agents/sample/ask?reader=lena&q=which+dessert+is+dangerous+for+Lena%3F"
SAMPLE = Path(__file__).with_name("sample.toml")
OPTIONS = "--headless --no-sandbox --disable-gpu --hide-scrollbars".split()


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        _fill(url)
        with _serve(url) as address:
            _take(f"{address}{PAGE}", target)


def _fill(url: str) -> None:
    """Store an agent with memories and conversations of two users, and a document."""
    source, now = tomllib.loads(SAMPLE.read_text("utf-8")), datetime.now(UTC)
    with Wellkept(url) as store:
        tenant = store.tenant()
        tenant.agents.add("sample", name="Sample data", colour="seagreen")
        memory = tenant.agent("sample")
        for each in source["memories"]:
            each["created_at"] = now - timedelta(days=each.pop("age"))
        memory.remember_many(source["memories"])
        for each in source["documents"]:
            tenant.knowledge.ingest_text(each["text"], title=each["title"], category="sample")
        for each in source["conversations"]:
            theirs = memory.for_user(each["user"])
            for question, answer in each["turns"]:
                theirs.context(question, session=each["id"], budget=1_000)
                theirs.log_turn(each["id"], user=question, assistant=answer)


@contextmanager
def _serve(url: str) -> Iterator[str]:
    """Run a server on a free port; yield its address."""
    options = f"--no-auth --port 0 --workers 1 --url {url}"
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
