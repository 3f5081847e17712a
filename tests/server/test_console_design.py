"""The design of the console: readable colours in both themes, icons that exist, and pages without inline styles."""

from __future__ import annotations

import re
import uuid
from importlib.resources import files

import pytest

from tests.server.console import Browser
from wellkept import Wellkept
from wellkept.api.agent import AgentMemory

FOLDER = files("wellkept.server.console")
STYLE = FOLDER.joinpath("static", "console.css").read_text("utf-8")
COLOURS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", STYLE)
}
SURFACES = ("back", "panel", "sunken")
TEXT = 4.5
SHAPES = 3.0
"""Least contrast of text and of shapes by WCAG 2.2, level AA."""

MAX_BYTES = 100_000


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((text, surface, TEXT) for text in ("text", "muted", "accent", "good", "warn", "bad") for surface in SURFACES),
    *((text, f"{text}-soft", TEXT) for text in ("good", "warn", "bad", "accent")),
    ("on-accent", "accent", TEXT),
    ("text", "accent-soft", TEXT),
    *((f"c{number}", "panel", TEXT) for number in range(1, 10)),
    ("edge", "panel", SHAPES),
    ("edge", "back", SHAPES),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme: int) -> None:
    found = {(one, other): contrast(COLOURS[one][theme], COLOURS[other][theme]) for one, other, _ in PAIRS}

    assert {pair: found[pair] for *pair_, least in PAIRS if found[pair := (pair_[0], pair_[1])] < least} == {}
    assert contrast("000000", "ffffff") == pytest.approx(21)


def test_every_icon_and_colour_that_is_used_exists() -> None:
    known = set(re.findall(r'<symbol id="(\w+)"', FOLDER.joinpath("static", "icons.svg").read_text("utf-8")))
    templates = "".join(each.read_text("utf-8") for each in FOLDER.joinpath("templates").iterdir())
    used = set(re.findall(r"""\b(?:icon|nav_item|empty_state)\("(\w+)\"""", templates))

    assert used - known == set()
    assert len(used) > 20
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) <= set(re.findall(r"--([\w-]+):", STYLE))


def test_no_page_has_an_inline_style_or_script(wellkept: Wellkept, browser: Browser) -> None:
    ann = wellkept.agent(f"ann-{uuid.uuid4().hex[:8]}")
    fill(ann)
    path = f"/admin/agents/{ann.owner.agent}"
    (call,) = ann.prompts.list()

    for each in ("/admin", "/admin/agents", path, f"{path}?q=tea", f"{path}/memories/m-1"):
        check(browser, each)
    for each in (f"{path}/prompts", f"{path}/prompts/{call.id}", f"{path}/ask?q=tea", f"{path}/ask?q=tea&id=m-2"):
        check(browser, each)


def fill(ann: AgentMemory) -> None:
    ann.remember_many([{"text": f"Tea number {each} {'東京' * 60}", "tags": ["a", "b"]} for each in range(130)])
    ann.update("m-1", text="Tea at five")
    ann.context("tea?", session="s-1")


def check(browser: Browser, address: str) -> None:
    answer = browser.get(address)
    assert answer.status_code == 200
    assert not re.search(r'\sstyle="|<style|\son\w+="', answer.text), address
    assert len(re.findall(r"<script", answer.text)) == 1
    assert '<script src="/admin/static/console.js?' in answer.text
    assert len(answer.content) < MAX_BYTES, address
