"""Starting and stopping: refusals in words, and nothing acknowledged is ever lost."""

from __future__ import annotations

import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.server.live import PROGRAM, ServerProcess, client_of, wait_until
from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid
from wellkept.server.run import listening, serve
from wellkept.settings import Settings

CLIENTS = 16
WRITES = 15


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_let_in_only_when_there_are_keys(host: str) -> None:
    with pytest.raises(Invalid, match="wellkept admin keys create --scope operator"):
        serve(Settings(url=":memory:", host=host, port=0), no_auth=False)


def test_the_first_start_makes_an_admin_key_and_shows_it_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with ServerProcess(url, no_auth=False, lines=7) as server:
        key = (tmp_path / "memory.db.admin-key").read_text().strip()
        with client_of(server.address, key) as client:
            made = client.post("/api/keys", json={"scope": "read"})
        with client_of(server.address) as stranger:
            refused = stranger.get("/api/agents")
        _, out, errors = server.stop()

    assert server.said[1] == f"REST      {server.address}/api  (by key)"
    assert server.said[4].startswith(f"Console   {server.address}/admin/open/")
    assert key not in server.said[4], "addresses end up in histories"
    assert server.said[5] == f"Admin key {key}"
    assert server.said[6] == f"          shown this once; kept in {tmp_path / 'memory.db.admin-key'}"
    assert stat.S_IMODE((tmp_path / "memory.db.admin-key").stat().st_mode) == 0o600
    assert (made.status_code, refused.status_code) == (201, 401)
    assert key not in out + errors

    with ServerProcess(url, no_auth=False) as server:
        with client_of(server.address, key) as client:
            assert client.get("/api/agents").status_code == 200
        _, out, _ = server.stop()
    assert key not in "".join(server.said) + out


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", ""])
def test_without_a_login_it_listens_on_this_machine_only(host: str) -> None:
    with pytest.raises(Invalid, match="this machine only"):
        serve(Settings(url=":memory:", host=host), no_auth=True)


def test_a_taken_port_is_named_before_the_store_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Invalid, match=f"Port {port} is in use by another program; choose another one with --port"):
            serve(Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", port=port), no_auth=True)
    assert not (tmp_path / "memory.db").exists()


def test_what_many_clients_wrote_at_once_is_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with ServerProcess(url) as server:
        assert server.said == [
            f"Memories  {url}",
            f"REST      {server.address}/api  (tenant default, no login)",
            f"MCP       {server.address}/mcp",
            f"Reference {server.address}/docs",
            f"Console   {server.address}/admin",
        ]
        with ThreadPoolExecutor(CLIENTS) as pool:
            written = pool.map(write_some, [server.address] * CLIENTS, range(CLIENTS))
            ids = [id for each in written for id in each]
        code, out, errors = server.stop()

    assert (code, out, errors) == (0, "Stopped; everything is stored.\n", "")
    assert len(set(ids)) == CLIENTS * WRITES
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"], "the store was closed in good order"
    with_sample = PROGRAM.replace("no_auth=", "has_sample=True, no_auth=")
    with ServerProcess(url, program=(with_sample, url, "True")) as server, client_of(server.address) as client:
        kept = client.get("/api/agents/shared/memories", params={"limit": 500}).json()["items"]
        found = client.post("/api/agents/sample/recall", json={"query": "what must Lena never eat?", "user": "lena"})
    assert "hazelnuts" in found.json()["hits"][0]["text"], "sample data is there when the server begins"
    assert {memory["text"] for memory in kept} == {f"{n}/{count}" for n in range(CLIENTS) for count in range(WRITES)}


def write_some(address: str, number: int) -> list[str]:
    """The ids of what was acknowledged."""
    with client_of(address) as client:
        answers = [
            client.post("/api/agents/shared/memories", json={"text": f"{number}/{count}", "kind": "episode"})
            for count in range(WRITES)
        ]
    assert {answer.status_code for answer in answers} == {201}
    return [answer.json()["id"] for answer in answers]


def test_told_to_stop_under_load_it_loses_nothing_it_has_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with ServerProcess(url) as server, ThreadPoolExecutor(CLIENTS) as pool:
        writing = [pool.submit(write_until_it_stops, server.address, number) for number in range(CLIENTS)]
        with client_of(server.address) as client:
            wait_until(lambda: len(client.get("/api/agents/shared/memories").json()["items"]) >= 2 * CLIENTS)
        code, _, errors = server.stop()
        acknowledged = {text for each in writing for text in each.result()}

    assert (code, errors) == (0, "")
    assert len(acknowledged) >= 2 * CLIENTS
    with Wellkept(settings=Settings(url=url)) as wellkept:
        stored = {memory.text for memory in wellkept.agent("shared").list(limit=500)}
    assert acknowledged <= stored
    assert len(stored - acknowledged) <= CLIENTS, "of each client at most the one whose answer did not arrive"


def write_until_it_stops(address: str, number: int) -> list[str]:
    """What was acknowledged."""
    written: list[str] = []
    with client_of(address) as client:
        for count in range(30):
            text = f"{number}/{count}"
            try:
                answer = client.post("/api/agents/shared/memories", json={"text": text, "kind": "episode"})
            except httpx2.TransportError:
                break
            assert answer.status_code == 201
            written.append(text)
    return written


def test_answers_are_not_held_back_for_40_ms() -> None:
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP, "asyncio sets TCP_NODELAY only on these"


def test_a_password_is_not_printed(postgres_url: str) -> None:
    with ServerProcess(postgres_url) as server:
        code, _, errors = server.stop()

    assert (code, errors) == (0, "")
    assert server.said[0].startswith("Memories  postgresql://")
    assert ":***@" in server.said[0]
