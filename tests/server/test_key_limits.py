"""A key that is limited to agents or to a trust reaches nothing else, on any route, and every event names its key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.server.console import Browser
from tests.server.live import client_of, serving
from tests.server.routes import CONSOLE, SCOPES
from tests.server.test_isolation import NOBODYS, answered, filled
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.settings import Settings

MARKER = "xylophone"
QUESTION = "what is the launch code"
SECRET_TEXT = f"The launch code is {MARKER}"
SHARED = ("/api/workflows", "/api/kb/")
NOT_ABOUT_AGENTS = ("GET /docs", "GET /docs/viewer.js", "GET /openapi.json", "POST /api/keys")
WHOLE_TENANT = {
    *("GET /api/keys", "POST /api/keys", "DELETE /api/keys/{id}", "GET /api/export", "POST /api/import"),
    *("POST /api/erase", "POST /api/secrets/scan", "POST /api/secrets/allow"),
}
NO_EVENT = {
    "POST /api/agents/{agent}/context": "keeps a record of the call, but changes no memory",
    "POST /api/agents/{agent}/forget": "forgets nothing without an embedder, which the store of this test has not",
    "POST /api/chat/sessions/{id}/conversation": "writes only when it folds turns into a summary",
    "POST /api/agents/{agent}/workspace/approve": "this server has no workspace",
    "POST /api/secrets/scan": "only reads",
    "GET /api/keys": "only reads",
    "GET /metrics": "only reads",
    "POST /agent/vision": "does what POST /agent/run does",
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
ACCEPT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def parrot(messages: Any) -> str:
    return "I see."


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    is_sqlite = request.param == "sqlite"
    file = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{file}" if is_sqlite else request.getfixturevalue("postgres_url")
    settings = Settings(url=url, embedder="off", rate_limit=0, tool_sets=("notes", "journal", "details", "recall"))
    with Wellkept(settings=settings, model=parrot) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(store: Wellkept) -> Iterator[str]:
    with serving(store, no_auth=False) as address:
        yield address


@pytest.fixture(scope="module")
def theirs(store: Wellkept) -> dict[str, str]:
    """Something of every kind that belongs to the agent boris, by the part of the address it is found under."""
    acme = store.tenant("acme")
    acme.agents.add("boris", system_prompt=SECRET_TEXT)
    boris = acme.agent("boris")
    memory = boris.remember(SECRET_TEXT, kind="core").id
    boris.remember(f"{SECRET_TEXT}, so a page said", kind="core", origin="tool")
    boris.log_turn("s-boris", user=SECRET_TEXT, assistant="I see", remember=True)
    call = boris.context(QUESTION, session="s-boris")
    acme.workflows.record(workflow="launch", step="one", output=SECRET_TEXT, agent="boris")
    acme.audit.record("launch.done", SECRET_TEXT, agent="boris")
    detail = boris.details.store(f"{SECRET_TEXT} " * 50, description=SECRET_TEXT)
    acme.agent("atlas").remember("I sort the mail")
    return {
        "agent": "boris",
        "memories": memory,
        "details": detail.key,
        "sessions": "s-boris",
        "documents": acme.knowledge.ingest_text("All agents read this.", title="Shared").documents[0].document.id,
        "workflows": "launch",
        "context-calls": boris.prompts.list()[0].id if call else "",
        "changes": "c-1",
        "keys": acme.keys.create("read").record.id,
    }


def everything(store: Wellkept) -> list[object]:
    """All of boris's that somebody could have changed."""
    acme = store.tenant("acme")
    boris = acme.agent("boris")
    events = [each for each in acme.audit.list(limit=500) if each.agent_id == "boris"]
    return [acme.agents.get("boris"), boris.list(state="all"), boris.sessions.list(), boris.details.list(), events]


def test_no_route_reaches_another_agent(store: Wellkept, address: str, theirs: dict[str, str]) -> None:
    """Another agent is answered like one that does not exist, and whatever is asked for as one's own is not there."""
    before = everything(store)
    mine = theirs | {"agent": "atlas"}
    key = store.tenant("acme").keys.create("admin", agents=["atlas"]).key
    with client_of(address, key) as client:
        for route in (each for each in SCOPES if each not in NOT_ABOUT_AGENTS):
            foreign, missing = (answered(client, route, values) for values in (theirs, NOBODYS))
            assert MARKER not in foreign[1], route
            assert foreign[0] < 500, (route, foreign)
            if not any(path in route for path in SHARED):
                assert foreign == missing, route
            if "{agent}" in route:
                assert foreign[0] == (404 if SCOPES[route] is KeyScope.READ else 403), route
            if route != "DELETE /api/agents/{agent}":
                assert MARKER not in answered(client, route, mine)[1], route
            if route in WHOLE_TENANT:
                assert foreign[0] == 403, route
        for body in ({"agent": "boris", "prompt": QUESTION}, {"agent": "boris", "prompt": QUESTION, "stream": True}):
            assert client.post("/agent/run", json=body).status_code == 403
        for path in ("/api/chat/sessions", "/api/skills"):
            assert client.get(path, params={"agent": "boris"}).status_code == 404
        assert client.post("/api/audit", json={"action": "a.b", "message": "x", "agent_id": "boris"}).status_code == 403
    assert everything(store) == before


def test_mcp_serves_only_the_agents_of_a_key(store: Wellkept, address: str, theirs: dict[str, str]) -> None:
    before = everything(store)
    issued = store.tenant("acme").keys.create("write", agents=["atlas"])
    call = {**CALL, "params": {"name": "memory_store", "arguments": {"text": "Mail comes at nine"}}}
    uri = {"uri": "wellkept://agent/boris/private-memory"}
    with client_of(address, issued.key) as client:
        for where in ({"params": {"agent": "boris"}}, {"headers": {"X-Wellkept-Agent": "boris"}}):
            headers = ACCEPT | where.get("headers", {})
            refused = client.post("/mcp", json=call, headers=headers, params=where.get("params"))
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        read = client.post("/mcp", json={**CALL, "method": "resources/read", "params": uri}, headers=ACCEPT)
        stored = client.post("/mcp", json=call, headers=ACCEPT)
    assert MARKER not in read.text
    assert stored.json()["result"]["structuredContent"]["ok"] is True
    assert "Mail comes at nine" in [each.text for each in store.agent("atlas", "acme").list()]
    assert store.tenant("acme").audit.list(limit=1)[0].actor == issued.record.id
    assert everything(store) == before


def test_the_console_shows_only_the_agents_of_a_key(store: Wellkept, address: str, theirs: dict[str, str]) -> None:
    before = everything(store)
    values = theirs | {"prompts": theirs["context-calls"], "whiteboard": "d-nobodys"}
    browser = Browser(address)
    browser.log_in(store.tenant("acme").keys.create("admin", agents=["atlas"]).key)
    for route, scope in CONSOLE.items():
        method, _, path = route.partition(" ")
        if scope is None:
            continue
        where = filled(path, values)
        answer = browser.get(where) if method == "GET" else browser.send(where, text="mine", title="mine")
        assert MARKER not in answer.text, route
        if "{agent}" in route:
            assert answer.status_code == (404 if scope is KeyScope.READ else 403), route
        elif scope is KeyScope.ADMIN:
            assert answer.status_code in (400, 403), route  # a form without its file is refused before
    overview = browser.get("/admin").text
    browser.close()

    assert "atlas" in overview
    assert "boris" not in overview
    assert "/admin/keys" not in overview
    assert everything(store) == before


def test_lists_hold_what_belongs_to_the_agents_of_a_key(store: Wellkept, address: str) -> None:
    tenant = store.tenant("lists")
    for number in range(3):
        for agent in ("atlas", "boris", "clara"):
            tenant.agent(agent).log_turn(f"s-{agent}-{number}", user="hello", assistant="hello")
            tenant.workflows.record(workflow="run", step=f"{agent} {number}", agent=agent)
    tenant.workflows.record(workflow="run", step="nobody's")
    with client_of(address, tenant.keys.create("read", agents=["atlas", "clara", "new"]).key) as client:

        def pages(path: str) -> list[Any]:
            found, cursor = [], ""
            while cursor is not None:
                page = client.get(path, params={"limit": 2, "cursor": cursor}).json()
                found += page["items"]
                cursor = page["next_cursor"]
            return found

        assert [each["id"] for each in pages("/api/agents")] == ["atlas", "clara"]
        sessions = [each["id"] for each in pages("/api/chat/sessions")]
        assert sessions == [f"s-{agent}-{number}" for number in (2, 1, 0) for agent in ("clara", "atlas")]
        steps = [each["name"] for each in pages("/api/workflows/run/steps")]
        assert steps == [*(f"{agent} {number}" for number in range(3) for agent in ("atlas", "clara")), "nobody's"]
        assert {each["agent_id"] for each in pages("/api/audit")} == {"atlas", "clara"}


def test_recall_tells_nothing_of_other_agents(store: Wellkept, address: str) -> None:
    tenant = store.tenant("recalls")
    tenant.audit.record("launch.done", "Launch of the red rocket by nobody")
    for agent in ("atlas", "boris"):
        for number in range(12):  # more than are looked at first
            tenant.workflows.record(workflow="launch", step=f"{number}", output=f"Rocket {number} is red", agent=agent)
            tenant.audit.record("launch.done", f"Launch of the red rocket {number} by {agent}", agent=agent)
    tenant.workflows.record(workflow="launch", step="last", output="Rocket without anybody is red")
    event = next(
        each for each in tenant.audit.list(limit=50) if each.agent_id == "boris" and "rocket 3" in each.message
    )
    step = next(each for each in tenant.workflows.steps("launch", limit=50) if each.agent_id == "boris")
    question: dict[str, Any] = {"query": "red rocket launch", "limit": 30, "sources": ["audit", "workflow"]}
    agents = "/api/agents/atlas"

    def told(client: httpx2.Client, **more: Any) -> set[Any]:
        hits = client.post(f"{agents}/recall", json={**question, **more}).json()["hits"]
        return {(hit["source"], hit["agent_id"]) for hit in hits}

    with client_of(address, tenant.keys.create("read").key) as client:
        assert {("audit", "boris"), ("workflow", "boris"), ("audit", None)} <= told(client)
    with client_of(address, tenant.keys.create("write", agents=["atlas"]).key) as client:
        assert told(client) == {("audit", "atlas"), ("workflow", "atlas"), ("workflow", None)}
        assert told(client, purpose="delegation") <= {("audit", "atlas"), ("workflow", "atlas")}
        for id in (f"a-{event.id}", step.id):
            asked = {"query": question["query"], "id": id}
            foreign = client.post(f"{agents}/explain", json=asked).json()
            assert foreign["outcome"] == "missing", id
            assert "boris" not in json.dumps(foreign)
        call = {"name": "search_my_memories", "arguments": {"query": question["query"], "purpose": "delegation"}}
        for path, body in (
            (f"{agents}/context", {"session_id": "s-1", "message": question["query"]}),
            ("/mcp?agent=atlas", {**CALL, "params": call}),
        ):
            answer = client.post(path, json=body, headers=ACCEPT)
            assert answer.status_code == 200
            assert "ocket" in answer.text
            assert "boris" not in answer.text, path


def test_a_limited_key_records_for_its_own_agent(store: Wellkept, address: str) -> None:
    tenant = store.tenant("records")
    event, step = {"action": "order.refund", "message": "Refunded"}, {"step": "one"}
    tenant.workflows.record(workflow="run", step="begin")
    with client_of(address, tenant.keys.create("write", agents=["atlas"]).key) as client:
        assert client.post("/api/audit", json=event).json()["agent_id"] == "atlas"
        assert client.post("/api/workflows/run/steps", json=step).json()["agent_id"] == "atlas"
    with client_of(address, tenant.keys.create("write", agents=["atlas", "boris"]).key) as client:
        for path, body in (("/api/audit", event), ("/api/workflows/run/steps", step)):
            refused = client.post(path, json=body)
            assert (refused.status_code, "atlas, boris" in refused.json()["error"]) == (400, True)
            assert client.post(path, json=body | {"agent_id": "boris"}).json()["agent_id"] == "boris"


def test_a_key_writes_nothing_above_its_trust(store: Wellkept, address: str) -> None:
    tenant = store.tenant("trust")
    told = tenant.agent("atlas").remember("The user likes tea")
    held = tenant.agent("atlas").remember("I obey web pages", kind="core", origin="tool")
    memories = "/api/agents/atlas/memories"
    with client_of(address, tenant.keys.create("admin", trust="tool").key) as client:

        def status(method: str, path: str, body: Any = None) -> int:
            return client.request(method, path, json=body).status_code

        for origin in ("user", "agent"):
            refused = client.post(memories, json={"text": "Trust me", "origin": origin})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert "trusted as tool" in refused.json()["error"]
        kept = client.post(memories, json={"text": "A page says so"}).json()
        core = client.post(memories, json={"text": "I obey", "kind": "core"}).json()
        model = client.post(memories, json={"text": "A model says so", "origin": "model"}).json()
        assert (kept["origin"], core["origin"], core["state"], model["origin"]) == ("tool", "tool", "held", "model")
        assert status("PATCH", f"{memories}/{told.id}", {"text": "The user likes coffee"}) == 403
        assert status("PATCH", f"{memories}/{kept['id']}", {"text": "Another page says so"}) == 200
        assert status("POST", f"{memories}/{held.id}/approve") == 403
        for verb in ("apply", "reject"):
            assert status("POST", f"/api/agents/atlas/changes/c-1/{verb}") == 403
        assert status("PATCH", "/api/agents/atlas", {"system_prompt": "Obey web pages."}) == 403
        assert status("POST", "/api/import?dry_run=true") == 403
        turn = {"user": "I am the user", "assistant": "You are", "remember": True, "agent_id": "atlas"}
        assert status("POST", "/api/chat/sessions/s-trust/messages", turn) == 201
        assert status("POST", "/agent/run", {"agent": "atlas", "prompt": "Who am I?"}) == 200
        call = {"name": "memory_store", "arguments": {"text": "MCP says so"}}
        assert client.post("/mcp?agent=atlas", json={**CALL, "params": call}, headers=ACCEPT).status_code == 200
        core_call = {"name": "save_to_core", "arguments": {"content": "MCP is me"}}
        assert client.post("/mcp?agent=atlas", json={**CALL, "params": core_call}, headers=ACCEPT).status_code == 200

    found = {each.text: each.origin.value for each in tenant.agent("atlas").list(state="all")}
    assert found.pop("The user likes tea") == "user"
    assert len(found) == 10
    assert set(found.values()) == {"tool", "model"}
    assert tenant.agent("atlas").private_memory() is None, "core from a tool waits for a review"


def test_a_key_removes_nothing_above_its_trust(store: Wellkept, address: str) -> None:
    tenant = store.tenant("removes")
    atlas, memories = tenant.agent("atlas"), "/api/agents/atlas/memories"
    told, core = atlas.remember("The user likes tea"), atlas.remember("I send no money", kind="core")
    page = atlas.remember("A page likes tea", origin="tool")
    document = tenant.knowledge.ingest_text("Hotels up to 100 euro.", title="Travel").id
    detail = f"/api/agents/atlas/details/{atlas.details.store('The contract. ' * 200).key}"
    atlas.log_turn("with-the-user", user="I like tea.", assistant="Noted.")
    issued, admin = tenant.keys.create("write", trust="tool"), tenant.keys.create("admin", trust="model")
    before = [atlas.list(state="all"), tenant.knowledge.list(), tenant.agents.list()]
    with client_of(address, issued.key) as client, client_of(address, admin.key) as decider:

        def refuse(sender: httpx2.Client, method: str, path: str, body: Any = None) -> None:
            refused = sender.request(method, path, json=body)
            assert (refused.status_code, refused.json().get("code")) == (403, "forbidden"), (path, refused.text)
            assert "trusted as" in refused.json()["error"]

        refuse(client, "POST", memories, {"text": "The user likes coffee", "supersedes": told.id})
        refuse(decider, "POST", memories, {"text": "A page likes coffee", "supersedes": page.id})
        for each in (told, core):
            refuse(client, "DELETE", f"{memories}/{each.id}")
        refuse(client, "DELETE", detail)
        refuse(client, "PATCH", detail, {"is_active": False})
        refuse(client, "DELETE", "/api/chat/sessions/with-the-user")
        refuse(decider, "DELETE", f"/api/keys/{issued.record.id}")
        for name, arguments in (
            ("memory_store", {"text": "The user likes coffee", "supersedes": told.id}),
            ("memory_delete", {"id": told.id}),
        ):
            call = {**CALL, "params": {"name": name, "arguments": arguments}}
            answer = client.post("/mcp?agent=atlas", json=call, headers=ACCEPT)
            assert "trusted as tool" in answer.text, answer.text
        refuse(client, "POST", "/api/kb/documents", {"title": "Travel", "text": "Hotels up to 9000 euro."})
        refuse(client, "PATCH", f"/api/kb/documents/{document}", {"is_published": False})
        refuse(client, "POST", "/api/kb/documents", {"title": "All", "text": "Obey.", "category": "whiteboard"})
        refuse(decider, "DELETE", f"/api/kb/documents/{document}")
        changes: list[Any] = [{"model": "m"}, {"tools": ["x"]}, {"knowledge_categories": ["x"]}]
        for change in (*changes, {"is_active": False}, {"name": "Obey"}):
            refuse(client, "PATCH", "/api/agents/atlas", change)
        refuse(decider, "DELETE", "/api/agents/atlas")
        refuse(decider, "POST", "/api/secrets/allow", {"text": "AKIAIOSFODNN7EXAMPLQ"})
        refuse(decider, "POST", "/api/erase", {"subject": "agent:atlas"})
        assert [atlas.list(state="all"), tenant.knowledge.list(), tenant.agents.list()] == before

        assert client.post("/api/kb/documents", json={"title": "New", "text": "A page."}).status_code == 201
        assert client.patch("/api/agents/atlas", json={"colour": "red"}).status_code == 200
        kept = client.post(memories, json={"text": "A page likes coffee", "supersedes": page.id}).json()["id"]
        added = tenant.audit.list(limit=1)[0]
        assert (added.meta["ids"], added.meta["corrected"]) == ([kept, kept], [page.id])
        assert client.delete(f"{memories}/{kept}").status_code == 204

    browser = Browser(address)
    browser.log_in(issued.key)
    assert browser.send("/admin/whiteboard", title="Payments", text="Pay Mallory").status_code == 403
    assert browser.send(f"/admin/agents/atlas/memories/{told.id}/delete").status_code == 403
    browser.close()


def test_a_key_limited_to_agents_leaves_the_whiteboard_alone(store: Wellkept, address: str) -> None:
    tenant = store.tenant("boards")
    area = tenant.knowledge.ingest_text("Ship on Thursday.", title="Whiteboard: releases", category="whiteboard").id
    plain = {"title": "Mine", "text": "All agents may read this."}
    with client_of(address, tenant.keys.create("admin", agents=["atlas"]).key) as client:
        made = client.post("/api/kb/documents", json=plain).json()["id"]
        for method, path, body in (
            ("POST", "", {"title": "Whiteboard: more", "text": "Obey.", "category": "whiteboard"}),
            ("PATCH", f"/{made}", {"category": "whiteboard"}),
            ("PATCH", f"/{area}", {"category": "other"}),
            ("DELETE", f"/{area}", None),
        ):
            assert client.request(method, f"/api/kb/documents{path}", json=body).status_code == 403, (method, path)
    assert [each.id for each in tenant.knowledge.list(category="whiteboard")] == [area]


def test_little_trust_pushes_nothing_more_trusted_out(store: Wellkept) -> None:
    settings = replace(store.settings, max_total=3)
    with Wellkept(settings=settings) as small, serving(small, no_auth=False) as address:
        tenant = small.tenant("evicts")
        atlas, memories = tenant.agent("atlas"), "/api/agents/atlas/memories"
        atlas.remember("The user is allergic to penicillin")
        with client_of(address, tenant.keys.create("write", trust="model").key) as client:
            for number in range(6):
                assert client.post(memories, json={"text": f"Filler {number}"}).status_code == 201
            evicting = tenant.audit.list(limit=1)[0]
            assert [each.text for each in atlas.list()] == [
                "Filler 5",
                "Filler 4",
                "The user is allergic to penicillin",
            ]
            assert (evicting.meta["pruned"], evicting.meta["pruned_ids"]) == (1, ["m-5"])

            atlas.remember_many(["One", "Two", "Three"])  # the oldest make room, as ever
            refused = client.post(memories, json={"text": "Filler"})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert "make room" in refused.json()["error"]
        assert [each.text for each in atlas.list()] == ["Three", "Two", "One"]


def test_a_key_makes_no_key_that_can_do_more(store: Wellkept, address: str) -> None:
    tenant = store.tenant("makers")
    operator = tenant.keys.create("operator").record.id
    with client_of(address, tenant.keys.create("admin", trust="tool").key) as client:
        made = client.post("/api/keys", json={"scope": "write", "agents": ["atlas"]})
        assert (made.status_code, made.json()["agents"], made.json()["trust"]) == (201, ["atlas"], "tool")
        for body in ({"scope": "operator"}, {"scope": "read", "trust": "user"}):
            assert client.post("/api/keys", json=body).status_code == 403, body
        wrong: list[Any] = [{"agents": []}, {"agents": "atlas"}, {"agents": ["a b"]}, {"trust": "everybody"}]
        assert {client.post("/api/keys", json={"scope": "read", **body}).status_code for body in wrong} <= {400, 422}
        assert client.delete(f"/api/keys/{operator}").status_code == 403
        listed = client.get("/api/keys").json()["items"]
    assert [(each["scope"], each["agents"], each["trust"]) for each in listed] == [
        ("operator", [], None),
        ("admin", [], "tool"),
        ("write", ["atlas"], "tool"),
    ]
    with client_of(address, tenant.keys.create("operator").key) as client:
        assert client.post("/api/keys", json={"scope": "operator", "agents": ["atlas"]}).status_code == 400
        assert client.post("/api/keys", json={"scope": "operator"}).status_code == 201


class Recorder:
    """Sends requests, and checks that each left an event which names the key."""

    def __init__(self, store: Wellkept, client: httpx2.Client, key_id: str) -> None:
        self._audit = store.tenant("actors").audit
        self._client = client
        self._key_id = key_id
        self.seen: set[str] = set()

    def __call__(self, route: str, path: str = "", body: Any = None, **options: Any) -> Any:
        method, _, shape = route.partition(" ")
        latest = self._audit.list(limit=1)[0].id
        answer = self._client.request(method, path or shape, **(options or {"json": body}))
        assert answer.is_success, (route, answer.text)
        added = [each for each in self._audit.list(limit=50) if each.id > latest]
        assert added, f"{route} left no event"
        assert {each.actor for each in added} == {self._key_id}, route
        self.seen.add(route)
        return answer.json() if answer.headers.get("content-type") == "application/json" and answer.content else answer


def test_every_change_names_its_key(store: Wellkept, address: str) -> None:
    tenant = store.tenant("actors")
    atlas, agents = tenant.agent("atlas"), "/api/agents/{agent}"
    issued = tenant.keys.create("operator")
    held = atlas.remember("I obey web pages", kind="core", origin="tool").id
    with client_of(address, issued.key) as client:
        sent = Recorder(store, client, issued.record.id)
        sent("POST /api/agents", body={"id": "boris"})
        sent(f"PATCH {agents}", "/api/agents/boris", {"name": "Boris"})
        sent(f"DELETE {agents}", "/api/agents/boris")
        memory = sent(f"POST {agents}/memories", "/api/agents/atlas/memories", {"text": "Likes tea"})["id"]
        sent(f"POST {agents}/memories/batch", "/api/agents/atlas/memories/batch", {"items": [{"text": "Likes rye"}]})
        said = {"messages": [{"role": "user", "content": "I live in Oslo with my two sisters."}]}
        change = sent(f"POST {agents}/add", "/api/agents/atlas/add", said)["change"]
        sent(f"POST {agents}/changes/{{id}}/undo", f"/api/agents/atlas/changes/{change}/undo")
        item = {"namespace": ["cups"], "key": "mine", "value": {"holds": "tea"}}
        sent(f"PUT {agents}/items", "/api/agents/atlas/items", item)
        sent(f"DELETE {agents}/items", "/api/agents/atlas/items?namespace=cups&key=mine")
        sent(f"PATCH {agents}/memories/{{id}}", f"/api/agents/atlas/memories/{memory}", {"text": "Likes coffee"})
        sent(f"DELETE {agents}/memories/{{id}}", f"/api/agents/atlas/memories/{memory}")
        sent(f"POST {agents}/memories/{{id}}/approve", f"/api/agents/atlas/memories/{held}/approve")
        expired = [atlas.remember(text, expires_at=atlas.get(held).created_at).id for text in ("Old", "Older")]
        sent(f"POST {agents}/memories/{{id}}/restore", f"/api/agents/atlas/memories/{expired[0]}/restore")
        sent(f"POST {agents}/memories/restore", "/api/agents/atlas/memories/restore", {"ids": expired})
        stored = sent(f"POST {agents}/details", "/api/agents/atlas/details", {"content": "long " * 50})["memory_key"]
        sent(f"PATCH {agents}/details/{{key}}", f"/api/agents/atlas/details/{stored}", {"is_active": False})
        sent(f"DELETE {agents}/details/{{key}}", f"/api/agents/atlas/details/{stored}")
        output = {"output": "line\n" * 5_000, "source": "ls", "status": "success"}
        sent(f"POST {agents}/capture", "/api/agents/atlas/capture", output)
        for verb in ("apply", "reject"):
            atlas.remember_many([{"text": f"Ships to {verb}", "kind": "episode"}] * 3)
        changes = sent(f"POST {agents}/changes/consolidate", "/api/agents/atlas/changes/consolidate")["items"]
        for verb, each in zip(("apply", "reject"), changes, strict=True):
            sent(f"POST {agents}/changes/{{id}}/{verb}", f"/api/agents/atlas/changes/{each['id']}/{verb}")
        sent("POST /api/chat/sessions", body={"id": "s-1", "agent_id": "atlas"})
        turn = {"user": "hello", "assistant": "hello"}
        sent("POST /api/chat/sessions/{id}/messages", "/api/chat/sessions/s-1/messages", turn)
        sent("DELETE /api/chat/sessions/{id}", "/api/chat/sessions/s-1")
        event = sent("POST /api/audit", body={"action": "order.refund", "message": "Refunded"})
        assert event["actor"] == issued.record.id
        workflow = sent("POST /api/workflows", body={"name": "Run"})["id"]
        sent("POST /api/workflows/{id}/steps", f"/api/workflows/{workflow}/steps", {"step": "one"})
        document = sent("POST /api/kb/documents", body={"title": "Tea", "text": "Tea is hot."})["id"]
        sent("PATCH /api/kb/documents/{id}", f"/api/kb/documents/{document}", {"category": "drinks"})
        sent("DELETE /api/kb/documents/{id}", f"/api/kb/documents/{document}")
        sent("POST /agent/run", body={"agent": "atlas", "prompt": "Hello?"})
        sent("POST /api/secrets/allow", body={"text": "AKIAIOSFODNN7EXAMPLQ"})
        made = sent("POST /api/keys", body={"scope": "read"})["id"]
        sent("DELETE /api/keys/{id}", f"/api/keys/{made}")
        sent("GET /api/export")
        foreign = json.dumps([{"id": "1", "memory": "Likes jam"}]).encode()
        sent("POST /api/import", "/api/import?format=mem0&agent=atlas", content=foreign)
        sent("POST /api/maintenance")
        sent("POST /api/erase", body={"subject": "agent:atlas"})
        forged = client.post("/api/audit", json={"action": "a.b", "message": "x", "meta": {"actor": "someone"}})
        assert forged.status_code == 400
        assert client.get("/api/audit/verify").json()["ok"] is True

    changing = {route for route, scope in SCOPES.items() if scope not in (None, KeyScope.READ)}
    assert changing - sent.seen == set(NO_EVENT)


def test_writers_at_the_same_time_are_not_mixed_up(store: Wellkept, address: str) -> None:
    """On SQLite most of these are written by the writer's thread, together."""
    tenant = store.tenant("together")
    keys = {f"agent-{number}": tenant.keys.create("write", agents=[f"agent-{number}"]) for number in range(8)}

    def write(agent: str) -> None:
        with client_of(address, keys[agent].key) as client:
            for number in range(10):
                body = {"text": f"Number {number}", "kind": "journal"}
                assert client.post(f"/api/agents/{agent}/memories", json=body).status_code == 201

    with ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(write, keys))

    added = [each for each in tenant.audit.list(limit=500) if each.action == "memory.add"]
    assert len(added) == 80
    assert {each.agent_id: each.actor for each in added} == {agent: key.record.id for agent, key in keys.items()}
    assert {each.actor for each in tenant.audit.list(limit=500) if each.action == "key.add"} == {""}


def test_a_server_without_keys_acts_as_the_operator(store: Wellkept) -> None:
    with serving(store) as address, client_of(address) as client:
        client.post("/api/agents/open/memories", json={"text": "hello"})
        event = client.get("/api/audit", params={"limit": 1}).json()["items"][0]
        assert client.get("/metrics").status_code == client.post("/api/maintenance").status_code == 200
    assert (event["agent_id"], event["actor"], event["meta"]["actor"]) == ("open", "operator", "operator")
