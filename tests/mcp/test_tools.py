"""What the MCP server offers and answers, asked by the SDK's own client over its in-memory transport."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, TextContent

from wellkept import Invalid, Settings, StoreBusy, Wellkept, __version__
from wellkept.agent.run import TOOL_SETS
from wellkept.api.views import AgentReview
from wellkept.arguments import FORMER
from wellkept.model import NOTHING_FITS
from wellkept.server.mcp.client import select_sets
from wellkept.server.mcp.protocol import build_server
from wellkept.tools import catalog
from wellkept.tools.guidance import GUIDANCE, guidance

SECRET = "AKIAIOSFODNN7EXAMPLQ"  # one letter off the example everybody knows
SEED_SETS = ("notes", "journal", "recall", "details")
MEMORY_TOOLS = ("remember", "recall", "forget", "profile", "list_memories", "read_detail")
Ask = Callable[[Client], Awaitable[None]]
both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])  # with and without the `initialize` handshake


def with_client(
    store: Wellkept, ask: Ask, *, sets: Sequence[str] | None = SEED_SETS, mode: str = "legacy", agent: str = "atlas"
) -> None:
    async def run() -> None:
        async with Client(build_server(store.agent(agent), sets), mode=mode) as client:
            await ask(client)

    anyio.run(run)


def answer(result: CallToolResult) -> Any:
    """The structured content, which the text repeats. A refusal is no error of the protocol, but marked as one."""
    (text,) = result.content
    assert isinstance(text, TextContent)
    content = result.structured_content
    assert json.loads(text.text) == content
    assert result.is_error is (isinstance(content, dict) and "error" in content)
    return content


@pytest.fixture
def store() -> Any:
    with Wellkept(":memory:", settings=Settings()) as opened:
        yield opened


@both_eras
def test_every_tool_is_listed_as_the_catalogue_describes_it(store: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(catalog.TOOLS)
        for tool in listed:
            described = catalog.TOOLS[tool.name]
            assert (tool.title, tool.description) == (described.title, described.description)
            assert tool.input_schema == described.schema()
            assert tool.output_schema == described.answer_schema()
            hints = tool.annotations
            assert hints is not None
            assert hints.read_only_hint is described.is_read_only
            assert hints.destructive_hint is described.is_destructive
            assert hints.idempotent_hint is described.is_idempotent
            assert hints.open_world_hint is False

    with_client(store, ask, sets=catalog.SETS, mode=mode)


def test_the_hints_are_the_right_ones(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        assert {name for name, hint in hints.items() if hint and hint.read_only_hint} >= {
            "memory_search",
            "search_my_memories",
            "search_knowledge",
        }
        assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == {"memory_delete"}

    with_client(store, ask)


@both_eras
def test_the_server_says_who_it_is_and_how_to_use_it(store: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("wellkept", __version__)
        assert client.instructions == guidance(catalog.SETS)

    with_client(store, ask, sets=catalog.SETS, mode=mode)


@both_eras
def test_each_tool_answers(store: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        called = set()

        async def call(name: str, **arguments: Any) -> Any:
            called.add(name)
            return answer(await client.call_tool(name, arguments))

        note = "Prefers tabs, ответ — 🎉"
        assert await call("memory_store", text=note, tags=["style"], scope="user") == {"ok": True, "id": "m-1"}
        found = await call("memory_search", query="TABS")
        assert found["count"] == 1
        assert (found["memories"][0]["text"], found["memories"][0]["tags"]) == (note, ["style"])
        journal = await call("save_to_journal", content="We met on Tuesday")
        assert (journal["success"], journal["memory_type"]) == (True, "journal")
        core = await call("save_to_core", content="I am careful with money")
        assert (core["success"], core["memory_type"]) == (True, "core")
        recalled = await call("search_my_memories", query="which indentation, tabs?", limit=1)
        assert [hit["text"] for hit in recalled["results"]] == [note]
        store.tenant().knowledge.ingest("Refunds are paid within 14 days.", title="Refunds", category="policy")
        looked_up = await call("search_knowledge", query="refunds", categories=["policy"], limit=1)
        assert [hit["title"] for hit in looked_up["results"]] == ["Refunds"]
        assert await call("memory_delete", id="m-1") == {"ok": True}
        assert await call("memory_search") == {"count": 0, "memories": []}
        stored = await call("store_memory", content="line\n" * 9, description="A list", type="file_content")
        key = stored["memory_key"]
        assert stored == {"ok": True, "memory_key": key, "reference": f"[MemoryRef: {key} - A list]"}
        assert (await call("retrieve_memory", memory_key=key, tail=2))["content"] == "line\nline\n"
        assert [each["memory_key"] for each in (await call("search_memory", query="list"))["memories"]] == [key]
        assert await call("memory_list", state="expired") == {"count": 0, "memories": []}
        assert await call("memory_restore", ids=["m-2"]) == {"ok": True, "restored": 1, "ids": ["m-2"]}
        place = {"namespace": "users/7", "key": "profile"}
        assert await call("item_put", **place, value={"name": "Lena"}) == {"ok": True, "version": 1}
        lena = {**place, "value": '{"name": "Lena"}', "version": 1}
        assert await call("item_get", **place) == lena
        assert await call("item_search", namespace="users", query="Lena") == {"count": 1, "items": [lena]}
        assert await call("item_namespaces") == {"count": 1, "namespaces": ["users/7"]}
        assert await call("item_delete", **place) == {"ok": True}
        facts = await call("memory_add", conversation="user: I live in Oslo.", session_id="monday")
        assert [each["text"] for each in facts["added"]] == ["I live in Oslo."]
        (change,) = (await call("memory_changes", state="applied"))["changes"]
        assert change["id"] == facts["change"]
        assert change["text"].endswith(": I live in Oslo.")
        assert (await call("memory_decide", id=change["id"], decision="undo"))["state"] == "undone"
        kept = await call("remember", text="Keeps kosher")
        found = await call("recall", query="Which restaurant fits her diet?", limit=1)
        assert [hit["id"] for hit in found["results"]] == [kept["id"]]
        assert (await call("list_memories", limit=1))["memories"][0]["id"] == kept["id"]
        assert await call("forget", id=kept["id"]) == {"ok": True, "forgotten": [{"id": kept["id"]}]}
        assert (await call("profile", subject="Nobody"))["facts"] == []
        assert (await call("read_detail", key=key, limit=5))["content"] == "line\n"
        assert called == set(catalog.TOOLS)  # a new tool is called here, too

    with_client(store, ask, sets=catalog.SETS, mode=mode)
    assert {memory.kind for memory in store.agent("atlas").list()} == {"journal", "core"}


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("memory_store", {}, "needs the argument 'text'"),
        ("memory_store", {"text": "  "}, ""),
        ("memory_store", {"text": 7}, "must be of type string"),
        ("search_my_memories", {"query": "tea", "min_score": 0.5}, FORMER["min_score"]),
        ("search_knowledge", {"query": "tea", "min_score": 0.5}, FORMER["min_score"]),
        (
            "recall",
            {"query": "tea", "min_score": 0.5},
            "its arguments are: query, limit.",
        ),
        ("memory_store", {"text": "x" * 501}, "500"),
        ("memory_store", {"text": "ok", "colour": "red"}, "no argument 'colour'"),
        ("memory_store", {"text": "ok", "tags": "one"}, "must be of type array"),
        ("memory_store", {"text": "ok", "tags": [1]}, "list of strings"),
        ("memory_store", {"text": "ok", "scope": "galaxy"}, "must be one of"),
        ("memory_store", {"text": "nul \x00"}, "NUL"),
        ("memory_store", {"text": "ok", "supersedes": "m-9"}, "no such memory"),
        ("memory_store", {"text": "ok", "supersedes": "the old one"}, "such as m-7"),
        ("memory_delete", {"id": "m-99"}, ""),
        ("memory_delete", {"id": "../../etc/passwd"}, ""),
        ("save_to_journal", {"content": ""}, ""),
        ("search_my_memories", {"query": ""}, "blank"),
        ("item_get", {"namespace": "users/7", "key": "none"}, "no item with this key"),
        ("item_delete", {"namespace": "users/7", "key": "none"}, "no item with this key"),
        ("item_put", {"namespace": "", "key": "a", "value": {}}, "A namespace is"),
        ("item_put", {"namespace": "a", "key": "a", "value": "text"}, "must be of type object"),
        ("item_put", {"namespace": "a", "key": "a", "value": {"key": SECRET}}, "secret"),
        ("item_search", {"limit": 0}, "from 1 to 50"),
        ("item_search", {"where": "value.age >"}, "filter"),
        ("memory_store", {"text": json.loads("[" * 40 + "]" * 40)}, "nested too deeply"),
        ("search_my_memories", {"query": "x", "limit": "many"}, "must be of type integer"),
    ],
)
def test_a_refusal_is_a_normal_answer_with_a_sentence(
    store: Wellkept, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    async def ask(client: Client) -> None:
        refusal = answer(await client.call_tool(name, arguments))
        assert refusal.get("ok", False) is False
        assert sentence in refusal["error"]
        assert len(refusal["error"]) > 10

    with_client(store, ask, sets=catalog.SETS)
    assert store.agent("atlas").list() == []


@both_eras
@pytest.mark.parametrize("name", ["forget_everything", "", "x" * 10_000])
def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(store: Wellkept, name: str, mode: str) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(MCPError, match="the tools are memory_store, ") as refusal:
            await client.call_tool(name, {})
        assert refusal.value.code == INVALID_PARAMS
        assert len(str(refusal.value)) < 500

    with_client(store, ask, mode=mode)


def test_a_double_is_offered_for_merging_and_a_correction_replaces(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        async def keep(text: str, **more: Any) -> Any:
            return answer(await client.call_tool("memory_store", {"text": text, **more}))

        first = {"ok": True, "id": "m-1"}
        assert await keep("Prefers tabs over spaces") == first
        assert await keep("prefers  TABS over spaces") == first, "it is there already"
        alike = await keep("Prefers tabs over spaces!")
        assert alike.pop("hint").count("memory_delete") == 1
        assert alike == {"ok": True, "id": "m-2", "similar": [{"id": "m-1", "text": "Prefers tabs over spaces"}]}

        assert await keep("The office is in Lisbon", supersedes="") == {"ok": True, "id": "m-3"}
        assert await keep("The office is in Porto", supersedes="m-3") == {"ok": True, "id": "m-4"}
        found = answer(await client.call_tool("memory_search", {"query": "office"}))
        assert [note["id"] for note in found["memories"]] == ["m-4"]

    with_client(store, ask)


def test_a_recall_that_finds_nothing_says_how_to_see_what_comes_nearest(store: Wellkept) -> None:
    store.agent("atlas").remember("The office is in Lisbon")

    async def ask(client: Client) -> None:
        query = {"query": "zebra crossing rules"}
        nothing = answer(await client.call_tool("search_my_memories", {**query, "min_relevance": 0.9}))
        assert (nothing["count"], nothing["results"]) == (0, [])
        assert "fewer" in nothing["hint"]
        assert "note" not in nothing
        nearest = answer(await client.call_tool("search_my_memories", query))
        assert nearest["note"].startswith(NOTHING_FITS)
        assert [(each["text"], each["weak"]) for each in nearest["results"]] == [("The office is in Lisbon", True)]
        assert "hint" not in nearest

    with_client(store, ask)


@pytest.mark.parametrize("name", ["text", "tags"])
def test_a_secret_is_refused_with_this_very_sentence(store: Wellkept, name: str) -> None:
    async def ask(client: Client) -> None:
        given = {"text": SECRET} if name == "text" else {"text": "ok", "tags": [SECRET]}
        refusal = answer(await client.call_tool("memory_store", given))
        assert refusal.pop("hint").startswith("It matches the rule aws-access-key. Store the text without the secret.")
        assert refusal == {"ok": False, "error": "text appears to contain a secret — not stored"}

    with_client(store, ask)
    assert store.agent("atlas").list() == []


def test_what_is_stored_stays_stored_when_nothing_can_be_compared(
    store: Wellkept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(self: AgentReview, id: str) -> None:
        raise StoreBusy("The database is busy.")

    monkeypatch.setattr(AgentReview, "similar", busy)

    assert store.agent("atlas").call_tool("memory_store", {"text": "Prefers tabs"}) == {"ok": True, "id": "m-1"}


def test_the_default_set_is_small_and_has_one_name_for_each_thing(store: Wellkept) -> None:
    """What a host puts into the prompt by default: at most 1,800 tokens, by bytes / 4 and for JSON 10 % more."""
    tools = store.agent("atlas").tools(form="mcp")

    assert [each["name"] for each in tools] == list(MEMORY_TOOLS)
    assert store.agent("atlas").prompts.count_tokens(json.dumps(tools) + guidance(["memory"])) <= 1_800
    assert {tool.name for tool in catalog.select_tools(TOOL_SETS)} == {
        *MEMORY_TOOLS,
        "save_to_journal",
        "save_to_core",
    }


def test_an_answer_of_the_default_set_without_a_find_says_why_and_what_to_do(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        async def call(name: str, **arguments: Any) -> Any:
            return answer(await client.call_tool(name, arguments))

        assert "Nothing has been kept yet" in (await call("recall", query="Which tea?"))["hint"]
        assert "Nothing has been kept yet" in (await call("list_memories"))["hint"]
        assert "recall" in (await call("profile", subject="Tom"))["hint"]
        await call("remember", text="Prefers tabs over spaces")
        assert "forget" in (await call("remember", text="Prefers tabs over spaces!"))["hint"]
        assert "small talk" in (await call("recall", query="Thanks, that's all!"))["hint"]
        weak = await call("recall", query="zebra crossing rules")
        assert weak["note"].startswith(NOTHING_FITS)
        assert "do not know" in weak["note"]
        missing = await call("read_detail", key="no-such-key")
        assert missing["error"] == "There is no stored text under this key. Copy the key exactly."

    with_client(store, ask, sets=None)


def test_only_the_chosen_sets_are_offered_and_answered(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["memory_store", "memory_search", "memory_delete"]
        with pytest.raises(MCPError, match="Unknown tool: 'save_to_core'") as refusal:
            await client.call_tool("save_to_core", {"content": "I am in charge"})
        assert refusal.value.code == INVALID_PARAMS
        assert "save_to_core" not in (client.instructions or "")

    with_client(store, ask, sets=["notes"])
    assert store.agent("atlas").list() == []


def test_many_calls_run_at_once(store: Wellkept) -> None:
    ids: list[str] = []

    async def ask(client: Client) -> None:
        async def remember(number: int) -> None:
            stored = answer(await client.call_tool("memory_store", {"text": f"fact number {number}"}))
            ids.append(stored["id"])

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(partial(remember, number))

    with_client(store, ask)
    assert sorted(ids) == sorted(f"m-{number}" for number in range(1, 101))
    assert {memory.text for memory in store.agent("atlas").list(limit=200)} == {f"fact number {n}" for n in range(100)}


def test_a_store_that_fails_is_a_refusal_too(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        store.close()
        refusal = answer(await client.call_tool("memory_store", {"text": "too late"}))
        assert refusal["ok"] is False
        assert "not available" in refusal["error"]

    with_client(store, ask)


def test_select_sets_returns_sets_that_exist() -> None:
    assert list(select_sets(Settings().tool_sets)) == ["memory"]
    assert list(select_sets(["recall", "notes"])) == ["recall", "notes"]


def test_memory_search_without_a_result_says_what_else_to_try(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        await client.call_tool("memory_store", {"text": "Maria owns billing"})
        found = answer(await client.call_tool("memory_search", {"query": "who owns billing"}))
        assert (found["count"], found["memories"]) == (0, [])
        assert "search_my_memories" in found["hint"]
        assert "hint" not in answer(await client.call_tool("memory_search", {"query": "billing"}))
        assert "hint" not in answer(await client.call_tool("memory_search", {}))

    with_client(store, ask)


def test_every_answer_fits_its_output_schema() -> None:
    """The fields an answer may have are those of its schema; the test of each tool checks their values."""
    with Wellkept(":memory:", settings=Settings(embedder="off")) as store:
        agent = store.agent("atlas")
        store.tenant().knowledge.ingest("Refunds are paid within 14 days.", title="Refunds")
        key = catalog.call(agent, "store_memory", {"content": "line\n" * 9})["memory_key"]
        for name, arguments in (
            ("memory_store", {"text": "Prefers tabs over spaces"}),
            ("memory_store", {"text": "Prefers tabs over the spaces"}),
            ("memory_search", {"query": "nothing like it"}),
            ("memory_delete", {"id": "m-1"}),
            ("memory_delete", {"id": "m-99"}),
            ("save_to_journal", {"content": "We met"}),
            ("save_to_core", {"content": "I am careful"}),
            ("search_my_memories", {"query": "refunds", "purpose": "task_intake"}),
            ("search_knowledge", {"query": "refunds"}),
            ("store_memory", {"content": "another"}),
            ("retrieve_memory", {"memory_key": key, "grep": "line", "limit": 10}),
            ("search_memory", {"query": "line"}),
            ("item_put", {"namespace": "users/7", "key": "a", "value": {"text": "x" * 30_000}, "ttl": 60}),
            ("item_get", {"namespace": "users/7", "key": "a"}),
            ("item_search", {}),
            ("item_namespaces", {}),
            ("memory_list", {"state": "archived"}),
            ("memory_restore", {"ids": ["m-99"]}),
            ("memory_restore", {"state": "archived"}),
        ):
            schema = catalog.TOOLS[name].answer_schema()["properties"]
            types = {"string": str, "integer": int, "boolean": bool, "array": list}
            for field, value in catalog.call(agent, name, arguments).items():
                assert type(value) is types[schema[field]["type"]], (name, field)


@pytest.mark.parametrize("sets", [["notes", "nots"], [""], ["NOTES"]])
def test_an_unknown_set_is_an_error(sets: Sequence[str]) -> None:
    with pytest.raises(Invalid, match="There is no tool set"):
        select_sets(sets)


def test_offering_nothing_is_an_error() -> None:
    with pytest.raises(Invalid, match="No tools are selected"):
        select_sets([])


def test_the_guidance_speaks_of_tools_that_exist_and_of_their_own_set() -> None:
    assert set(GUIDANCE) <= set(catalog.SETS)
    for name, advice in GUIDANCE.items():
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", advice))
        assert named
        assert {catalog.TOOLS[tool].set for tool in named} == {name}


def test_the_documentation_names_every_tool_and_set() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)

    assert rows == [(tool.name, tool.set) for tool in catalog.TOOLS.values()]


def test_the_admin_set_is_offered_only_where_it_is_named() -> None:
    with Wellkept(":memory:", settings=Settings(embedder="off")) as wellkept:
        ann = wellkept.agent("ann")
        fog = ann.remember("Fog in the harbour", expires_at=wellkept.now())
        assert "memory_restore" not in str(ann.tools())
        assert [each["name"] for each in ann.tools(["admin"], form="mcp")] == [
            "memory_list",
            "memory_restore",
            "memory_add",
            "memory_changes",
            "memory_decide",
        ]

        listed = ann.call_tool("memory_list", {"state": "expired"})
        assert (listed["count"], listed["memories"][0]["id"]) == (1, fog.id)
        assert ann.call_tool("memory_restore", {"ids": ["m-99"]})["ok"] is False
        assert ann.call_tool("memory_restore", {"state": "expired"}) == {"ok": True, "restored": 1, "ids": [fog.id]}
        assert [each.text for each in ann.list()] == ["Fog in the harbour"]


def test_the_facts_of_a_conversation_are_added_and_undone(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        talk = {"conversation": "user: Hi! I'm allergic to penicillin.\nassistant: Noted."}
        shown = answer(await client.call_tool("memory_add", talk | {"dry_run": True}))
        assert (shown["added"][0]["text"], "change" in shown) == ("I'm allergic to penicillin.", False)
        added = answer(await client.call_tool("memory_add", talk))
        assert (added["added"][0]["id"], added["change"]) == ("m-1", "c-1")
        decision = {"id": "c-1", "decision": "undo"}
        assert answer(await client.call_tool("memory_decide", decision))["state"] == "undone"
        assert "undone, not applied" in answer(await client.call_tool("memory_decide", decision))["error"]
        wrong = await client.call_tool("memory_decide", {"id": "c-1", "decision": "x"})
        assert "one of: apply" in answer(wrong)["error"]

    with_client(store, ask, sets=["admin"])
    assert store.agent("atlas").list() == []


def test_facts_documents_and_memories_are_filtered(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        async def call(name: str, **arguments: Any) -> Any:
            return answer(await client.call_tool(name, arguments))

        await call("memory_store", text="Dinner in Oslo", metadata={"city": "Oslo"})
        await call("memory_store", text="Dinner in Rome", metadata={"city": "Rome"})
        found = await call("memory_search", where="metadata.city = Oslo")
        assert [(each["text"], each["metadata"]) for each in found["memories"]] == [
            ("Dinner in Oslo", {"city": "Oslo"})
        ]
        recalled = await call("search_my_memories", query="dinner", min_relevance=0, where="metadata.city = Rome")
        assert [hit["text"] for hit in recalled["results"]] == ["Dinner in Rome"]
        store.tenant().knowledge.ingest("Refunds are paid within 14 days.", title="Refunds", metadata={"lang": "en"})
        assert (await call("search_knowledge", query="refunds", where="metadata.lang = de"))["count"] == 0
        assert (await call("search_knowledge", query="refunds", where="metadata.lang = en"))["count"] == 1
        assert "wrong at character 7" in (await call("memory_search", where="tags ="))["error"]

    with_client(store, ask)
