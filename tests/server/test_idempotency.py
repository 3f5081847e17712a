"""Requests with an Idempotency-Key: carried out once, however often they are sent."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from tests.server.conftest import MovableClock
from tests.server.live import ServerProcess, client_of, serving
from wellkept.access.idempotency import DEAD_AFTER
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.server.http.idempotency import MAX_ANSWER_BYTES
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, calls, says, status
from wellkept.upkeep import erase

ENTRY = {"text": "Tea at five", "kind": "journal"}
DAY = timedelta(hours=24)


def header(key: str = "") -> dict[str, str]:
    return {"Idempotency-Key": key or uuid.uuid4().hex}


def texts(client: httpx2.Client, agent: str) -> list[str]:
    return [each["text"] for each in client.get(f"{agent}/memories").json()["items"]]


def assert_replayed(first: httpx2.Response, again: httpx2.Response) -> None:
    assert first.is_success, first.text
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'memory.db'}"


def test_retries_write_once_and_get_the_same_bytes(url: str, ann: str) -> None:
    turn = {"user": "Tea?", "assistant": "At five."}
    step = {"step": "brew", "output": "Hot."}
    event = {"action": "tea.brewed", "message": "At five"}
    requests: list[tuple[str, dict[str, Any]]] = [
        (f"{ann}/memories", ENTRY),
        (f"{ann}/memories", {"text": "Tea was served", "kind": "episode"}),
        ("/api/chat/sessions", {"id": "s-1", "agent_id": ann.rpartition("/")[2]}),
        ("/api/chat/sessions/s-1/messages", turn),
        ("/api/workflows/tea/steps", step),
        ("/api/audit", event),
        (f"{ann}/recall", {"query": "tea"}),
    ]
    with (
        Wellkept(settings=Settings(url=url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        client.post("/api/workflows", json={"name": "tea"}).raise_for_status()
        for path, body in requests:
            headers = header()
            assert_replayed(
                client.post(path, json=body, headers=headers), client.post(path, json=body, headers=headers)
            )
        journal = client.get(f"{ann}/memories", params={"kind": "journal"}).json()["items"]
        assert [each["text"] for each in journal] == ["Tea at five"]
        assert len(client.get("/api/chat/sessions/s-1/messages").json()["items"]) == 2
        assert len(client.get("/api/workflows/tea/steps").json()["items"]) == 1
        actions = [each["action"] for each in client.get("/api/audit").json()["items"]]
        assert actions.count("tea.brewed") == 1


def test_parallel_requests_to_two_servers_write_once(url: str, ann: str) -> None:
    headers = header()

    def send(address: str) -> httpx2.Response:
        with client_of(address) as client:
            while True:
                answer = client.post(f"{ann}/memories", json=ENTRY, headers=headers)
                if answer.status_code != 409:
                    return answer
                assert code(answer) == (409, "idempotency_in_progress")
                assert answer.headers["Retry-After"] == "1"

    with (
        Wellkept(settings=Settings(url=url)) as one,
        Wellkept(settings=Settings(url=url)) as other,
        serving(one) as first,
        serving(other) as second,
        ThreadPoolExecutor(16) as pool,
        client_of(first) as client,
    ):
        answers = list(pool.map(send, [first, second] * 8))
        assert texts(client, ann) == ["Tea at five"]
    assert {(answer.status_code, answer.content) for answer in answers} == {(201, answers[0].content)}
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


DYING = """
import os, signal, sys
from wellkept.server.run import serve
from wellkept.access.idempotency import Idempotency
from wellkept.settings import Settings

Idempotency.keep = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
serve(Settings(url=sys.argv[1], port=0, workers=1), no_auth=True)
"""


def test_server_killed_between_write_and_answer_does_not_write_twice(url: str, ann: str) -> None:
    headers, clock = header(), MovableClock()
    with ServerProcess(url, program=(DYING, url)) as dying, client_of(dying.address) as client:
        with pytest.raises(httpx2.TransportError):
            client.post(f"{ann}/memories", json=ENTRY, headers=headers)
        dying.stop()

    with (
        Wellkept(settings=Settings(url=url), clock=clock) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        soon = client.post(f"{ann}/memories", json=ENTRY, headers=headers)
        clock.ahead = DEAD_AFTER
        later = client.post(f"{ann}/memories", json=ENTRY, headers=headers)
        assert (code(soon)[1], code(later)[1]) == ("idempotency_in_progress", "idempotency_no_answer")
        assert texts(client, ann) == ["Tea at five"]


def test_key_is_kept_for_a_day_across_restarts(tmp_path: Path) -> None:
    headers, clock = header(), MovableClock()
    answers = []
    for clock.ahead in (timedelta(), DAY - timedelta(minutes=5), DAY):
        with (
            Wellkept(settings=Settings(url=str(tmp_path / "memory.db")), clock=clock) as wellkept,
            serving(wellkept) as address,
            client_of(address) as client,
        ):
            answers.append(client.post("/api/agents/ann/memories", json=ENTRY, headers=headers))
    assert_replayed(answers[0], answers[1])
    assert (answers[2].status_code, answers[2].json()["id"]) == (201, "m-2")


def test_maintenance_drops_expired_keys(client: httpx2.Client, wellkept: Wellkept, clock: MovableClock) -> None:
    client.post("/api/agents/maid/memories", json=ENTRY, headers=header()).raise_for_status()
    path = wellkept.settings.store_url.removeprefix("sqlite:///")

    def rows() -> int:
        return int(apsw.Connection(path).execute("SELECT count(*) FROM idempotency_keys").get)

    assert rows() > 0
    clock.ahead = DAY + timedelta(minutes=1)
    client.post("/api/maintenance").raise_for_status()
    assert rows() == 0


def test_expired_answers_are_dropped_without_maintenance(tmp_path: Path) -> None:
    """Also the text of a memory that was deleted since."""
    path, clock = tmp_path / "memory.db", MovableClock()
    with (
        Wellkept(settings=Settings(url=str(path)), clock=clock) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        for clock.ahead in (timedelta(), DAY):
            added = client.post("/api/agents/ann/memories", json=ENTRY, headers=header()).raise_for_status().json()
            client.delete(f"/api/agents/ann/memories/{added['id']}").raise_for_status()
        left: list[Any] = apsw.Connection(str(path)).execute("SELECT answer FROM idempotency_keys").fetchall()
    assert [added["id"].encode() in each[0] for each in left] == [True]


@pytest.mark.parametrize(
    ("path", "body"),
    [("{ann}/memories", {**ENTRY, "text": "Coffee"}), ("{ann}/memories?x=1", ENTRY), ("{ann}/recall", ENTRY)],
)
def test_key_of_another_request_is_refused(path: str, body: dict[str, str], client: httpx2.Client, ann: str) -> None:
    headers = header()
    client.post(f"{ann}/memories", json=ENTRY, headers=headers).raise_for_status()

    answer = client.post(path.format(ann=ann), json=body, headers=headers)

    assert code(answer) == (409, "idempotency_conflict")
    assert texts(client, ann) == ["Tea at five"]


@pytest.mark.parametrize("key", ["", "two words", "é".encode("latin-1"), "x" * 256])
def test_unusable_key_is_refused(key: Any, client: httpx2.Client, ann: str) -> None:
    answer = client.post(f"{ann}/memories", json=ENTRY, headers={"Idempotency-Key": key})

    assert code(answer) == (400, "invalid")
    assert "1 to 255 visible ASCII characters" in answer.json()["error"]
    assert texts(client, ann) == []


def test_key_given_twice_is_refused(client: httpx2.Client, ann: str) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert code(client.post(f"{ann}/memories", json=ENTRY, headers=headers)) == (400, "invalid")


def test_refusal_leaves_the_key_free(client: httpx2.Client, ann: str) -> None:
    headers = header()
    for body in ({**ENTRY, "text": ""}, {**ENTRY, "colour": "red"}):
        assert client.post(f"{ann}/memories", json=body, headers=headers).status_code in (400, 422)

    assert client.post(f"{ann}/memories", json=ENTRY, headers=headers).status_code == 201


def test_failure_of_the_store_leaves_the_key_free(tmp_path: Path) -> None:
    path, headers = tmp_path / "memory.db", header()
    with (
        Wellkept(settings=Settings(url=str(path), busy_timeout=0.05)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        blocking = apsw.Connection(str(path))
        blocking.execute("BEGIN IMMEDIATE")
        failed = client.post("/api/agents/ann/memories", json=ENTRY, headers=headers)
        blocking.execute("ROLLBACK")
        done, again = (client.post("/api/agents/ann/memories", json=ENTRY, headers=headers) for _ in range(2))
        assert failed.status_code == 503
        assert_replayed(done, again)
        assert texts(client, "/api/agents/ann") == ["Tea at five"]


def test_key_is_ignored_for_an_upload(client: httpx2.Client) -> None:
    """Storing the same document again changes nothing anyway."""
    headers, file = header(), {"file": ("tea.md", b"# Tea\n\nGreen.")}

    first, again = (client.post("/api/kb/documents", files=file, headers=headers) for _ in range(2))

    assert "Idempotency-Replayed" not in again.headers
    assert (first.json()["id"], first.status_code) == (again.json()["id"], 201)
    assert len(client.get("/api/kb/documents").json()["items"]) == 1


def test_large_answer_is_not_kept_but_its_request_is_not_repeated(client: httpx2.Client) -> None:
    path, headers = f"/api/chat/sessions/{uuid.uuid4().hex}/messages", header()
    turn = {"agent_id": "ann", "user": "Tea?", "assistant": "y" * MAX_ANSWER_BYTES}

    first, again = (client.post(path, json=turn, headers=headers) for _ in range(2))

    assert first.is_success, first.text
    assert len(first.content) > MAX_ANSWER_BYTES
    assert code(again) == (409, "idempotency_no_answer")
    assert len(client.get(path).json()["items"]) == 2


def test_new_api_key_is_not_kept(tmp_path: Path) -> None:
    headers = header()
    with (
        Wellkept(settings=Settings(url=str(tmp_path / "memory.db"))) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        first, again = (client.post("/api/keys", json={"scope": "read"}, headers=headers) for _ in range(2))
        assert code(again) == (409, "idempotency_no_answer")
        assert len(client.get("/api/keys").json()["items"]) == 1
        files = b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    assert first.json()["id"].encode() in files
    assert first.json()["key"].encode() not in files


def test_erased_words_are_gone_from_kept_answers(tmp_path: Path) -> None:
    write, erase = header(), header()
    with (
        Wellkept(settings=Settings(url=str(tmp_path / "memory.db"))) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        note, subject = {"text": "Qvarnström likes tea"}, {"subject": "text:Qvarnström"}
        client.post("/api/agents/ann/memories", json=note, headers=write).raise_for_status()
        receipt, again = (client.post("/api/erase", json=subject, headers=erase) for _ in range(2))
        assert_replayed(receipt, again)
        assert receipt.json()["cleared"] == {"idempotency_keys": 1}
        retried = client.post("/api/agents/ann/memories", json=note, headers=write)
        assert code(retried) == (409, "idempotency_no_answer")
        files = b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    assert "Qvarnström".encode() not in files


def test_erasure_that_takes_many_writes_gets_its_receipt_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "STEP", 1)
    with (
        Wellkept(settings=Settings(url=url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        for subject in ("agent:ann", "tenant"):
            headers = header()
            for text in ("Tea at five", "Tea at six"):
                client.post("/api/agents/ann/memories", json={"text": text}, headers=header()).raise_for_status()
            receipt, again = (client.post("/api/erase", json={"subject": subject}, headers=headers) for _ in range(2))
            assert_replayed(receipt, again)


@pytest.fixture
def keyed(wellkept: Wellkept) -> Iterator[dict[str, httpx2.Client]]:
    """Clients with keys: two of one tenant, one of another."""
    made = {
        name: wellkept.tenant(tenant).keys.create(KeyScope.WRITE).key
        for name, tenant in (("one", "acme"), ("two", "acme"), ("stranger", "other"))
    }
    with serving(wellkept, no_auth=False) as address:
        clients = {
            name: httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {made[name]}"}) for name in made
        }
        yield clients
        for client in clients.values():
            client.close()


def test_keys_belong_to_a_tenant_and_answers_to_an_api_key(keyed: dict[str, httpx2.Client], ann: str) -> None:
    headers = header()
    first = keyed["one"].post(f"{ann}/memories", json=ENTRY, headers=headers)

    assert_replayed(first, keyed["one"].post(f"{ann}/memories", json=ENTRY, headers=headers))
    assert code(keyed["two"].post(f"{ann}/memories", json=ENTRY, headers=headers)) == (409, "idempotency_conflict")
    foreign = keyed["stranger"].post(f"{ann}/memories", json=ENTRY, headers=headers)
    assert (foreign.status_code, foreign.headers.get("Idempotency-Replayed")) == (201, None)
    assert texts(keyed["one"], ann) == texts(keyed["stranger"], ann) == ["Tea at five"]


def test_tool_call_over_mcp_is_carried_out_once(client: httpx2.Client, ann: str) -> None:
    agent = ann.rpartition("/")[2]
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"text": "Tea at five"}},
    }
    headers = {**header(), "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    answers = [client.post(f"/mcp?agent={agent}", json=call, headers=headers) for _ in range(2)]

    assert_replayed(*answers)
    assert texts(client, ann) == ["Tea at five"]


@pytest.mark.parametrize("method", ["tools/call", "tools/fetch"])
def test_failure_over_mcp_leaves_the_key_free(method: str, client: httpx2.Client, ann: str) -> None:
    agent = ann.rpartition("/")[2]
    arguments = {"text": "Tea at six", "supersedes": "m-1"}
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "memory_store", "arguments": arguments}}
    headers = {**header(), "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    failed = client.post(f"/mcp?agent={agent}&sets=notes", json=call, headers=headers)
    client.post(f"{ann}/memories", json={"text": "Tea at five"}).raise_for_status()

    again = client.post(f"/mcp?agent={agent}&sets=notes", json=call, headers=headers)

    assert failed.status_code == 200, failed.text
    assert "Idempotency-Replayed" not in again.headers
    assert texts(client, ann) == (["Tea at six"] if method == "tools/call" else ["Tea at five"])


def test_agent_runs_once_and_streams_are_not_kept() -> None:
    with (
        ModelServer(says("At five.")) as endpoint,
        Wellkept(":memory:", settings=Settings(openai_model="small", openai_base_url=endpoint.url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        for is_stream in (False, True):
            headers, session = header(), f"s-{is_stream}"
            run = {"agent": "ann", "prompt": "When is tea?", "session_id": session, "stream": is_stream}
            endpoint.requests.clear()
            first, again = (client.post("/agent/run", json=run, headers=headers) for _ in range(2))
            assert first.is_success, first.text
            if is_stream:
                assert code(again) == (409, "idempotency_no_answer")
            else:
                assert_replayed(first, again)
            assert len(endpoint.requests) == 1
            assert len(client.get(f"/api/chat/sessions/{session}/messages").json()["items"]) == 2


def test_run_that_wrote_and_failed_is_not_repeated() -> None:
    with (
        ModelServer(status(500)) as endpoint,
        Wellkept(":memory:", settings=Settings(openai_model="small", openai_base_url=endpoint.url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        endpoint.script.append(calls("remember", text="Likes tea"))
        headers, run = header(), {"agent": "ann", "prompt": "I like tea."}
        first, again = (client.post("/agent/run", json=run, headers=headers) for _ in range(2))
        assert first.status_code == 502
        assert code(again) == (409, "idempotency_no_answer")
        assert texts(client, "/api/agents/ann") == ["Likes tea"]


def test_every_post_documents_the_header(client: httpx2.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method, said in methods.items():
            named = [each["name"] for each in said.get("parameters", [])]
            assert named.count("Idempotency-Key") == (method == "post"), (method, path)
