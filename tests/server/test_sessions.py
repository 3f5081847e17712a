"""Conversations over HTTP: begun, logged, paged, shown with their summary, deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, says, status

SESSIONS = "/api/chat/sessions"


@pytest.fixture
def agent() -> str:
    return f"ann-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def chat(client: httpx2.Client, agent: str) -> str:
    """The address of a conversation that has just begun."""
    begun = client.post(SESSIONS, json={"agent_id": agent})
    assert begun.status_code == 201, begun.text
    return f"{SESSIONS}/{begun.json()['id']}"


def talk(client: httpx2.Client, chat: str, turns: int) -> None:
    for number in range(turns):
        answer = client.post(f"{chat}/messages", json={"user": f"question {number}", "assistant": f"answer {number}"})
        assert answer.status_code == 201, answer.text


def every_item(client: httpx2.Client, address: str, **query: Any) -> list[Any]:
    items, cursor = [], ""
    while True:
        page = client.get(address, params={**query, "cursor": cursor}).json()
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        assert len(page["items"]) == query["limit"]
        cursor = page["next_cursor"]


@pytest.mark.proves("T8")
def test_a_session_shows_its_summary_and_what_it_covers(client: httpx2.Client, agent: str, chat: str) -> None:
    shown = client.get(chat).json()

    assert shown.pop("created_at") == shown.pop("updated_at")
    assert shown == {
        "id": chat.rpartition("/")[2],
        "agent_id": agent,
        "summary": "",
        "summarizedCount": 0,
        "message_count": 0,
        "user": None,
        "metadata": {},
    }
    assert client.get(SESSIONS, params={"agent": agent}).json()["items"] == [client.get(chat).json()]


@pytest.mark.proves("T1", "T8")
def test_turns_are_logged_and_paged(client: httpx2.Client, chat: str) -> None:
    talk(client, chat, 5)

    whole = client.get(f"{chat}/messages").json()
    assert whole["next_cursor"] is None
    assert [(each["position"], each["role"], each["content"]) for each in whole["items"]] == [
        (2 * n + k + 1, role, f"{word} {n}")
        for n in range(5)
        for k, (role, word) in enumerate([("user", "question"), ("assistant", "answer")])
    ]
    for limit in (1, 3, 10):
        assert every_item(client, f"{chat}/messages", limit=limit) == whole["items"]
    assert client.get(chat).json()["message_count"] == 10


@pytest.mark.proves("T8")
def test_sessions_are_paged_the_last_used_first(client: httpx2.Client, agent: str) -> None:
    for name in "abcde":
        assert client.post(SESSIONS, json={"agent_id": agent, "id": f"{agent}-{name}"}).status_code == 201
    client.post(f"{SESSIONS}/{agent}-b/messages", json={"user": "x", "assistant": "y"})

    for limit in (1, 2, 5):
        found = every_item(client, SESSIONS, agent=agent, limit=limit)
        assert [each["id"].removeprefix(f"{agent}-") for each in found] == ["b", "e", "d", "c", "a"]
    everybody = every_item(client, SESSIONS, limit=500)
    assert [each for each in everybody if each["agent_id"] == agent] == found


def test_a_turn_can_begin_the_session_of_an_agent(client: httpx2.Client, agent: str) -> None:
    turn, chat = {"user": "x", "assistant": "y"}, f"{SESSIONS}/{agent}-own"

    assert client.post(f"{chat}/messages", json=turn).status_code == 404
    logged = client.post(f"{chat}/messages", json={**turn, "agent_id": agent, "remember": True})
    assert logged.status_code == 201
    assert [each["content"] for each in logged.json()["items"]] == ["x", "y"]
    assert client.post(f"{chat}/messages", json={**turn, "agent_id": "somebody-else"}).status_code == 409
    assert client.get(f"/api/agents/{agent}").json()["memories_count"]["episode"] == 2


def test_an_id_is_taken_once(client: httpx2.Client, agent: str, chat: str) -> None:
    taken = client.post(SESSIONS, json={"agent_id": agent, "id": chat.rpartition("/")[2]})

    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")


def test_a_deleted_session_is_gone(client: httpx2.Client, agent: str, chat: str) -> None:
    talk(client, chat, 1)

    assert client.delete(chat).status_code == 204
    for method, address in (
        ("GET", chat),
        ("GET", f"{chat}/messages"),
        ("DELETE", chat),
        ("POST", f"{chat}/conversation"),
    ):
        assert client.request(method, address).status_code == 404
    assert client.get(SESSIONS, params={"agent": agent}).json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("", {}, 422),
        ("", {"agent_id": "no such/agent"}, 400),
        ("", {"agent_id": "ann", "id": "a/b"}, 400),
        ("", {"agent_id": "ann", "id": ""}, 400),
        ("", {"agent_id": "ann", "title": "x"}, 422),
        ("/messages", {"user": "only"}, 422),
        ("/messages", {"user": "x", "assistant": " "}, 400),
        ("/messages", {"user": "x", "assistant": "y", "tool": "z"}, 422),
        ("/messages", {"user": "x", "assistant": "y", "remember": "yes"}, 422),
    ],
)
def test_what_is_no_session_or_turn_is_refused(
    client: httpx2.Client, chat: str, path: str, body: dict[str, Any], code: int
) -> None:
    answer = client.post(f"{chat}{path}" if path else SESSIONS, json=body)

    assert answer.status_code == code, answer.text
    assert answer.json()["ok"] is False


@pytest.mark.parametrize("id", ["no-such", "%20", "a%0Ab"])
def test_an_id_that_cannot_be_one_is_not_found(client: httpx2.Client, id: str) -> None:
    assert client.get(f"{SESSIONS}/{id}").status_code == 404
    assert client.get(f"{SESSIONS}/{id}/messages").status_code == 404


def test_an_id_with_a_nul_is_refused(client: httpx2.Client) -> None:
    answer = client.get(f"{SESSIONS}/..%00")

    assert answer.status_code == 400
    assert "NUL" in answer.json()["error"]


@pytest.mark.parametrize("listing", [SESSIONS, f"{SESSIONS}/x/messages"])
def test_a_cursor_of_another_listing_is_refused(client: httpx2.Client, chat: str, listing: str) -> None:
    asked = listing.replace(f"{SESSIONS}/x", chat)
    for cursor in ("nonsense", "YWdlbnRzOmF0bGFz", "c2Vzc2lvbnM6eA", "bWVzc2FnZXM6eA"):
        answer = client.get(asked, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


# --- with a model


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(says("They talked.")) as running:
        yield running


@pytest.fixture
def summing(model: ModelServer) -> Iterator[httpx2.Client]:
    settings = Settings(
        openai_model="m",
        openai_base_url=model.url,
        summary_enabled=True,
        summary_threshold=4,
        summary_keep_last=2,
        embedder="off",
    )
    with (
        Wellkept(":memory:", settings=settings) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        yield client


@pytest.mark.proves("T3", "T8")
def test_a_conversation_over_http_is_summarised_and_says_so(summing: httpx2.Client, model: ModelServer) -> None:
    chat = f"{SESSIONS}/{summing.post(SESSIONS, json={'agent_id': 'ann'}).json()['id']}"
    talk(summing, chat, 4)

    shown = summing.post(f"{chat}/conversation").json()

    assert len(model.requests) == 1
    assert shown["summarizedCount"] == 6
    assert shown["messages"][0]["role"] == "system"
    assert shown["messages"][0]["content"].endswith("They talked.")
    assert [each["content"] for each in shown["messages"][1:]] == ["question 3", "answer 3"]
    session = summing.get(chat).json()
    assert (session["summary"], session["summarizedCount"], session["message_count"]) == ("They talked.", 6, 8)


@pytest.mark.proves("T5")
def test_a_failing_model_fails_no_request(summing: httpx2.Client, model: ModelServer) -> None:
    model.usual = status(401)
    chat = f"{SESSIONS}/{summing.post(SESSIONS, json={'agent_id': 'ann'}).json()['id']}"
    talk(summing, chat, 4)

    shown = summing.post(f"{chat}/conversation")

    assert shown.status_code == 200
    assert len(shown.json()["messages"]) == 8
    events = summing.get("/api/audit", params={"q": "could not be summarised"}).json()["items"]
    assert [event["action"] for event in events] == ["summary.fail"]


@pytest.mark.proves("T8")
def test_everything_survives_a_restart_of_the_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('restart') / 'memory.db'}"
    with Wellkept(url) as wellkept, serving(wellkept) as address, client_of(address) as client:
        chat = f"{SESSIONS}/{client.post(SESSIONS, json={'agent_id': 'ann'}).json()['id']}"
        talk(client, chat, 2)
        before = [client.get(path).json() for path in (SESSIONS, chat, f"{chat}/messages")]

    with Wellkept(url) as wellkept, serving(wellkept) as address, client_of(address) as client:
        assert [client.get(path).json() for path in (SESSIONS, chat, f"{chat}/messages")] == before
