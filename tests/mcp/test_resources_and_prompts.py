"""What a host may put into a prompt by itself: resources and prompts, asked by the SDK's own client."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

from tests.mcp.test_tools import answer, both_eras, with_client
from wellkept import Settings, Wellkept
from wellkept.api.agent import AgentMemory
from wellkept.prompt.rules_escaping import INFORMATION, wrap_block
from wellkept.recall.rules_ranking import PURPOSES
from wellkept.server.mcp.protocol import BROKEN, NOTHING_RECALLED
from wellkept.server.mcp.resources import PAGE, TEMPLATES
from wellkept.tools import catalog
from wellkept.tools.verbs import MAX_CHARS

PROFILE = "wellkept://agent/atlas/profile"
PRIVATE = "wellkept://agent/atlas/private-memory"
DETAILS = "wellkept://agent/atlas/details"
SKILL = "---\nname: greet\ndescription: How to greet people.\n---\nSay hello, and mean it.\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Wellkept]:
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "SKILL.md").write_text(SKILL)
    with Wellkept(":memory:", settings=Settings(skills=(str(tmp_path),))) as opened:
        yield opened


def texts(result: ReadResourceResult) -> list[str]:
    assert all(isinstance(each, TextResourceContents) for each in result.contents)
    return [each.text for each in result.contents if isinstance(each, TextResourceContents)]


async def refused(client: Client, uri: str) -> MCPError:
    with pytest.raises(MCPError) as refusal:
        await client.read_resource(uri)
    return refusal.value


async def ask_for_resources_and_prompts(client: Client, key: str) -> None:
    """A bit of everything, for transports to be tried with: atlas has a core memory, a failure and a stored text."""
    found = [each.uri for each in (await client.list_resources()).resources]
    assert found == [PROFILE, PRIVATE, f"{DETAILS}/{key}"]
    assert len((await client.list_resource_templates()).resource_templates) == len(TEMPLATES)
    assert "I am careful with money" in texts(await client.read_resource(PRIVATE))[0]
    assert texts(await client.read_resource(f"{DETAILS}/{key}?tail=1")) == ["two\n"]
    assert (await refused(client, "wellkept://agent/bob/private-memory")).code == INVALID_PARAMS
    assert [prompt.name for prompt in (await client.list_prompts()).prompts] == list(PURPOSES)
    (message,) = (await client.get_prompt("task_intake", {"question": "Deploy the shop"})).messages
    assert isinstance(message.content, TextContent)
    assert "The deploy of the shop failed" in message.content.text


@both_eras
def test_everything_there_is_to_read_is_listed_and_can_be_read(store: Wellkept, mode: str) -> None:
    memory = store.agent("atlas")
    memory.remember("I am careful with money", kind="core")
    memory.remember("We met on Tuesday", kind="journal")
    detail = memory.details.store("one\ntwo\nthree\n", description="A list")

    async def ask(client: Client) -> None:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert list(listed) == [PROFILE, PRIVATE, "wellkept://agent/atlas/skills/greet", f"{DETAILS}/{detail.key}"]
        shown = listed[f"{DETAILS}/{detail.key}"]
        assert (shown.name, shown.title, shown.size) == (detail.key, "A list", 14)
        assert texts(await client.read_resource(PRIVATE)) == [
            wrap_block(memory.private_memory() or "", "private_memory")
        ]
        assert "I am careful with money" in texts(await client.read_resource(PRIVATE))[0]
        assert texts(await client.read_resource("wellkept://agent/atlas/skills/greet")) == ["Say hello, and mean it."]
        assert texts(await client.read_resource(f"{DETAILS}/{detail.key}")) == ["one\ntwo\nthree\n"]

    with_client(store, ask, sets=catalog.SETS, mode=mode)


@both_eras
def test_the_templates_say_how_addresses_are_made(store: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            "wellkept://agent/{agent}/profile{?subject}",
            "wellkept://agent/{agent}/private-memory",
            "wellkept://agent/{agent}/details/{key}{?offset,limit,head,tail,context,lines,grep,json_path}",
            "wellkept://agent/{agent}/skills/{name}",
        ]

    with_client(store, ask, sets=catalog.SETS, mode=mode)


def test_the_profile_is_a_resource_of_the_default_set(store: Wellkept) -> None:
    memory = store.agent("atlas")

    async def ask(client: Client) -> None:
        assert texts(await client.read_resource(PROFILE)) == [""]
        memory.log_turn("s", user="I live in Turku. My sister Tilda is a midwife.", assistant="Noted.")
        assert PROFILE in [each.uri for each in (await client.list_resources()).resources]
        assert texts(await client.read_resource(PROFILE)) == [wrap_block(memory.profile().text, "profile")]
        (about_tilda,) = texts(await client.read_resource(f"{PROFILE}?subject=my%20sister"))
        assert "Tilda is a midwife" in about_tilda
        assert "Turku" not in about_tilda
        assert (await refused(client, "wellkept://agent/bob/profile")).code == INVALID_PARAMS
        assert len((await client.list_prompts()).prompts) == len(PURPOSES)

    with_client(store, ask, sets=None)


def test_an_agent_without_memories_has_an_empty_block(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        assert texts(await client.read_resource(PRIVATE)) == [""]

    with_client(store, ask)


def test_a_stored_text_is_read_in_parts(store: Wellkept) -> None:
    lines = "".join(f"{number} {'error' if number == 700 else 'ok'}\n" for number in range(9_000))
    key = store.agent("atlas").details.store(lines).key

    async def ask(client: Client) -> None:
        whole, uri = "", f"{DETAILS}/{key}"
        while uri:
            page = await client.read_resource(uri)
            assert len(texts(page)[0]) <= MAX_CHARS
            whole += texts(page)[0]
            uri = page.contents[1].uri if len(page.contents) > 1 else ""
        assert whole == lines
        for part, expected in (
            ("?lines=3-4", "2 ok\n3 ok\n"),
            ("?head=1", "0 ok\n"),
            ("?tail=1", "8999 ok\n"),
            ("?offset=5&limit=4", "1 ok"),
        ):
            assert texts(await client.read_resource(f"{DETAILS}/{key}{part}"))[0] == expected
        assert "700 error" in texts(await client.read_resource(f"{DETAILS}/{key}?grep=ERROR&context=0"))[0]
        assert len(texts(await client.read_resource(f"{DETAILS}/{key}?limit=999999"))[0]) == MAX_CHARS

    with_client(store, ask)


@pytest.mark.parametrize("part", ["?lines=x", "?head=-1", "?offset=abc", "?offset=٣", "?colour=red", "?head=1&tail=1"])
def test_a_part_that_cannot_be_meant_is_an_error(store: Wellkept, part: str) -> None:
    key = store.agent("atlas").details.store("one\ntwo\n").key

    async def ask(client: Client) -> None:
        refusal = await refused(client, f"{DETAILS}/{key}{part}")
        assert refusal.code == INVALID_PARAMS
        assert len(str(refusal)) > 10

    with_client(store, ask)


@pytest.mark.proves("E12")
def test_what_is_another_agents_is_answered_like_what_does_not_exist(store: Wellkept) -> None:
    bob = store.agent("bob")
    bob.remember("Bob's secret", kind="core")
    key = bob.details.store("Bob's secret").key

    async def ask(client: Client) -> None:
        for foreign, missing in (
            ("wellkept://agent/bob/private-memory", "wellkept://agent/nobody/private-memory"),
            (f"wellkept://agent/bob/details/{key}", f"wellkept://agent/nobody/details/{key}"),
            (f"{DETAILS}/{key}", f"{DETAILS}/no-such-key"),
            ("wellkept://agent/bob/skills/greet", "wellkept://agent/nobody/skills/greet"),
        ):
            refusals = [await refused(client, uri) for uri in (foreign, missing)]
            assert {refusal.code for refusal in refusals} == {INVALID_PARAMS}
            first, second = (str(each).replace("bob", "nobody").replace(key, "no-such-key") for each in refusals)
            assert first == second

    with_client(store, ask)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "wellkept://agent/atlas",
        "wellkept://agent/atlas/",
        "wellkept://agent/atlas/private-memory/more",
        "wellkept://agent/atlas/details",
        "wellkept://agent/atlas/details/",
        "wellkept://agent/atlas/details/..%2F..%2Fetc%2Fpasswd",
        "wellkept://agent/atlas/skills/nothing",
        "wellkept://agent/atlas/secrets/one",
        "wellkept://tenant/atlas/private-memory",
        "file:///etc/passwd",
        "wellkept://[agent/atlas/private-memory",
        "x" * 100_000,
    ],
)
def test_an_address_that_leads_nowhere_is_an_error(store: Wellkept, uri: str) -> None:
    async def ask(client: Client) -> None:
        refusal = await refused(client, uri)
        assert refusal.code == INVALID_PARAMS
        assert len(str(refusal)) < 500

    with_client(store, ask)


def test_an_agent_may_have_any_id_an_agent_can_have(store: Wellkept) -> None:
    memory = store.agent("jörg@work:1")
    memory.remember("I am Jörg", kind="core")

    async def ask(client: Client) -> None:
        (private, *_) = (await client.list_resources()).resources
        assert private.uri == f"wellkept://agent/{quote('jörg')}@work:1/private-memory"
        assert "I am Jörg" in texts(await client.read_resource(private.uri))[0]

    with_client(store, ask, agent="jörg@work:1")


def test_a_long_list_comes_in_pages(store: Wellkept) -> None:
    keys = [store.agent("atlas").details.store(f"text {number}").key for number in range(2 * PAGE + 1)]

    async def ask(client: Client) -> None:
        found, cursor, pages = [], None, 0
        while True:
            page = await client.list_resources(cursor=cursor)
            found += [each.name for each in page.resources]
            cursor, pages = page.next_cursor, pages + 1
            if cursor is None:
                break
        assert pages == 3
        assert found == ["private-memory", "greet", *reversed(keys)]
        with pytest.raises(MCPError) as refusal:
            await client.list_resources(cursor="no-such-key")
        assert refusal.value.code == INVALID_PARAMS

    with_client(store, ask)


def test_the_sets_decide_what_can_be_read_and_asked(store: Wellkept) -> None:
    store.agent("atlas").details.store("one")

    async def ask(client: Client) -> None:
        assert [each.name for each in (await client.list_resources()).resources] == ["greet"]
        assert [each.name for each in (await client.list_resource_templates()).resource_templates] == ["skills"]
        assert (await client.list_prompts()).prompts == []
        assert (await refused(client, PRIVATE)).code == INVALID_PARAMS
        with pytest.raises(MCPError, match="Unknown prompt") as refusal:
            await client.get_prompt("task_intake", {"question": "x"})
        assert refusal.value.code == INVALID_PARAMS

    with_client(store, ask, sets=["notes"])


@both_eras
def test_there_is_a_prompt_for_each_purpose(store: Wellkept, mode: str) -> None:
    async def ask(client: Client) -> None:
        listed = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in listed] == list(PURPOSES)
        for prompt in listed:
            (argument,) = prompt.arguments or []
            assert (argument.name, argument.required) == ("question", True)
            assert prompt.title == PURPOSES[prompt.name].heading

    with_client(store, ask, mode=mode)


@both_eras
def test_a_prompt_is_what_is_recalled_and_the_question(store: Wellkept, mode: str) -> None:
    memory, tenant = store.agent("atlas"), store.tenant()
    memory.remember("The deploy of the shop failed: the disk was full", kind="episode", category="error")
    memory.remember("The command npm audit worked for the shop", kind="episode", role="tool_result")
    memory.remember("The deploy of the shop was approved by Ann", kind="episode", category="decision")
    memory.remember("The post about the shop had 900 views", kind="episode")
    tenant.workflows.record(workflow="release", step="deploy", output="Deployed the shop", agent="bob")
    expected = {
        "task_intake": "the disk was full",
        "tool_selection": "npm audit worked",
        "decision_memo": "approved by Ann",
        "content": "900 views",
        "delegation": "bob: 1 of 1 went well",
    }
    assert set(expected) == set(PURPOSES)

    async def ask(client: Client) -> None:
        for name, words in expected.items():
            prompt = await client.get_prompt(name, {"question": "  Deploy the shop "})
            (message,) = prompt.messages
            assert isinstance(message.content, TextContent)
            text = message.content.text
            assert (message.role, prompt.description) == ("user", PURPOSES[name].heading)
            assert text.startswith(f"{INFORMATION}\n## {PURPOSES[name].heading}\n- (")
            assert words in text
            assert text.endswith("\n[End of what was recalled]\n\nDeploy the shop")

    with_client(store, ask, mode=mode)


def test_a_prompt_says_when_nothing_is_remembered(store: Wellkept) -> None:
    async def ask(client: Client) -> None:
        (message,) = (await client.get_prompt("delegation", {"question": "Who?"})).messages
        assert isinstance(message.content, TextContent)
        assert message.content.text == f"## {PURPOSES['delegation'].heading}\n{NOTHING_RECALLED}\n\nWho?"

    with_client(store, ask)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("no_such_prompt", {"question": "x"}),
        ("task_intake", {}),
        ("task_intake", {"question": "  "}),
        ("task_intake", {"question": "x", "limit": "5"}),
    ],
)
def test_a_prompt_that_cannot_be_meant_is_an_error(store: Wellkept, name: str, arguments: dict[str, str]) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(MCPError) as refusal:
            await client.get_prompt(name, arguments)
        assert refusal.value.code == INVALID_PARAMS

    with_client(store, ask)


def test_no_answer_is_longer_than_a_prompt_can_bear(store: Wellkept) -> None:
    memory, tenant = store.agent("atlas"), store.tenant()
    memory.details.store("x" * 100)
    for number in range(20):
        memory.remember(f"About the zebra {number}: " + "very long " * 900, kind="episode")
        tenant.workflows.record(
            workflow=f"zebra {number}", step="look", output=f"A zebra {number} " + "z" * 90_000, agent="atlas"
        )

    async def ask(client: Client) -> None:
        for limit in (1, 5, 20):
            found = await client.call_tool("search_my_memories", {"query": "zebra", "limit": limit})
            results = answer(found)["results"]
            assert len(results) == limit
            assert sum(len(each["text"]) for each in results) <= MAX_CHARS
            for each in results:
                if "total" in each:
                    assert each["text"].endswith("…")
                    assert each["total"] > len(each["text"])
        (message,) = (await client.get_prompt("task_intake", {"question": "zebra"})).messages
        assert isinstance(message.content, TextContent)
        assert len(message.content.text) < MAX_CHARS + 500

    with_client(store, ask)


@both_eras
def test_a_store_that_fails_is_an_error_without_anybodys_text(
    store: Wellkept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    def broken(self: AgentMemory, *given: object, **more: object) -> None:
        raise KeyError("Prefers tabs")

    monkeypatch.setattr(AgentMemory, "private_memory", broken)

    async def ask(client: Client) -> None:
        refusal = await refused(client, PRIVATE)
        assert (refusal.code, str(refusal)) == (INTERNAL_ERROR, BROKEN)
        store.close()
        refusal = await refused(client, f"{DETAILS}/some-key")
        assert refusal.code == INTERNAL_ERROR
        assert "not available" in str(refusal)

    with_client(store, ask, mode=mode)
    assert "resources/read broke" in caplog.text


def test_the_documentation_names_every_resource_and_prompt() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")

    addresses = re.findall(r"^\| `(wellkept://\S+)` \|", page, re.MULTILINE)
    assert addresses == [each.uri_template.partition("{?")[0] for each in TEMPLATES.values()]
    rows = re.findall(r"^\| `(\w+)` \| [^`\n]*\|$", page, re.MULTILINE)
    assert [name for name in rows if name in PURPOSES] == list(PURPOSES)


def test_what_is_shown_for_the_files_of_hosts_can_be_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    shown = {form: re.findall(rf"^```{form}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) for form in ("json", "toml")}

    assert len(shown["json"]) >= 5
    servers = [
        server
        for text in shown["json"]
        for name in ("mcpServers", "servers", "context_servers")
        for server in json.loads(text).get(name, {}).values()
    ]
    servers += [server for text in shown["toml"] for server in tomllib.loads(text)["mcp_servers"].values()]
    assert len(servers) >= 6
    for server in servers:
        if "url" in server:
            assert server["url"].endswith("/mcp?agent=atlas")
        else:
            assert (server["command"], server["args"][0]) == ("wellkept", "mcp")
