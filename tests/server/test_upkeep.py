"""Maintenance, the audit log and the search for secrets."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import apsw
import httpx2

from tests.server.conftest import MovableClock
from tests.server.live import client_of, serving
from tests.server.test_agents_and_memories import remember, texts
from tests.server.test_errors import SECRET
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings

COUNTS = (
    "agents examined archived expired faded over_quota gisted merged items deleted swept embedded embedding_problem"
).split()


def test_maintenance_archives_what_has_expired(client: httpx2.Client, ann: str, clock: MovableClock) -> None:
    remember(client, ann, "Said hello", kind="episode", category="routine")
    clock.ahead = timedelta(days=8)

    report = client.post("/api/maintenance").json()

    assert set(report) == set(COUNTS)
    assert report["archived"] == report["expired"] + report["faded"] + report["over_quota"] >= 1
    assert texts(client, ann, state="archived") == ["Said hello"]


def test_a_second_run_of_maintenance_is_a_conflict(client: httpx2.Client, wellkept: Wellkept) -> None:
    now = wellkept.now()
    store = wellkept._store  # another process, which nothing public can be
    store.take_lease("maintain", "somebody else", now=now, until=now + timedelta(minutes=1))
    try:
        answer = client.post("/api/maintenance")
    finally:
        store.end_lease("maintain", "somebody else")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_the_audit_log_tells_what_was_done_in_pages(client: httpx2.Client, ann: str) -> None:
    agent = ann.rpartition("/")[2]
    for number in range(3):
        remember(client, ann, f"A private matter {number}")
    client.delete(f"{ann}/memories/m-2")

    found, cursor = [], ""
    while cursor is not None:
        page = client.get("/api/audit", params={"limit": 2, "cursor": cursor}).json()
        found += page["items"]
        cursor = page["next_cursor"]

    assert [event["id"] for event in found] == list(range(len(found), 0, -1))
    mine = [event for event in found if event["agent_id"] == agent]
    assert [event["action"] for event in mine] == ["memory.delete", *["memory.add"] * 3]
    names = ["id", "at", "action", "agent_id", "actor", "message", "meta", "hash", "previous_hash", "is_damaged"]
    assert set(mine[0]) == set(names)
    assert "private matter" not in str(found)
    deleted = client.get("/api/audit", params={"q": "M-2 WAS DELETED", "limit": 500}).json()["items"]
    assert mine[0] in deleted


def test_the_audit_log_shows_that_it_was_tampered_with(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    settings = Settings(url=f"sqlite:///{path}")
    with Wellkept(settings=settings) as wellkept, serving(wellkept) as address, client_of(address) as client:
        for text in ("one", "two"):
            remember(client, "/api/agents/ann", text)
        whole = client.get("/api/audit/verify").json()
        other = apsw.Connection(str(path))
        other.execute("UPDATE audit_log SET message = 'Nothing happened.' WHERE id = 2")
        other.close()
        broken = client.get("/api/audit/verify")

    head = whole.pop("head")
    assert (head["id"], len(head["hash"])) == (2, 64)
    assert whole == {"ok": True, "events": 2, "broken_at": None, "problem": "", "broken": [], "keyed_from": None}
    assert broken.status_code == 200
    assert broken.json() == {
        "ok": False,
        "events": 1,
        "broken_at": 2,
        "problem": "Event 2 was changed after it was written.",
        "broken": [2],
        "head": head,
        "keyed_from": None,
    }


def test_floats_in_meta_keep_the_log_whole(client: httpx2.Client) -> None:
    meta = {"x": 1e16, "y": -0.0, "z": [1e308, 1763310848.123456789]}
    answer = client.post("/api/audit", json={"action": "order.refund", "message": "paid", "meta": meta})

    assert answer.status_code == 201
    assert meta.items() <= answer.json()["meta"].items()
    assert client.get("/api/audit/verify").json()["ok"] is True


def test_server_without_the_audit_key_refuses_to_write(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path / 'memory.db'}", "correct horse battery staple"
    with Wellkept(settings=Settings(url=url, audit_key=key)) as wellkept:
        wellkept.agent("ann").remember("Drinks tea")
    with (
        Wellkept(settings=Settings(url=url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        refused = client.post("/api/agents/ann/memories", json={"text": "Drinks coffee"})
        listed = client.get("/api/agents/ann/memories").json()["items"]
        verified = client.get("/api/audit/verify").json()

    assert (refused.status_code, "audit_key" in refused.json()["error"]) == (503, True)
    assert [each["text"] for each in listed] == ["Drinks tea"]
    assert (verified["ok"], verified["keyed_from"]) == (False, 1)
    assert "set audit_key" in verified["problem"]


def test_secrets_that_got_in_are_found_and_what_is_none_can_be_allowed() -> None:
    with Wellkept(":memory:", settings=Settings(secrets="flag")) as wellkept:
        wellkept.agent("ann").remember(f"The key is {SECRET}")
        wellkept.agent("bob").remember("Drinks tea")
        with serving(wellkept) as address, client_of(address) as client:
            found = client.post("/api/secrets/scan")
            (waiting,) = client.get("/api/agents/ann/review").json()["items"]
            allowed = client.post("/api/secrets/allow", json={"text": f"Only an example: {SECRET}"}).json()
            left = client.post("/api/secrets/scan").json()

    (sighting,) = found.json()["items"]
    assert (sighting["agent"], sighting["id"]) == ("ann", "m-1")
    assert waiting["flag"] == f"secret: {sighting['rules'][0]}"
    assert SECRET not in found.text
    assert allowed == {"allowed": 1}
    assert left == {"items": []}
