"""Every page of the console, light and dark, as axe-core judges it: contrast, landmarks, names of fields and more."""

from __future__ import annotations

import json

import pytest

from tests.browser.conftest import Console
from tests.browser.test_console import PAGES, SCHEMES, Scheme, address_of, fill
from wellkept import Wellkept

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ALSO = (
    "/admin/agents/ann/ask?q=which+indentation%3F&id=m-6",
    "/admin/agents/ann/ask?q=which+indentation%3F",
    "/admin/agents/ann?state=expired",
    "/admin/agents/ann?q=office&where=importance+%3E+0.1",
    "/admin/agents/ann?q=office&sort=importance",
    "/admin/agents/ann/prompts?session=monday",
    "/admin/agents/ann/memories/m-2",
    "/admin/agents/ann/memories/m-5",
    "/admin/audit/verify",
    "/docs",
)
RUN = "axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations))"


def find_violations(console: Console, axe: str) -> list[str]:
    """Run axe-core in the page. The page's own policy allows no script; the debugger may run one."""
    console.page.evaluate(axe)
    return [
        f"{console.page.url}: {each['impact']} {each['id']}: {node['html'][:120]} {node['failureSummary']}"
        for each in json.loads(console.page.evaluate(RUN))
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible(wellkept: Wellkept, console: Console, axe: str, scheme: Scheme) -> None:
    ids = fill(wellkept)
    tenant = wellkept.tenant()
    tenant.agents.update("ann", name="Ann", icon="🦉", colour="teal", is_active=False)
    tenant.keys.revoke(tenant.keys.create("read", name="old", trust="tool", agents=["ann"]).record.id)
    console.page.emulate_media(color_scheme=scheme)
    console.open("/admin/login")
    found = find_violations(console, axe)
    console.log_in()

    for address in (*(address_of(path, ids) for path in PAGES), *ALSO):
        console.open(address)
        found += find_violations(console, axe)
    console.page.goto(f"{console.address}/admin/agents/nobody")
    found += find_violations(console, axe)
    console.problems.clear()

    assert not found, "\n".join(found)


def test_the_checker_sees_what_is_wrong(console: Console, axe: str) -> None:
    console.open("/admin/login")
    console.page.locator("label").evaluate_all("all => all.forEach(each => each.remove())")
    console.page.locator("#key").evaluate("each => each.removeAttribute('placeholder')")

    assert any("critical label" in each for each in find_violations(console, axe))
