"""The same server on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept
from wellkept.settings import Settings
from wellkept.testing.fake_model import ModelServer, calls, says

CLIENTS = 8
WRITES = 5


def test_a_life_on_postgresql(postgres_url: str) -> None:
    with (
        Wellkept(settings=Settings(url=postgres_url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        assert client.get("/health").json()["engine"] == "postgres"
        assert client.post("/api/agents", json={"id": "ann", "name": "Ann"}).status_code == 201
        kept = client.post("/api/agents/ann/memories", json={"text": "Prefers tabs", "tags": ["Preference"]}).json()
        assert kept["created_at"].endswith("Z")
        assert kept.pop("similar") == []
        assert client.get("/api/agents/ann/memories", params={"tag": "preference"}).json()["items"] == [kept]

        edited = client.patch(f"/api/agents/ann/memories/{kept['id']}", json={"text": "Prefers spaces"}).json()
        assert edited["version"] == 2
        history = client.get(f"/api/agents/ann/memories/{kept['id']}/history").json()["items"]
        assert [version["text"] for version in history] == ["Prefers tabs"]
        hits = client.post("/api/agents/ann/recall", json={"query": "spaces?"}).json()["hits"]
        assert [hit["id"] for hit in hits] == [kept["id"]]
        double = client.post("/api/agents/ann/memories", json={"text": "Prefers spaces!"}).json()
        assert double["similar"] == [{"id": kept["id"], "text": "Prefers spaces"}]
        assert client.delete(f"/api/agents/ann/memories/{double['id']}").status_code == 204
        refund = {"action": "order.refund", "message": "paid", "meta": {"x": 1e16, "y": -0.0, "z": 1e308}}
        assert client.post("/api/audit", json=refund).status_code == 201
        assert client.get("/api/audit/verify").json()["ok"] is True

        assert client.delete(f"/api/agents/ann/memories/{kept['id']}").status_code == 204
        assert client.get(f"/api/agents/ann/memories/{kept['id']}").status_code == 404
        assert client.get("/api/agents/ann").json()["memories_count"]["note"] == 0


def test_many_clients_and_pages_on_postgresql(postgres_url: str) -> None:
    def write(address: str) -> set[int]:
        memory = {"text": "x", "kind": "journal"}
        with client_of(address) as client:
            return {client.post("/api/agents/bob/memories", json=memory).status_code for _ in range(WRITES)}

    with Wellkept(settings=Settings(url=postgres_url)) as wellkept, serving(wellkept) as address:
        with ThreadPoolExecutor(CLIENTS) as pool:
            assert set().union(*pool.map(write, [address] * CLIENTS)) == {201}
        found, cursor = [], ""
        with client_of(address) as client:
            while cursor is not None:
                page = client.get("/api/agents/bob/memories", params={"limit": 7, "cursor": cursor}).json()
                found += [item["id"] for item in page["items"]]
                cursor = page["next_cursor"]
    assert found == [f"m-{number}" for number in range(CLIENTS * WRITES, 0, -1)]


def test_an_agent_runs_on_postgresql(postgres_url: str) -> None:
    with (
        ModelServer(says("Tabs, as noted.")) as endpoint,
        Wellkept(settings=Settings(url=postgres_url, openai_model="small", openai_base_url=endpoint.url)) as wellkept,
        serving(wellkept) as address,
        client_of(address) as client,
    ):
        endpoint.script.append(calls("remember", text="Prefers tabs"))
        told = client.post("/agent/run", json={"agent": "lou", "prompt": "I prefer tabs."}).json()
        again = client.post("/agent/run", json={"agent": "lou", "prompt": "Which do I prefer?"}).json()

        assert (told["response"], told["tools"]) == ("Tabs, as noted.", [{"name": "remember", "ok": True}])
        assert told["session_id"] != again["session_id"]
        noted = client.get("/api/agents/lou/memories", params={"kind": "note"}).json()["items"]
        assert [each["text"] for each in noted] == ["Prefers tabs"]
        assert noted[0]["id"] in [each["id"] for each in again["recalled"]]
        assert len(client.get("/api/chat/sessions?agent=lou").json()["items"]) == 2
        assert client.get("/api/audit/verify").json()["ok"] is True
