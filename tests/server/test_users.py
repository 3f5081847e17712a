"""A key or request of one user reaches nothing of another user of the same agent, on any route and by no tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.server.console import Browser
from tests.server.live import client_of, serving
from tests.server.routes import CONSOLE, SCOPES
from tests.server.test_isolation import NOBODYS, answered, filled
from tests.server.test_key_limits import ACCEPT, CALL, parrot
from wellkept.api.wellkept import Wellkept
from wellkept.model import KeyScope
from wellkept.program import FORMER_NAME
from wellkept.settings import Settings
from wellkept.tools import catalog

pytestmark = pytest.mark.proves("E12")

MARKER = "xylophone"
QUESTION = "what is the launch code"
SECRET = f"The launch code is {MARKER}"
WHOLE = (
    "/api/keys",
    "/api/export",
    "/api/import",
    "/api/erase",
    "/api/secrets",
    "/api/audit",
    "/api/workflows",
    "/api/maintenance",
)
"""Routes that do not belong to one user."""
OPEN = ("GET /docs", "GET /docs/viewer.js", "GET /openapi.json", "GET /health", "GET /metrics")
MAKES_SESSIONS = {"POST /api/chat/sessions", "POST /agent/run", "POST /agent/vision"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wellkept]:
    file = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{file}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    settings = Settings(url=url, embedder="off", rate_limit=0, tool_sets=tuple(catalog.SETS))
    with Wellkept(settings=settings, model=parrot) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(store: Wellkept) -> Iterator[str]:
    with serving(store, no_auth=False) as address:
        yield address


@pytest.fixture(scope="module")
def theirs(store: Wellkept) -> dict[str, str]:
    """Something of every kind that belongs to the user u-7, by the part of the address it is found under."""
    acme = store.tenant("acme")
    atlas = acme.agent("atlas")
    mine = atlas.for_user("u-7")
    memory = mine.remember(SECRET, kind="core").id
    mine.remember(f"{SECRET}, so a page said", kind="core", origin="tool")
    mine.items.put("codes", "launch", {"name": SECRET})
    mine.items.put(("codes", MARKER), "launch", {"name": SECRET})
    mine.log_turn("s-u-7", user=SECRET, assistant="I see", remember=True)
    atlas.sessions.start("s-u-8", user="u-8")
    call = mine.context(QUESTION, session="s-u-7")
    text = "Prefers short answers with a list of the open points at the end"
    mine.remember_many([f"{text} {MARKER}", f"{text}, {MARKER}"])
    mine.remember_many([{"text": f"Ships from {MARKER}", "kind": "episode"}] * 3)
    (change,) = [each for each in mine.changes.consolidate() if each.state == "proposed"]
    detail = mine.details.store(f"{SECRET} " * 50, description=SECRET)
    acme.workflows.record(workflow="launch", step="one", output=SECRET, agent="atlas")
    acme.audit.record("launch.done", SECRET, agent="atlas")
    return {
        "agent": "atlas",
        "memories": memory,
        "details": detail.key,
        "sessions": "s-u-7",
        "documents": acme.knowledge.ingest_text("All agents read this.", title="Shared").documents[0].document.id,
        "workflows": "launch",
        "context-calls": call.id,
        "changes": change.id,
        "keys": acme.keys.create("read").record.id,
    }


def everything(store: Wellkept) -> list[object]:
    """All of u-7's that somebody could have changed."""
    mine = store.agent("atlas", "acme").for_user("u-7", shared=False)
    return [mine.list(state="all"), mine.sessions.list(), mine.details.list(), mine.changes.list(state="all")]


@pytest.mark.parametrize("how", ["key", "header", "query"])
def test_no_route_reaches_another_user(store: Wellkept, address: str, theirs: dict[str, str], how: str) -> None:
    before = everything(store)
    user = f"u-8-{how}"
    key = store.tenant("acme").keys.create("admin", user=user if how == "key" else None).key
    shared = {"agent": "atlas", "documents": theirs["documents"], "workflows": theirs["workflows"]}
    nobodys = NOBODYS | shared | {"memories": "m-7777", "changes": "c-7777"}
    with client_of(address, key) as client:
        client.headers |= {"X-Wellkept-User": user} if how == "header" else {}
        client.params = client.params.merge({"user": user} if how == "query" else {})
        for route in (each for each in SCOPES if each not in OPEN):
            if route == "DELETE /api/agents/{agent}":
                assert client.delete("/api/agents/atlas").status_code == 403
                continue
            foreign = without_ids(answered(client, route, theirs), theirs, nobodys)
            assert MARKER not in foreign[1], route
            assert foreign[0] < 500, (route, foreign)
            if how == "query" and route == "GET /api/export":
                # The parameter names the user whose records are exported.
                assert foreign[0] == 200
            elif any(path in route for path in WHOLE):
                # A body that is not valid is refused before.
                assert foreign[0] in ((403,) if SCOPES[route] is KeyScope.READ else (400, 403, 422)), (route, foreign)
            elif route in MAKES_SESSIONS:
                assert foreign[0] == (400 if "vision" in route else 409), (route, foreign)
            else:
                missing = without_ids(answered(client, route, nobodys), theirs, nobodys)
                assert foreign == missing, route
        for path, sent in (("/api/audit", {"action": "a.b", "message": "x"}), ("/api/workflows", {"name": "x"})):
            assert client.post(path, json=sent).status_code == 403
        for body in ({"agent": "atlas", "prompt": QUESTION}, {"agent": "atlas", "prompt": QUESTION, "stream": True}):
            assert MARKER not in client.post("/agent/run", json=body).text
    assert everything(store) == before


def without_ids(answer: tuple[int, str], *known: dict[str, str]) -> tuple[int, str]:
    """Leave out the ids the intruder brought along, and numbers of new records, which count for the whole agent."""
    text = re.sub(r'"[mp]-\d+"|"(message_count|position)":\d+|c-[0-9a-f]+', "…", answer[1])
    for id in sorted({each for values in known for each in values.values()}, key=len, reverse=True):
        text = text.replace(id, "…")
    return answer[0], text.replace('"…"', "…")


def test_a_request_names_a_user_in_its_header_or_body(store: Wellkept, address: str) -> None:
    tenant = store.tenant("named")
    path = "/api/agents/atlas"
    with client_of(address, tenant.keys.create("write").key) as client:
        seven = {"X-Wellkept-User": "u-7"}
        tea = client.post(f"{path}/memories", json={"text": "Drinks tea"}, headers=seven).json()
        coffee = client.post(f"{path}/memories", json={"text": "Drinks coffee", "user": "u-8"}).json()
        assert (tea["user"], coffee["user"]) == ("u-7", "u-8")

        def ids(answer: httpx2.Response) -> list[str]:
            found = answer.json()
            return [each["id"] for each in found.get("items", found.get("hits"))]

        assert ids(client.get(f"{path}/memories", headers=seven)) == [tea["id"]]
        assert ids(client.get(f"{path}/memories", params={"user": "u-8"})) == [coffee["id"]]
        question = {"query": "who drinks", "sources": ["memory"], "min_relevance": 0}
        assert ids(client.post(f"{path}/recall", json={**question, "user": "u-8"})) == [coffee["id"]]
        assert ids(client.post(f"{path}/recall", json=question, headers=seven)) == [tea["id"]]
        session = client.post("/api/chat/sessions", json={"id": "s-1", "agent_id": "atlas", "user": "u-7"}).json()
        assert session["user"] == "u-7"
        turn = {"user": "hello", "assistant": "hello", "agent_id": "atlas", "user_id": "u-8"}
        assert client.post("/api/chat/sessions/s-2/messages", json=turn).status_code == 201
        listed = {"agent": "atlas", "user": "u-8"}
        assert ids(client.get("/api/chat/sessions", params=listed)) == ["s-2"]
        assert client.get("/api/chat/sessions", params={"user": "u-8"}).status_code == 400
        shown = client.post(f"{path}/context", json={"session_id": "s-new", "message": "drinks", "user": "u-7"}).text
        assert ("tea" in shown, "coffee" in shown) == (True, False)
        assert client.get(f"{path}/context-calls").json()["items"][0]["user"] == "u-7"
        both = client.get(f"{path}/memories", params={"user": "u-8"}, headers=seven)
        assert (both.status_code, both.json()["code"]) == (403, "forbidden")
        # In Latin-1, Jörg and Järg must not become one user.
        for wrong in (b"", b"a\x01b", b"x" * 201, b"J\xf6rg"):
            assert client.get(f"{path}/memories", headers={b"X-Wellkept-User": wrong}).status_code == 400
        assert client.get(f"{path}/memories?user=J%F6rg").status_code == 400
        former = client.get(f"{path}/memories", headers={f"X-{FORMER_NAME}-User": "u-7"})
        assert (former.status_code, "X-Wellkept-User" in former.text) == (400, True)
        assert client.get(f"{path}/memories/{tea['id']}?user=u-8").status_code == 404
        assert client.get(f"{path}/memories/{tea['id']}?user=u-7&user=u-8").status_code == 400
        assert client.get(f"{path}/memories/{tea['id']}?user=u-8", headers=seven).status_code == 403
        assert client.post("/mcp?agent=atlas&user=u-7&user=u-8", json=CALL, headers=ACCEPT).status_code == 400
        header: Any = {"X-Wellkept-User": "jürgen".encode()}
        german = client.post(f"{path}/memories", json={"text": "x"}, headers=header)
        assert german.json()["user"] == "jürgen"


def test_a_limited_key_names_no_other_user(store: Wellkept, address: str) -> None:
    tenant = store.tenant("limited")
    with client_of(address, tenant.keys.create("admin").key) as client:
        made = client.post("/api/keys", json={"scope": "write", "user": "u-7"}).json()
        assert made["user"] == "u-7"
        assert client.post("/api/keys", json={"scope": "operator", "user": "u-7"}).status_code in (400, 403)
    with client_of(address, made["key"]) as client:
        assert client.post("/api/agents/atlas/memories", json={"text": "Drinks tea"}).json()["user"] == "u-7"
        for body, headers in (({"text": "x", "user": "u-8"}, {}), ({"text": "x"}, {"X-Wellkept-User": "u-8"})):
            refused = client.post("/api/agents/atlas/memories", json=body, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        same = client.get("/api/agents/atlas/memories", headers={"X-Wellkept-User": "u-7"}, params={"user": "u-7"})
        assert len(same.json()["items"]) == 1
        assert client.post("/mcp?agent=atlas&user=u-8", json=CALL, headers=ACCEPT).status_code == 403


def test_an_answer_is_repeated_only_to_its_user(store: Wellkept, address: str) -> None:
    with client_of(address, store.tenant("again").keys.create("write").key) as client:
        answers = [
            client.post(
                "/api/agents/atlas/memories",
                json={"text": "Drinks tea"},
                headers={"Idempotency-Key": "k-1", "X-Wellkept-User": user},
            )
            for user in ("u-7", "u-7", "u-8")
        ]
        # Each user has keys of its own: nobody learns of another's, or uses them up.
        assert [each.status_code for each in answers] == [201, 201, 201]
        assert [each.json()["user"] for each in answers] == ["u-7", "u-7", "u-8"]
        assert answers[0].content == answers[1].content


CALLS: dict[str, dict[str, Any]] = {
    "remember": {"text": "mine"},
    "recall": {"query": QUESTION, "limit": 20},
    "forget": {"about": f"the launch code {MARKER}"},
    "profile": {},
    "list_memories": {"limit": 100},
    "read_detail": {"key": "{details}"},
    "memory_store": {"text": "mine", "supersedes": "{memories}"},
    "memory_search": {"query": MARKER, "session_id": "{sessions}"},
    "memory_delete": {"id": "{memories}"},
    "save_to_journal": {"content": "mine"},
    "save_to_core": {"content": "mine"},
    "search_my_memories": {"query": QUESTION, "limit": 20, "min_relevance": 0},
    "search_knowledge": {"query": QUESTION},
    "store_memory": {"content": "mine", "thread_id": "{sessions}"},
    "retrieve_memory": {"memory_key": "{details}"},
    "search_memory": {"query": "launch", "thread_id": "{sessions}"},
    "memory_list": {"state": "all"},
    "memory_restore": {"ids": ["{memories}"]},
    "memory_add": {"conversation": "user: I live in Oslo", "session_id": "{sessions}"},
    "memory_changes": {"state": "all"},
    "memory_decide": {"id": "{changes}", "decision": "undo"},
    "item_put": {"namespace": "codes", "key": "launch", "value": {"name": "mine"}},
    "item_get": {"namespace": "codes", "key": "launch"},
    "item_search": {"namespace": "codes", "where": "user = 'u-7' or not user = 'u-8'"},
    "item_delete": {"namespace": "codes", "key": "launch"},
    "item_namespaces": {},
}


def arguments_of(name: str, theirs: dict[str, str]) -> dict[str, Any]:
    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(each) for each in value]
        return value.format(**theirs) if isinstance(value, str) else value

    return {argument: fill(value) for argument, value in CALLS[name].items()}


@pytest.mark.parametrize("tool", catalog.select_tools(catalog.SETS), ids=lambda tool: tool.name)
def test_no_tool_reaches_another_user(store: Wellkept, address: str, theirs: dict[str, str], tool: Any) -> None:
    before = everything(store)
    call = {**CALL, "params": {"name": tool.name, "arguments": arguments_of(tool.name, theirs)}}
    tenant = store.tenant("acme")
    by_key, free = tenant.keys.create("admin", user="u-8").key, tenant.keys.create("admin").key
    for key, path, headers in (
        (by_key, "/mcp?agent=atlas", {}),
        (by_key, "/mcp?agent=atlas&session=s-u-7", {}),
        (free, "/mcp?agent=atlas&user=u-8", {}),
        (free, "/mcp?agent=atlas", {"X-Wellkept-User": "u-8"}),
        (free, "/mcp?agent=atlas&session=s-u-8", {}),
        (free, "/mcp?agent=atlas", {"X-Wellkept-Session": "s-u-8"}),
    ):
        with client_of(address, key) as client:
            answer = client.post(path, json=call, headers={**ACCEPT, **headers})
            assert answer.status_code == 200, answer.text
            assert MARKER not in answer.text
    assert everything(store) == before


@pytest.mark.parametrize("how", ["key", "session"])
def test_no_resource_reaches_another_user(store: Wellkept, address: str, theirs: dict[str, str], how: str) -> None:
    key = store.tenant("acme").keys.create("admin", user="u-8" if how == "key" else None).key
    path = "/mcp?agent=atlas" + ("&session=s-u-8" if how == "session" else "")
    with client_of(address, key) as client:

        def send(method: str, **params: Any) -> str:
            return client.post(path, json={**CALL, "method": method, "params": params}, headers=ACCEPT).text

        assert MARKER not in send("resources/list")
        for kind in ("private-memory", "memories", f"details/{theirs['details']}", f"sessions/{theirs['sessions']}"):
            read = send("resources/read", uri=f"wellkept://agent/atlas/{kind}")
            assert MARKER not in read.replace(theirs["details"], "…")


def test_the_console_shows_only_the_user_of_a_key(store: Wellkept, address: str, theirs: dict[str, str]) -> None:
    before = everything(store)
    values = theirs | {"prompts": theirs["context-calls"], "whiteboard": "d-nobodys"}
    browser = Browser(address)
    browser.log_in(store.tenant("acme").keys.create("admin", user="u-8").key)
    for route, scope in CONSOLE.items():
        method, _, path = route.partition(" ")
        if scope is None:
            continue
        where = filled(path, values)
        answer = browser.get(where) if method == "GET" else browser.send(where, text="mine", title="mine")
        assert MARKER not in answer.text, route
        assert answer.status_code < 500, route
    overview = browser.get("/admin").text
    browser.close()
    assert "/admin/keys" not in overview
    assert everything(store) == before
