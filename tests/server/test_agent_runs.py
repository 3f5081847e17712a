"""Asking an agent over HTTP: answers, streams, images, and clients that leave."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.server.live import client_of, serving, wait_until
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, breaks_off, calls, hangs, says, status, talks, trickles

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00,"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ModelServer, Wellkept, httpx2.Client]]:
    with (
        ModelServer() as endpoint,
        Wellkept(":memory:", settings=Settings(openai_model="small", openai_base_url=endpoint.url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        yield endpoint, wellkept, client


@pytest.fixture
def endpoint(served: tuple[ModelServer, Wellkept, httpx2.Client]) -> ModelServer:
    server = served[0]
    server.requests.clear()
    server.script.clear()
    server.usual = says("Tabs.")
    return server


@pytest.fixture
def wellkept(served: tuple[ModelServer, Wellkept, httpx2.Client]) -> Wellkept:
    return served[1]


@pytest.fixture
def client(served: tuple[ModelServer, Wellkept, httpx2.Client], endpoint: ModelServer) -> httpx2.Client:
    return served[2]


def events(answer: httpx2.Response) -> list[tuple[str, Any]]:
    """What a browser would make of the stream."""
    found = []
    for block in answer.text.strip().split("\n\n"):
        name, told = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(told.removeprefix("data: "))))
    return found


def turns(client: httpx2.Client, session_id: str) -> list[tuple[str, str]]:
    items = client.get(f"/api/chat/sessions/{session_id}/messages").json()["items"]
    return [(each["role"], each["content"]) for each in items]


def failures(wellkept: Wellkept, session_id: str) -> int:
    events = wellkept.tenant().audit.search(f"session {session_id} ", limit=100)
    return sum(event.action == "turn.fail" for event in events)


def test_a_prompt_is_answered_and_kept(client: httpx2.Client, endpoint: ModelServer) -> None:
    endpoint.script.extend([calls("remember", text="Likes tabs"), says("Noted.")])

    answer = client.post("/agent/run", json={"agent": "ann", "prompt": "I like tabs."})

    told = answer.json()
    assert answer.status_code == 200, answer.text
    assert told["response"] == "Noted."
    assert told["tools"] == [{"name": "remember", "ok": True}]
    assert told["usage"]["requests"] == 2
    assert turns(client, told["session_id"]) == [("user", "I like tabs."), ("assistant", "Noted.")]
    assert client.get(f"/api/agents/ann/context-calls/{told['call_id']}").json()["session_id"] == told["session_id"]
    session = client.get(f"/api/chat/sessions/{told['session_id']}").json()
    assert session["agent_id"] == "ann"

    again = client.post(
        "/agent/run", json={"agent": "ann", "session_id": told["session_id"], "prompt": "What did I say?"}
    )
    assert again.json()["session_id"] == told["session_id"]
    assert [each["id"] for each in again.json()["recalled"]] == ["m-1"]
    assert len(turns(client, told["session_id"])) == 4


def test_a_stream_tells_tools_pieces_and_the_answer(client: httpx2.Client, endpoint: ModelServer) -> None:
    endpoint.script.extend([calls("recall", query="tabs"), talks("Ta", "bs\n\n.")])

    answer = client.post("/agent/run", json={"agent": "bea", "session_id": "bea-1", "prompt": "Tabs?", "stream": True})

    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    *told, (name, done) = events(answer)
    assert told == [
        ("tool", {"name": "recall", "ok": True}),
        ("delta", {"text": "Ta"}),
        ("delta", {"text": "bs\n\n."}),
    ]
    assert (name, done["response"], done["session_id"]) == ("done", "Tabs\n\n.", "bea-1")
    assert turns(client, "bea-1") == [("user", "Tabs?"), ("assistant", "Tabs\n\n.")]
    assert set(done) == set(client.post("/agent/run", json={"agent": "bea", "prompt": "Again?"}).json())


def test_pieces_arrive_before_the_answer_is_whole(client: httpx2.Client, endpoint: ModelServer) -> None:
    endpoint.usual = trickles("Half")
    body = {"agent": "cleo", "session_id": "cleo-1", "prompt": "Go on", "stream": True}

    with client.stream("POST", "/agent/run", json=body) as answer:
        lines = answer.iter_lines()
        assert [next(lines), next(lines)] == ["event: delta", 'data: {"text": "Half"}']


def test_who_hangs_up_cancels_the_run(client: httpx2.Client, wellkept: Wellkept, endpoint: ModelServer) -> None:
    endpoint.usual = trickles("Half")
    body = {"agent": "dora", "session_id": "dora-1", "prompt": "Go on", "stream": True}
    with client.stream("POST", "/agent/run", json=body) as answer:
        next(answer.iter_lines())
    wait_until(lambda: failures(wellkept, "dora-1") == 1)

    endpoint.requests.clear()
    endpoint.usual = hangs
    asked = client.build_request("POST", "/agent/run", json={"agent": "dora", "session_id": "dora-2", "prompt": "Go"})
    head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
    with socket.create_connection((asked.url.host, asked.url.port or 0)) as line:
        line.sendall(f"POST /agent/run HTTP/1.1\r\n{head}\r\n".encode() + asked.content)
        wait_until(lambda: len(endpoint.requests) == 1)
    wait_until(lambda: failures(wellkept, "dora-2") == 1)

    assert client.get("/api/chat/sessions?agent=dora").json()["items"] == []
    assert client.get("/api/agents/dora/memories").json()["items"] == []


def test_a_model_that_fails_in_the_middle_ends_the_stream_with_an_error(
    client: httpx2.Client, wellkept: Wellkept, endpoint: ModelServer
) -> None:
    endpoint.usual = breaks_off("Half")

    answer = client.post("/agent/run", json={"agent": "emma", "session_id": "emma-1", "prompt": "Go", "stream": True})

    assert answer.status_code == 200
    (_, piece), (name, error) = events(answer)
    assert piece == {"text": "Half"}
    assert (name, error["ok"], error["code"]) == ("error", False, "model")
    assert client.get("/api/chat/sessions/emma-1").status_code == 404
    assert failures(wellkept, "emma-1") == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_at_once_is_a_bad_gateway(
    client: httpx2.Client, endpoint: ModelServer, stream: bool
) -> None:
    endpoint.usual = status(401)

    answer = client.post("/agent/run", json={"agent": "fay", "prompt": "Go", "stream": stream})

    assert (answer.status_code, answer.json()["code"]) == (502, "model")
    assert "check openai_api_key" in answer.json()["error"]


def test_without_a_model_the_setting_is_named(tmp_path: Any) -> None:
    with (
        Wellkept(":memory:", settings=Settings(embedder="off")) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        for body in ({"prompt": "Hi"}, {"prompt": "Hi", "stream": True}):
            answer = client.post("/agent/run", json=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
            assert "OPENAI_MODEL" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "code", "sentence"),
    [
        ({}, 422, "prompt is required"),
        ({"prompt": " "}, 400, "blank"),
        ({"prompt": "Hi", "session_id": "a b\n"}, 400, "session"),
        ({"prompt": "Hi", "agent": "../x"}, 400, "agent"),
        ({"prompt": "Hi", "stream": "yes"}, 422, "stream"),
        ({"prompt": "Hi", "tenant": "acme"}, 422, "no field 'tenant'"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    client: httpx2.Client, endpoint: ModelServer, body: Any, code: int, sentence: str
) -> None:
    answer = client.post("/agent/run", json=body)

    assert answer.status_code == code
    assert sentence in answer.json()["error"]
    assert endpoint.requests == []


def test_images_come_as_base64_as_addresses_and_as_files(client: httpx2.Client, endpoint: ModelServer) -> None:
    endpoint.usual = says("A dot.")
    encoded = base64.b64encode(GIF).decode()
    asked = {"agent": "gia", "session_id": "gia-1", "prompt": "What is this?"}

    answers = [
        client.post("/agent/vision", json={**asked, "images": [encoded]}),
        client.post("/agent/vision", json={**asked, "images": [f"data:image/gif;base64,{encoded}"]}),
        client.post("/agent/vision", data=asked, files=[("images", ("a.gif", GIF)), ("images", ("b.png", PNG))]),
    ]

    assert [answer.json().get("response") for answer in answers] == ["A dot."] * 3
    for body, types in zip(endpoint.bodies, [["gif"], ["gif"], ["gif", "png"]], strict=True):
        text, *images = body["messages"][-1]["content"]
        assert text["text"].endswith("What is this?")
        assert [each["image_url"]["url"].partition(";")[0] for each in images] == [
            f"data:image/{each}" for each in types
        ]
    assert turns(client, "gia-1") == [("user", "What is this?"), ("assistant", "A dot.")] * 3


def test_a_form_may_be_streamed_too(client: httpx2.Client, endpoint: ModelServer) -> None:
    endpoint.usual = talks("A ", "dot.")
    asked = {"agent": "hal", "prompt": "What is this?", "stream": "true"}

    answer = client.post("/agent/vision", data=asked, files={"images": ("a.gif", GIF)})

    assert [name for name, _ in events(answer)] == ["delta", "delta", "done"]


@pytest.mark.parametrize(
    ("images", "code", "sentence"),
    [
        ([], 400, "at least one"),
        (["https://example.org/cat.png"], 400, "nothing is fetched"),
        ([base64.b64encode(b"<svg/>").decode()], 400, "PNG, JPEG, GIF or WebP"),
        (["R0lGODlh"] * 9, 400, "at most 8"),
        ([7], 422, "images[0]"),
    ],
)
def test_what_is_no_image_is_refused(
    client: httpx2.Client, endpoint: ModelServer, images: Any, code: int, sentence: str
) -> None:
    answer = client.post("/agent/vision", json={"prompt": "What?", "images": images})

    assert answer.status_code == code
    assert sentence in answer.json()["error"]
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("fields", "files", "sentence"),
    [
        ({"prompt": "What?"}, {"images": ("a.svg", b"<svg/>")}, "PNG, JPEG, GIF or WebP"),
        ({"prompt": "What?", "x": "1"}, {"images": ("a.gif", GIF)}, "no field 'x'"),
        ({}, {"images": ("a.gif", GIF)}, "prompt is required"),
        ({"prompt": "What?", "stream": "maybe"}, {"images": ("a.gif", GIF)}, "stream"),
        ({}, {"prompt": ("a.gif", GIF)}, "Only the field images is a file"),
    ],
)
def test_a_form_that_says_something_else_is_refused(
    client: httpx2.Client, endpoint: ModelServer, fields: Any, files: Any, sentence: str
) -> None:
    answer = client.post("/agent/vision", data=fields, files=files)

    assert answer.status_code in (400, 422)
    assert sentence in answer.json()["error"]
    assert endpoint.requests == []


def test_a_run_stays_in_the_tenant_of_its_key(endpoint: ModelServer) -> None:
    settings = Settings(openai_model="small", openai_base_url=endpoint.url, rate_limit=0)
    with Wellkept(":memory:", settings=settings) as wellkept, serving(wellkept, no_auth=False) as address:
        wellkept.agent("ann", "acme").log_turn("s-1", user="The vault is blue", assistant="I see")
        wellkept.agent("ann", "acme").remember("The vault is blue")
        keys = {scope: wellkept.tenant("other").keys.create(scope).key for scope in ("read", "write")}
        body = {"agent": "ann", "session_id": "s-1", "prompt": "Which colour is the vault?"}

        with client_of(address, keys["read"]) as client:
            assert client.post("/agent/run", json=body).status_code == 403
        with client_of(address, keys["write"]) as client:
            assert client.post("/agent/run", json=body).status_code == 200

        assert "blue" not in json.dumps(endpoint.bodies)
        assert len(wellkept.agent("ann", "acme").sessions.messages("s-1")) == 2
        assert len(wellkept.agent("ann", "other").sessions.messages("s-1")) == 2


def test_many_agents_run_at_once(client: httpx2.Client, endpoint: ModelServer) -> None:
    answers: list[int] = []

    def run(number: int) -> None:
        answers.append(client.post("/agent/run", json={"agent": f"many-{number}", "prompt": "Hi"}).status_code)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [200] * 12
