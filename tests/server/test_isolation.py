"""On every route, what belongs to another tenant is answered exactly like what does not exist."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.server.live import client_of, serving
from tests.server.routes import SCOPES
from wellkept.api.wellkept import Wellkept

pytestmark = pytest.mark.proves("E12")

SECRET = "private matter"
NOT_ABOUT_OTHERS = (
    "POST /api/keys",
    "POST /api/maintenance",
    "GET /docs",
    "GET /docs/viewer.js",
    "GET /openapi.json",
    "GET /metrics",
)
NOBODYS = {
    "agent": "nobodys",
    "memories": "m-1",
    "details": "mem_20260101000000_abcdef",
    "sessions": "s-nobodys",
    "documents": "d-nobodys",
    "workflows": "w-nobodys",
    "context-calls": "c-nobodys",
    "prompts": "c-nobodys",
    "changes": "c-1",
    "keys": "aaaaaaaa",
}
BODIES: dict[str, Any] = {
    "POST /api/agents": {"id": "{agent}"},
    "PATCH /api/agents/{agent}": {"name": "Changed"},
    "POST /api/agents/{agent}/memories": {"text": "mine", "kind": "journal"},
    "POST /api/agents/{agent}/memories/batch": {"items": [{"text": "mine", "kind": "journal"}]},
    "PATCH /api/agents/{agent}/memories/{id}": {"text": "changed"},
    "POST /api/agents/{agent}/memories/restore": {"ids": ["{memories}"]},
    "POST /api/agents/{agent}/recall": {"query": SECRET},
    "POST /api/agents/{agent}/explain": {"query": SECRET},
    "POST /api/agents/{agent}/inject": {"message": SECRET},
    "POST /api/agents/{agent}/context": {"session_id": "{sessions}", "message": SECRET},
    "POST /api/agents/{agent}/capture": {"output": "short", "source": "ls", "status": "success"},
    "POST /api/chat/sessions": {"id": "{sessions}", "agent_id": "{agent}"},
    "POST /api/chat/sessions/{id}/messages": {"user": "hello", "assistant": "hello"},
    "POST /api/kb/search": {"query": SECRET},
    "POST /api/workflows/{id}/steps": {"step": "one", "output": "mine", "agent_id": "{agent}"},
    "POST /agent/run": {"agent": "{agent}", "session_id": "{sessions}", "prompt": SECRET},
    "POST /agent/vision": {"agent": "{agent}", "session_id": "{sessions}", "prompt": SECRET, "images": ["R0lGODlh"]},
    "POST /api/erase": {"subject": "session:{sessions}"},
    "POST /api/secrets/allow": {"text": "AKIAIOSFODNN7EXAMPLQ"},
}
CHANGING = re.compile(
    r'"\d{4}-\d\d-\d\dT[\d:.]+Z"|"[0-9a-f]{16,64}"|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|[a-z]+-[0-9a-f]{12,32}'
    r"|now: \w{3} [\d-]+ [\d:]+ UTC"
)


@pytest.fixture(scope="module")
def address(opened: Wellkept) -> Iterator[str]:
    with serving(opened, no_auth=False) as address:
        yield address


@pytest.fixture(scope="module")
def theirs(opened: Wellkept, address: str) -> dict[str, str]:
    """Something of every kind that belongs to acme, by the part of the address it is found under."""
    issued = opened.tenant("acme").keys.create("admin")
    with client_of(address, issued.key) as client:

        def made(path: str, body: Any) -> Any:
            answer = client.post(path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

        agent = "/api/agents/theirs"
        memory = made(f"{agent}/memories", {"text": f"A {SECRET}", "kind": "core"})["id"]
        detail = made(f"{agent}/details", {"content": f"A {SECRET} " * 50, "description": f"A {SECRET}"})["memory_key"]
        session = made("/api/chat/sessions", {"id": "s-theirs", "agent_id": "theirs"})["id"]
        made(f"/api/chat/sessions/{session}/messages", {"user": f"A {SECRET}", "assistant": "I see"})
        made(f"{agent}/context", {"session_id": session, "message": SECRET})
        call = client.get(f"{agent}/context-calls").json()["items"][0]["id"]
        document = made("/api/kb/documents", {"title": f"A {SECRET}", "text": f"A {SECRET}. " * 20, "category": "x"})[
            "id"
        ]
        workflow = made("/api/workflows", {"name": f"A {SECRET}"})["id"]
        made(f"/api/workflows/{workflow}/steps", {"step": "one", "output": f"A {SECRET}", "agent_id": "theirs"})
    return {
        "agent": "theirs",
        "memories": memory,
        "details": detail,
        "sessions": session,
        "documents": document,
        "workflows": workflow,
        "context-calls": call,
        "prompts": call,
        "changes": "c-1",
        "keys": issued.record.id,
    }


def filled(path: str, values: dict[str, str]) -> str:
    """The address of one thing: an id is that of the shelf before it."""
    parts: list[str] = []
    for part in path.split("/"):
        is_id = part in ("{id}", "{key}")
        parts.append(values[parts[-1]] if is_id else values["agent"] if part == "{agent}" else part)
    return "/".join(parts)


def test_the_table_of_things_is_complete(theirs: dict[str, str]) -> None:
    assert set(theirs) == set(NOBODYS)
    for route in SCOPES:
        assert "{" not in filled(route.partition(" ")[2], theirs), "say what is found there, in `theirs` and `NOBODYS`"


@pytest.mark.parametrize("route", [route for route in SCOPES if route not in NOT_ABOUT_OTHERS])
def test_foreign_is_answered_like_missing(opened: Wellkept, address: str, theirs: dict[str, str], route: str) -> None:
    """An intruder with an admin key of its own tenant asks for what is acme's, and for what is nobody's."""
    before = everything(opened, theirs)
    answers = []
    for values in (theirs, NOBODYS):
        key = opened.tenant(f"intruder-{uuid.uuid4().hex}").keys.create("admin").key
        with client_of(address, key) as client:
            answers.append(answered(client, route, values))

    assert answers[0] == answers[1]
    assert answers[0][0] < 500
    assert SECRET not in answers[0][1].replace(f'"{SECRET}"', "")
    assert everything(opened, theirs) == before


def answered(client: httpx2.Client, route: str, values: dict[str, str]) -> tuple[int, str]:
    """What the intruder learns, with the names it brought along itself left out."""
    method, _, path = route.partition(" ")
    body = BODIES.get(route, {} if method in ("POST", "PATCH", "PUT") else None)
    if isinstance(body, dict):
        body = {name: values.get(str(value).strip("{}"), value) for name, value in body.items()}
    answer = client.request(method, filled(path, values), json=body)
    text = answer.text
    for known in sorted(values.values(), key=len, reverse=True):
        text = text.replace(f'"{known}"', '"…"').replace(f"{known} ", "… ").replace(f"{known}\\n", "…\\n")
        text = text.replace(f"You are {known}.", "You are ….")
    text = CHANGING.sub("…", text)
    if path in ("/api/keys", "/api/export") or path.startswith("/api/audit"):  # tell of its own
        text = re.sub(r'"last_used_at":[^,]*', "…", re.sub(r"\b[a-z2-7]{8}\b", "…", text))
    return answer.status_code, text


def everything(opened: Wellkept, theirs: dict[str, str]) -> list[object]:
    """All of acme's that somebody could have changed."""
    acme = opened.tenant("acme")
    agent = acme.agent(theirs["agent"])
    return [acme.agents.list(), agent.list(state="all"), acme.audit.list(limit=500), len(acme.keys.list())]
