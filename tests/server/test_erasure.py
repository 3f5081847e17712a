"""Erasing over HTTP: for admins, after a look, with a receipt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2
import pytest

from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope

SETTINGS = {"embedder": "off"}

pytestmark = pytest.mark.proves("X5")


@pytest.fixture(scope="module")
def address(opened: Wellkept) -> Iterator[str]:
    with serving(opened, no_auth=False) as address:
        yield address


def client_with(opened: Wellkept, address: str, scope: KeyScope) -> AbstractContextManager[httpx2.Client]:
    return client_of(address, opened.tenant("acme").keys.create(scope).key)


def test_a_person_is_erased_and_only_an_admin_may(opened: Wellkept, address: str) -> None:
    atlas = opened.agent("atlas", "acme")
    atlas.remember("Mara Lindqvist prefers mail")
    atlas.log_turn("s-1", user="I am Mara Lindqvist", assistant="Hello.")
    body = {"subject": "Mara Lindqvist"}
    with client_with(opened, address, KeyScope.WRITE) as writer:
        assert writer.post("/api/erase", json=body).status_code == 403
    with client_with(opened, address, KeyScope.ADMIN) as admin:
        seen = admin.post("/api/erase", json={**body, "dry_run": True}).json()
        found = [(each["table"], each["id"], each["is_cleared"]) for each in seen["found"]]
        assert ("memories", "m-1", False) in found
        assert ("chat_messages", "s-1/1", True) in found
        count = len(atlas.list())
        assert count == sum(table == "memories" for table, _, _ in found) + 1  # and what the assistant said

        receipt = admin.post("/api/erase", json=body).json()

        assert receipt["removed"] == {"memories": count - 1, "memory_index": count - 1}
        assert Wellkept.verify_receipt(receipt)
        # As the documentation says, without any code of ours.
        content = {name: value for name, value in receipt.items() if name not in ("hash", "found")}
        canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == receipt["hash"]
        assert receipt["cleared"] == {"chat_messages": 1}
        assert (receipt["remnants"], receipt["is_dry_run"], receipt["found"]) == ([], False, [])
        assert admin.get("/api/chat/sessions/s-1/messages").json()["items"][0]["content"] == "[erased]"
        assert "Mara" not in admin.get("/api/audit").text
        assert admin.get("/api/audit/verify").json()["ok"] is True
    path = Path(opened.settings.store_url.removeprefix("sqlite:///"))
    assert not [each for each in path.parent.rglob("*") if each.is_file() and b"Lindqvist" in each.read_bytes()]


def test_only_an_operator_has_the_store_written_anew(opened: Wellkept, address: str) -> None:
    body = {"subject": "text:nobody was ever called this", "compact": True}
    with client_with(opened, address, KeyScope.ADMIN) as admin:
        assert admin.post("/api/erase", json=body).status_code == 403
        assert admin.post("/api/erase", json={**body, "compact": False}).status_code == 200
    with client_with(opened, address, KeyScope.OPERATOR) as operator:
        assert operator.post("/api/erase", json=body).status_code == 200


def test_what_is_missing_or_makes_no_sense_is_refused(opened: Wellkept, address: str) -> None:
    opened.agent("theirs", "other").remember("Stays")
    with client_with(opened, address, KeyScope.ADMIN) as admin:
        for subject in ("agent:nobody", "agent:theirs", "session:none", "memory:atlas/m-99"):
            assert admin.post("/api/erase", json={"subject": subject}).status_code == 404, subject
        for subject in ("", "tenant:other", "memory:7", "x"):
            assert admin.post("/api/erase", json={"subject": subject}).status_code == 400, subject
        assert admin.post("/api/erase", json={"topic": "x"}).status_code == 422
    assert len(opened.agent("theirs", "other").list()) == 1


def test_a_single_word_deletes_an_agent_only_if_told(opened: Wellkept, address: str) -> None:
    opened.agent("ann-bot", "acme").remember("Opens at nine")
    with client_with(opened, address, KeyScope.ADMIN) as admin:
        refused = admin.post("/api/erase", json={"subject": "text:Ann"})
        assert refused.status_code == 409
        assert "ann-bot" in refused.text
        kept = admin.post("/api/erase", json={"subject": "text:Ann", "with_agents": False}).json()
        assert "agents" not in kept["removed"]
        gone = admin.post("/api/erase", json={"subject": "text:Ann", "with_agents": True}).json()
        assert gone["removed"]["agents"] == 1
