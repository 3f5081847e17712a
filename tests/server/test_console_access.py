"""Who may open the console: by a key that becomes a cookie, by a link that works once, and never by another page."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import client_of, serving
from tests.server.routes import CONSOLE
from wellkept.access.rules_keys import is_allowed
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.server.app import create_app
from wellkept.server.console.pages import ASSETS

VALUES = {"agent": "ann", "id": "m-1", "code": "nonsense", "name": "console.css", "decision": "apply"}


@pytest.fixture(scope="module")
def address(wellkept: Wellkept) -> Iterator[str]:
    wellkept.agent("ann").remember("Ann likes tea")
    with serving(wellkept, no_auth=False) as address:
        yield address


def sent(browser: Browser, route: str) -> httpx2.Response:
    method, _, path = route.partition(" ")
    path = re.sub(r"\{(\w+)\}", lambda match: VALUES[match[1]], path)
    return browser.client.request(method, path, headers={"Origin": browser.address} if method == "POST" else {})


def key(wellkept: Wellkept, scope: str = "admin", tenant: str | None = None) -> str:
    return wellkept.tenant(tenant).keys.create(scope).key


@pytest.mark.parametrize("route", [route for route, scope in CONSOLE.items() if scope is not None])
def test_without_a_login_every_page_leads_to_the_form(browser: Browser, route: str) -> None:
    answer = sent(browser, route)

    if route.startswith("POST"):
        assert answer.status_code == 401
        assert "log in with a key" in read(answer)
    else:
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("/admin/login")


@pytest.mark.parametrize("route", [route for route, scope in CONSOLE.items() if scope is not None])
def test_a_login_opens_what_its_key_allows(wellkept: Wellkept, address: str, route: str) -> None:
    needed = CONSOLE[route]
    assert needed is not None
    for scope in KeyScope:
        browser = Browser(address)
        if scope is KeyScope.ADMIN and route.startswith("POST"):
            continue  # what it does is for other tests
        browser.log_in(key(wellkept, scope))
        answer = sent(browser, route)
        browser.close()
        assert (answer.status_code == 403) == (not is_allowed(scope, needed)), (scope, answer.text)
        assert answer.status_code < 500
        if answer.status_code == 403:
            assert f"the scope {scope.value}; this route requires the scope {needed.value}" in read(answer)
            assert links(answer, "Home")[-1:] == ["/admin"]


def test_after_the_login_one_is_where_one_wanted_to_be(wellkept: Wellkept, browser: Browser) -> None:
    asked = browser.get("/admin/audit", q="a&b")
    form = browser.get(asked.headers["Location"])
    (action,) = re.findall(r'action="(/admin/login[^"]*)"', form.text)
    inside = browser.send(action, key=f" {key(wellkept)}\n")

    assert str(inside.url) == f"{browser.address}/admin/audit?q=a%26b"
    assert inside.status_code == 200
    for elsewhere in ("//evil.example", "https://evil.example/admin", "/api/agents"):
        landed = browser.send(f"/admin/login?next={elsewhere}", key=key(wellkept))
        assert str(landed.url) == f"{browser.address}/admin"


@pytest.mark.parametrize("wrong", ["", "hunter2", "wellkept_mfrw2zi_aaaaaaaa_" + "a" * 52])
def test_a_wrong_key_is_told_so_and_opens_nothing(browser: Browser, wrong: str) -> None:
    answer = browser.log_in(wrong)

    assert answer.status_code == 401
    assert "not valid" in read(answer)
    assert "set-cookie" not in answer.headers
    assert not wrong or wrong not in answer.text


def test_the_cookie_is_for_the_console_alone_and_is_not_the_key(wellkept: Wellkept, address: str) -> None:
    issued = key(wellkept)
    with client_of(address) as client:
        plain = client.post("/admin/login", data={"key": issued}, headers={"Origin": address})
        secure = client.post(
            "/admin/login", data={"key": issued}, headers={"Origin": address.replace("http:", "https:")}
        )
    cookie = plain.headers["Set-Cookie"]

    assert {"HttpOnly", "SameSite=strict", "Path=/admin"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Secure" in secure.headers["Set-Cookie"]
    assert issued not in cookie
    value = cookie.split(";")[0]
    with client_of(address) as client:
        assert client.get("/api/agents", headers={"Cookie": value}).status_code == 401
        assert client.get("/admin", headers={"Cookie": value}).status_code == 200
        assert client.get("/admin", headers={"Authorization": f"Bearer {issued}"}).status_code == 303


def test_logging_out_ends_it_also_for_whoever_copied_the_cookie(wellkept: Wellkept, browser: Browser) -> None:
    browser.log_in(key(wellkept))
    copied = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
    assert browser.get("/admin").status_code == 200

    browser.send("/admin/logout")

    assert browser.get("/admin").status_code == 303
    with client_of(browser.address) as client:
        assert client.get("/admin", headers={"Cookie": copied}).status_code == 303


def test_a_revoked_key_and_time_end_it(wellkept: Wellkept, browser: Browser, clock: MovableClock) -> None:
    issued = wellkept.tenant().keys.create("read")
    browser.log_in(issued.key)
    assert browser.get("/admin").status_code == 200
    wellkept.tenant().keys.revoke(issued.record.id)
    assert browser.get("/admin").status_code == 303

    browser.log_in(key(wellkept))
    clock.ahead = timedelta(hours=11)
    assert browser.get("/admin").status_code == 200
    clock.ahead = timedelta(hours=12, minutes=1)
    assert browser.get("/admin").status_code == 303


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1"])
def test_a_form_of_another_page_is_refused(wellkept: Wellkept, browser: Browser, origin: str | None) -> None:
    kept = wellkept.agent("ann").remember("Ann likes cake", kind="episode")
    browser.log_in(key(wellkept))
    path = f"/admin/agents/ann/memories/{kept.id}/delete"

    answer = browser.client.post(path, headers={} if origin is None else {"Origin": origin})

    assert answer.status_code == 403
    assert wellkept.agent("ann").get(kept.id).text == "Ann likes cake"
    login = browser.client.post("/admin/login", data={"key": "x"}, headers={"Origin": origin} if origin else {})
    assert login.status_code == 403


def test_another_tenants_agent_is_answered_like_a_missing_one(wellkept: Wellkept, browser: Browser) -> None:
    wellkept.agent("theirs", "acme").remember("A private matter")
    browser.log_in(key(wellkept))

    for rest in (
        "",
        "/ask?q=private&id=m-1",
        "/prompts",
        "/prompts/c-1",
        "/memories/m-1",
        "/memories/m-1/delete",
        "/sessions",
    ):
        foreign, missing = (browser.get(f"/admin/agents/{agent}{rest}") for agent in ("theirs", "nobodys"))
        assert (foreign.status_code, missing.status_code) == (404, 404)
        assert foreign.text.replace("theirs", "nobodys") == missing.text
    assert "theirs" not in browser.get("/admin").text


def test_a_link_lets_in_once(wellkept: Wellkept, clock: MovableClock) -> None:
    links: list[str] = []
    record = wellkept.keys.verify(key(wellkept))

    with serving(
        wellkept, lambda app: links.extend(app.state.logins.link_for(record) for _ in range(2)), no_auth=False
    ) as address:
        browser, other = Browser(address), Browser(address)
        path = f"/admin/open/{links[0]}"
        assert [browser.get(path).status_code for _ in range(2)] == [200, 200], "looking at it does not use it up"
        assert browser.send(path).url.path == "/admin"
        assert browser.get("/admin").status_code == 200
        again = other.send(path)
        assert again.status_code == 401
        assert "already used" in read(again)
        clock.ahead = timedelta(minutes=61)
        assert other.send(f"/admin/open/{links[1]}").status_code == 401
        assert other.get("/admin").status_code == 303
        browser.close()
        other.close()


def test_every_answer_keeps_scripts_and_frames_out(wellkept: Wellkept, browser: Browser) -> None:
    answers = [browser.get("/admin/login"), browser.get("/admin"), browser.get("/admin/static/console.css")]
    browser.log_in(key(wellkept))
    answers += [browser.get("/admin"), browser.get("/admin/agents/nobody"), browser.get("/admin/nowhere")]

    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert {"default-src 'self'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert re.findall(r"<script[^>]*", answer.text) in (
            [],
            [f'<script src="/admin/static/console.js?v={ASSETS}" defer'],
        )
        assert " style=" not in answer.text
        assert answer.headers["Cache-Control"] == ("max-age=3600" if "css" in answer.url.path else "no-store")
    assert [answer.status_code for answer in answers] == [200, 303, 200, 200, 404, 404]


def test_without_keys_there_is_no_login(wellkept: Wellkept) -> None:
    with serving(wellkept, no_auth=True) as address:
        browser = Browser(address)
        assert browser.get("/admin/login").headers["Location"] == "/admin"
        page = browser.get("/admin")
        assert page.status_code == 200
        assert "no login" in read(page)
        assert "Log out" not in read(page)
        browser.close()


def test_the_oldest_login_makes_room(wellkept: Wellkept, clock: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellkept.access.keys.MAX_LOGINS", 2)
    logins = create_app(wellkept).state.logins
    record = wellkept.keys.verify(key(wellkept))

    cookies = []
    for minutes in range(3):
        clock.ahead = timedelta(minutes=minutes)
        cookies.append(logins.begin(record))
    first, second, third = cookies

    assert [logins.key(each).id for each in (second, third)] == [record.id] * 2
    with pytest.raises(Exception, match="not logged in"):
        logins.key(first)


@pytest.mark.parametrize("limits", [{}, {"agents": ["ann"]}, {"user": "kim"}], ids=["all", "agent", "user"])
def test_every_link_leads_to_a_page_that_the_key_may_open(wellkept: Wellkept, limits: dict[str, Any]) -> None:
    tenant = wellkept.tenant(f"t-{uuid.uuid4().hex[:8]}")
    ann, bob = tenant.agent("ann"), tenant.agent("bob")
    for each in (ann, ann.for_user("kim"), bob):
        each.remember("Likes tea", tags=["habit"])
        each.log_turn(f"s-{each.owner.agent}-{each.owner.user}", user="Tea?", assistant="Tea.")
        each.context("tea?", session=f"s-{each.owner.agent}-{each.owner.user}")
        each.details.store("a long text\n" * 40, description="log")
    tenant.knowledge.ingest_text("Refunds take 14 days.", title="Refunds")
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        browser.log_in(tenant.keys.create("admin", **limits).key)
        opened, waiting = dict[str, int](), ["/admin"]
        while waiting:
            path = waiting.pop()
            answer = browser.get(path)
            opened[path] = answer.status_code
            found = {html.unescape(each).partition("#")[0] for each in re.findall(r'href="(/admin[^"]*)"', answer.text)}
            # Filters and files are of no interest here.
            found = {each for each in found if "?" not in each or each.startswith("/admin/user?")}
            waiting += [each for each in found - {*opened, *waiting} if "/export" not in each and "/text" not in each]
        browser.close()

    assert {path for path, status in opened.items() if status != 200} == set()
    assert len(opened) > 25
