"""The console's pages for control: users, erasure, documents, settings, maintenance and backup."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from html import escape, unescape
from pathlib import Path

import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.console import Browser, links, read
from tests.server.live import serving
from wellkept.api.wellkept import Wellkept
from wellkept.server.console.pages import place
from wellkept.settings import Settings

MAX_PAGE_BYTES = 100_000
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def agent() -> str:
    return f"ann-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def locked(wellkept: Wellkept) -> Iterator[Browser]:
    """A visitor of a server that asks for a key."""
    with serving(wellkept, no_auth=False) as address:
        browser = Browser(address)
        yield browser
        browser.close()


def upload(browser: Browser, files: dict[str, bytes], **fields: str) -> httpx2.Response:
    sent = [("file", (name, content)) for name, content in files.items()]
    return browser.client.post("/admin/documents", data=fields, files=sent, headers={"Origin": browser.address})


def test_a_user_is_shown_and_erased_with_a_receipt(wellkept: Wellkept, browser: Browser, agent: str) -> None:
    ann, user = wellkept.agent(agent), f"o'hara/{agent} & co"
    for number in range(12):
        ann.for_user(user).remember(f"Tea number {number} {SCRIPT}")
    ann.for_user(f"{user} 2").remember("Stays")
    ann.log_turn(f"s-{agent}", user="Hello", assistant="Hi", user_id=user)

    listed = browser.get("/admin/users")
    address = place("user", id=user)
    assert escape(address) in listed.text
    shown = browser.get(address)
    assert re.search(rf"{re.escape(user)} now 1\d 1 1 ", read(listed))
    assert "Tea number 11" in read(shown)
    assert SCRIPT not in shown.text
    assert f"/admin/agents/{agent}/sessions/s-{agent}" in links(shown, "Hello")
    (every,) = links(shown, "All memories")
    assert "Tea number 0" in read(browser.get(every))

    preview = browser.send("/admin/erasure/preview", kind="user", id=user)
    assert "rows would be erased" in read(preview)
    assert len(ann.for_user(user, shared=False).list()) == 14

    done = browser.send("/admin/erasure", kind="user", id=user)
    assert "Erased" in read(done)
    assert ann.for_user(user, shared=False).list() == []
    assert len(ann.for_user(f"{user} 2", shared=False).list()) == 1
    (receipt,) = re.findall(r'name="receipt" value="([^"]*)"', done.text)
    assert Wellkept.verify_receipt(json.loads(unescape(receipt)))
    file = browser.send("/admin/erasure/receipt", receipt=unescape(receipt))
    assert file.headers["Content-Disposition"].startswith('attachment; filename="erasure-')
    assert Wellkept.verify_receipt(file.json())
    forged = browser.send(
        "/admin/erasure/receipt", receipt=unescape(receipt).replace('"is_dry_run": false', '"is_dry_run": true')
    )
    assert forged.status_code == 400
    assert browser.get(address).status_code == 404
    assert user not in read(browser.get("/admin/users")).replace(f"{user} 2", "")


def test_an_erasure_says_what_is_wrong(browser: Browser) -> None:
    for fields in ({"kind": "agent", "id": "nobody-here"}, {"kind": "odd", "id": "x"}, {"kind": "user", "id": ""}):
        refused = browser.send("/admin/erasure/preview", **fields)
        assert refused.status_code == 400
        assert 'role="alert"' in refused.text
    assert "Nothing is stored about this." in read(browser.send("/admin/erasure/preview", kind="text", id="zorgblatt"))


def test_documents_are_uploaded_listed_by_title_searched_edited_and_deleted(
    wellkept: Wellkept, browser: Browser, agent: str
) -> None:
    category = f"c-{agent}"
    files = {f"b-{agent}.md": f"# Bananas {SCRIPT}\n\nThe {agent} fee is 7 euro.".encode(), f"a-{agent}.txt": b"apples"}

    done = upload(browser, files | {f"c-{agent}.bin": b"\x00\x01\x02"}, category=category)

    said = read(done)
    assert done.status_code == 200
    assert said.count("added, 1 passage") == 2
    assert f"refused c-{agent}.bin" in said
    assert SCRIPT not in done.text
    titles = [each.document.title for each in wellkept.tenant().knowledge.browse(category=category)]
    assert titles == sorted(titles, key=str.lower)
    assert len(titles) == 2
    hits = browser.get("/admin/documents", q=f"{agent} fee", category=category)
    assert f"The {agent} fee is 7 euro." in read(hits)
    assert f'class="chip is-on" href="/admin/documents?q={agent}+fee"' in hits.text
    assert upload(browser, {}, category=category).status_code == 400

    (first, _) = wellkept.tenant().knowledge.browse(category=category)
    address = f"/admin/documents/{first.document.id}"
    browser.send(address, title=f"Zebras {agent}", category="", is_published="")
    changed = wellkept.tenant().knowledge.get(first.document.id)
    assert (changed.title, changed.category, changed.is_published) == (f"Zebras {agent}", "", False)
    assert browser.send(address, title=" ").status_code == 400
    asked = read(browser.get(f"{address}/delete"))
    assert f"Zebras {agent}" in asked
    assert "This cannot be undone" in asked
    assert browser.get(address).status_code == 200, "asking deletes nothing"
    browser.send(f"{address}/delete")
    assert browser.get(address).status_code == 404


def test_settings_are_shown_with_their_origin_and_without_secrets(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/memory.db", openai_api_key="sk-very-secret", max_total=77)
    with Wellkept(settings=settings) as store, serving(store, no_auth=False) as address:
        browser, tenant = Browser(address), store.tenant()
        browser.log_in(tenant.keys.create("operator").key)
        every, changed = (browser.get("/admin/settings", changed=each) for each in ("", "yes"))

        assert "sk-very-secret" not in every.text
        assert re.search(r"max_total 77 environment or flag", read(changed))
        assert "index_cache_mb" in read(every)
        assert "index_cache_mb" not in read(changed)
        assert "No setting matches." in read(browser.get("/admin/settings", q="zorg"))
        browser.send("/admin/logout")
        browser.log_in(tenant.keys.create("admin").key)
        assert browser.get("/admin/settings").status_code == browser.get("/admin/backup/file").status_code == 403
        assert links(browser.get("/admin/manage"), "Server settings") == []
        browser.close()


def test_maintenance_is_previewed_and_run(
    wellkept: Wellkept, browser: Browser, clock: MovableClock, agent: str
) -> None:
    ann = wellkept.agent(agent)
    gone = ann.remember(f"Routine {SCRIPT}", kind="episode", expires_at=wellkept.now() + timedelta(days=1))
    stays = ann.remember("Lasting", kind="episode")
    clock.ahead += timedelta(days=2)

    dry = browser.get("/admin/maintenance/preview")
    assert f'href="/admin/agents/{agent}/memories/{gone.id}"' in dry.text
    assert f'href="/admin/agents/{agent}/memories/{stays.id}"' not in dry.text
    assert SCRIPT not in dry.text
    assert ann.get(gone.id).archived_at is None

    ran = browser.send("/admin/maintenance")
    assert "Done: " in read(ran)
    assert ann.get(gone.id).archived_at is not None
    assert gone.id not in browser.get("/admin/maintenance/preview").text.partition(agent)[2]


def test_a_backup_is_downloaded_and_valid(wellkept: Wellkept, browser: Browser, tmp_path: Path) -> None:
    assert "Download a backup" in read(browser.get("/admin/backup"))
    answer = browser.get("/admin/backup/file")
    (tmp_path / "backup.tar.zst").write_bytes(answer.content)

    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    Wellkept.verify_backup(tmp_path / "backup.tar.zst")


def test_a_limited_key_sees_only_its_own(wellkept: Wellkept, locked: Browser, agent: str) -> None:
    tenant, other = wellkept.tenant(), f"{agent}-other"
    for name in (agent, other):
        wellkept.agent(name).for_user(f"user of {name}").remember("Tea")
        tenant.audit.record("tea.made", f"Tea of {name}", agent=name)
    locked.log_in(tenant.keys.create("admin", agents=[agent]).key)

    users, events = read(locked.get("/admin/users")), read(locked.get("/admin/audit", action="tea.made"))

    assert f"user of {agent} " in users
    assert f"user of {other}" not in users
    assert locked.get("/admin/user", id=f"user of {other}").status_code == 404
    assert f"Tea of {agent} " in f"{events} "
    assert f"Tea of {other}" not in events
    assert locked.get(f"/admin/agents/{other}/details").status_code == 404
    assert locked.send("/admin/erasure", kind="agent", id=agent).status_code == 400
    assert locked.send("/admin/maintenance").status_code == 403
    assert tenant.agents.get(agent)

    locked.send("/admin/logout")
    locked.log_in(tenant.keys.create("write", user=f"user of {agent}").key)
    assert locked.get("/admin/users").status_code == 403
    assert links(locked.get("/admin"), "Users") == []
    assert locked.get(f"/admin/agents/{agent}/ask").status_code == 200
