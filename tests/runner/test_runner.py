"""An agent at work, against an endpoint on a real socket: what it is shown, what it does, what is kept of it."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.waiting import pass_turn
from wellkept import Conflict, Invalid, ModelError, OverBudget, Settings, Wellkept
from wellkept.agent import AgentRunner, loop
from wellkept.agent.prompt import MEMORY_HEADING, MESSAGE_HEADING
from wellkept.api.wellkept import AgentMemory
from wellkept.model import AgentAnswer, AgentQuestion, Delta, Image, RunEvent, ToolUse
from wellkept.testing.fake_model import (
    ModelServer,
    breaks_off,
    calls,
    content,
    drips,
    drips_headers,
    ends,
    hangs,
    says,
    status,
    talks,
    trickles,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = 60.0  # seconds after which something will not happen any more
KEY = "sk-not-a-real-key-but-shaped-like-one"


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    """Each test has its own: a question that was given up may arrive when the next test has begun."""
    with ModelServer(says("Tabs.")) as server:
        yield server


def opened(endpoint: ModelServer, **settings: Any) -> Wellkept:
    chosen = {"openai_model": "small", "openai_base_url": endpoint.url, "openai_api_key": KEY, **settings}
    return Wellkept(":memory:", settings=Settings(**chosen), clock=lambda: NOW)


@pytest.fixture
def store(endpoint: ModelServer) -> Iterator[Wellkept]:
    with opened(endpoint) as store:
        yield store


@pytest.fixture
def atlas(store: Wellkept) -> AgentMemory:
    return store.agent("atlas")


def ask(
    store: Wellkept, prompt: str, session_id: str | None = "s-1", *, agent: str = "atlas", images: Any = ()
) -> AgentAnswer:
    question = AgentQuestion(owner=store.agent(agent).owner, prompt=prompt, session_id=session_id, images=images)
    return asyncio.run(AgentRunner(store).run(question))


def listen(store: Wellkept, prompt: str, session_id: str = "s-1", **options: Any) -> tuple[AgentAnswer, list[RunEvent]]:
    heard: list[RunEvent] = []

    async def run() -> AgentAnswer:
        async def on_event(event: RunEvent) -> None:
            heard.append(event)

        question = AgentQuestion(owner=store.agent("atlas").owner, prompt=prompt, session_id="s-1")
        return await AgentRunner(store, **options).run(question, on_event)

    return asyncio.run(run()), heard


def said(memory: AgentMemory, session_id: str = "s-1") -> list[tuple[str, str]]:
    return [(each.role.value, each.content) for each in memory.sessions.messages(session_id)]


def actions(store: Wellkept) -> list[str]:
    return [event.action for event in store.tenant().audit.list()]


def test_the_model_is_shown_memory_and_the_turn_is_kept(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    atlas.remember("Prefers tabs over spaces", tags=["preference"])
    atlas.remember("I am careful with money", kind="core")

    answer = ask(store, "Tabs or spaces?")

    assert (answer.response, answer.session_id, answer.model) == ("Tabs.", "s-1", "small")
    (path, headers, body), *_ = endpoint.requests
    sent = {name.lower(): value for name, value in headers.items()}
    assert (path, sent["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    system, user = body["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("You are atlas")
    assert "- I am careful with money" in system["content"]
    assert "remember" in system["content"], "it is told how to use its tools"
    assert user["content"].startswith(MEMORY_HEADING)
    assert "- (m-1, preference) Prefers tabs over spaces" in user["content"]
    assert user["content"].endswith(f"{MESSAGE_HEADING}\n\nTabs or spaces?")
    assert said(atlas) == [("user", "Tabs or spaces?"), ("assistant", "Tabs.")]
    assert {item.id for item in answer.recalled} == {"m-1", "m-2"}
    assert {item.block for item in answer.recalled} == {"notes", "core"}
    assert atlas.prompts.get(answer.call_id).session_id == "s-1"


def test_the_next_turn_begins_with_the_same_bytes(store: Wellkept, atlas: AgentMemory, endpoint: ModelServer) -> None:
    ask(store, "Tabs or spaces?")
    ask(store, "And how wide?")
    first, second = (body["messages"] for body in endpoint.bodies)

    assert second[0] == first[0]
    assert second[1] == {"role": "user", "content": "Tabs or spaces?"}
    assert second[2] == {"role": "assistant", "content": "Tabs."}
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]


def test_the_turn_is_remembered_and_recalled_in_another_conversation(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    endpoint.usual = says("The deployment of the billing service is on Friday.")
    ask(store, "When is the billing deployment?")
    remembered = [(each.role, each.session_id) for each in atlas.list(kind="episode")]

    ask(store, "Tell me about the billing deployment.", "s-2")

    assert remembered == [("assistant", "s-1"), ("user", "s-1")]
    assert "on Friday" in endpoint.bodies[-1]["messages"][-1]["content"]


def test_a_tool_of_memory_is_called_and_what_it_changed_is_shown_to_the_next_call(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    endpoint.script.extend([calls("remember", text="Tabs are four columns wide"), says("Noted.")])

    answer = ask(store, "Remember that tabs are four columns wide.")

    assert answer.tools == (ToolUse(name="remember", is_ok=True),)
    assert (answer.usage.requests, answer.usage.tool_calls) == (2, 1)
    assert [each.text for each in atlas.list(kind="note")] == ["Tabs are four columns wide"]
    offered = [tool["function"]["name"] for tool in endpoint.bodies[0]["tools"]]
    assert {"remember", "save_to_core", "read_detail", "recall"} <= set(offered)
    *_, asked, called, result = endpoint.bodies[1]["messages"]
    assert "- (m-1) Tabs are four columns wide" in asked["content"], "put together anew for the second call"
    assert called["tool_calls"][0]["function"]["name"] == "remember"
    assert json.loads(result["content"]) == {"ok": True, "id": "m-1"}
    assert said(atlas) == [("user", "Remember that tabs are four columns wide."), ("assistant", "Noted.")]


def test_a_refusal_of_a_tool_is_an_answer_to_the_model(store: Wellkept, endpoint: ModelServer) -> None:
    endpoint.script.extend([calls("memory_delete", id="m-99"), calls("no_such_tool"), says("There is none.")])

    answer = ask(store, "Forget m-99.")

    assert answer.response == "There is none."
    assert answer.tools[0] == ToolUse(name="memory_delete", is_ok=False)


def test_an_agent_is_asked_by_its_own_model_prompt_and_tools(store: Wellkept, endpoint: ModelServer) -> None:
    store.tenant().agents.add("atlas", model="large", system_prompt="You keep the accounts.", tools=["memory_search"])

    answer = ask(store, "Hello")

    body = endpoint.bodies[0]
    assert (body["model"], answer.model) == ("large", "large")
    assert body["messages"][0]["content"].startswith("You keep the accounts.\n\n")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["memory_search"]
    assert "save_to_core" not in body["messages"][0]["content"], "no advice about tools it does not have"

    store.tenant().agents.update("atlas", tools=["journal", "memory_search"])
    ask(store, "Hello again")
    names = [tool["function"]["name"] for tool in endpoint.bodies[-1]["tools"]]
    assert sorted(names) == ["memory_search", "save_to_core", "save_to_journal"]


def test_pieces_are_told_as_they_come(store: Wellkept, atlas: AgentMemory, endpoint: ModelServer) -> None:
    endpoint.script.extend([calls("recall", query="tabs"), talks("Ta", "bs", ".")])

    answer, heard = listen(store, "Tabs?")

    assert heard == [ToolUse(name="recall", is_ok=True), *(Delta(text=text) for text in ("Ta", "bs", "."))]
    assert answer.response == "Tabs."
    assert answer.tools == (heard[0],)
    assert said(atlas) == [("user", "Tabs?"), ("assistant", "Tabs.")]


def test_an_endpoint_that_cannot_stream_is_understood_all_the_same(store: Wellkept, endpoint: ModelServer) -> None:
    endpoint.script.append(says("Tabs, all at once."))

    answer, heard = listen(store, "Tabs?")

    assert answer.response == "Tabs, all at once."
    assert heard == [Delta(text="Tabs, all at once.")]


def test_long_answers_of_other_tools_are_captured_and_remembered_as_results(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    def read_log(lines: int) -> str:
        """Read the log of the build."""
        return "\n".join(f"line {number}: all is well with the world today" for number in range(lines))

    endpoint.script.extend([calls("read_log", lines=500), talks("All is well.")])
    answer, _ = listen(store, "Look at the build log", tools=[read_log])

    result = endpoint.bodies[1]["messages"][-1]["content"]
    assert "[MemoryRef: " in result
    assert len(result) < 500
    assert answer.tools == (ToolUse(name="read_log", is_ok=True),)
    detail = atlas.details.list(session_id="s-1")[0]
    assert detail.metadata["source"] == "read_log"
    assert atlas.details.read(detail.key, tail=1).content.startswith("line 499")
    episode = atlas.list(kind="episode", limit=1)[0]
    assert (episode.role, episode.session_id) == ("tool_result", "s-1")
    assert episode.text.startswith("The tool read_log worked: ")


def test_a_tool_that_breaks_is_told_to_the_model(store: Wellkept, endpoint: ModelServer) -> None:
    def explode() -> str:
        """Break."""
        raise ZeroDivisionError("a secret detail")

    endpoint.script.extend([calls("explode"), talks("It broke.")])
    answer, heard = listen(store, "Go", tools=[explode])

    assert heard[0] == ToolUse(name="explode", is_ok=False)
    assert answer.response == "It broke."
    assert "a secret detail" not in json.dumps(endpoint.bodies)


def test_results_that_do_not_fit_move_in_front_of_the_message(endpoint: ModelServer) -> None:
    with opened(endpoint, context_budget=4000) as store:
        atlas = store.agent("atlas")
        key = atlas.details.store("word " * 8_000, description="words").key
        endpoint.script.extend([calls("read_detail", key=key, limit=8_000) for _ in range(3)])
        endpoint.script.append(says("Many words."))

        assert ask(store, "How many words?").response == "Many words."

        for body in endpoint.bodies:
            count = atlas.prompts.count_tokens([each for each in body["messages"] if isinstance(each["content"], str)])
            assert count < 4000 + 2_200, "a budget, and one result that is never taken away"
        assert "context.truncate" in actions(store)
        assert "[MemoryRef: " in endpoint.bodies[-1]["messages"][1]["content"]


def test_a_long_argument_of_a_call_is_shown_as_a_reference_from_then_on(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    long = "A line of the log that somebody wants to keep. " * 570
    store.tenant().agents.add("atlas", tools=["details"])
    endpoint.script.extend([calls("store_memory", content=long, description="the log"), says("Kept.")])

    assert ask(store, "Keep the log").response == "Kept."

    (detail,) = atlas.details.list()
    assert detail.session_id == atlas.sessions.list()[0].id
    assert atlas.details.read(detail.key, limit=100_000).content == long
    (call,) = [each for each in endpoint.bodies[-1]["messages"] if each.get("tool_calls")]
    arguments = json.loads(call["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"content": f"[MemoryRef: {detail.key} - the log]", "description": "the log"}
    assert long[:200] not in json.dumps(endpoint.bodies[-1])


def test_long_arguments_of_other_tools_are_stored_once(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    def publish(page: str, rows: list[int], title: str) -> str:
        """Publish a page."""
        return "done"

    page, rows = "Words of the page. " * 1_000, list(range(3_000))
    endpoint.script.extend([calls("publish", page=page, rows=rows, title="Home")] * 2 + [talks("Published.")])

    answer, _ = listen(store, "Publish it", tools=[publish])

    assert answer.response == "Published."
    stored = {detail.description: detail.key for detail in atlas.details.list()}
    assert sorted(stored) == ["argument page of publish", "argument rows of publish"]
    assert atlas.details.read(stored["argument rows of publish"], limit=100_000).content == json.dumps(rows)
    for call in (each for each in endpoint.bodies[-1]["messages"] if each.get("tool_calls")):
        arguments = json.loads(call["tool_calls"][0]["function"]["arguments"])
        assert arguments["title"] == "Home"
        assert arguments["page"] == f"[MemoryRef: {stored['argument page of publish']} - argument page of publish]"


def test_many_arguments_of_medium_length_share_one_reference(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    medium = {f"part{number}": "word " * 300 for number in range(3)}
    endpoint.script.extend([calls("recall", query="x", **medium), says("Nothing.")])

    assert ask(store, "Search").response == "Nothing."

    (detail,) = atlas.details.list()
    (call,) = [each for each in endpoint.bodies[-1]["messages"] if each.get("tool_calls")]
    arguments = json.loads(call["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"arguments": f"[MemoryRef: {detail.key} - arguments of recall]"}


def test_a_long_prompt_is_shown_in_part_with_a_reference_to_the_whole(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    prompt = "What is wrong with this log?\n" + "A line of the log. " * 2_400 + "\nThat is all."

    assert ask(store, prompt).response == "Tabs."

    (detail,) = atlas.details.list()
    shown = endpoint.bodies[-1]["messages"][-1]["content"]
    assert "What is wrong with this log?" in shown
    assert "That is all." in shown
    assert f"[MemoryRef: {detail.key} - the whole message, {len(prompt):,} characters]" in shown
    assert atlas.details.read(detail.key, limit=100_000).content == prompt
    assert atlas.prompts.count_tokens(endpoint.bodies[-1]["messages"]) <= 8_000
    assert said(atlas)[0] == ("user", prompt), "the transcript keeps the whole prompt"


def test_a_model_that_only_calls_tools_is_told_to_answer(
    endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_ROUNDS", 2)
    with opened(endpoint) as store:
        endpoint.usual = calls("recall", query="x")

        with pytest.raises(ModelError, match="never answered"):
            ask(store, "Hello")

        assert len(endpoint.bodies) == 2
        assert [body.get("tool_choice") for body in endpoint.bodies][-1] == "none"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (status(401), "status 401; check openai_api_key"),
        (status(404), "status 404; check openai_base_url"),
        (status(400), "status 400"),
        (content({"nothing": "here"}), "should have answered with a message"),
        (content(b"<html>"), "should have answered with a message|failed"),
        (says(""), "should have answered with a message|returned an empty answer"),
    ],
)
def test_a_model_that_fails_leaves_no_turn_and_says_why(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer, answer: Any, sentence: str
) -> None:
    endpoint.usual = answer

    with pytest.raises(ModelError, match=sentence) as raised:
        ask(store, "the prompt itself")

    assert KEY not in str(raised.value)
    assert list(atlas.sessions.list()) == []
    event = store.tenant().audit.list()[0]
    assert event.action == "turn.fail"
    assert "s-1" in event.message
    assert "the prompt itself" not in event.message


@pytest.mark.parametrize("breaks", [breaks_off, ends], ids=["reset", "closed"])
def test_a_model_that_breaks_off_leaves_no_turn(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer, breaks: Any
) -> None:
    endpoint.usual = breaks("Half an an")
    heard: list[RunEvent] = []

    async def on_event(event: RunEvent) -> None:
        heard.append(event)

    with pytest.raises(ModelError, match="closed the connection"):
        asyncio.run(AgentRunner(store).run(AgentQuestion(owner=atlas.owner, prompt="Hi", session_id="s-1"), on_event))

    assert heard == [Delta(text="Half an an")]
    assert list(atlas.sessions.list()) == []
    assert atlas.list() == []
    assert actions(store)[0] == "turn.fail"


def test_an_endpoint_that_only_says_that_it_is_done_is_believed(store: Wellkept, endpoint: ModelServer) -> None:
    endpoint.usual = ends("Tabs", ".", last_line="[DONE]")

    answer, heard = listen(store, "Tabs or spaces?")

    assert answer.response == "Tabs."
    assert heard == [Delta(text="Tabs"), Delta(text=".")]


@pytest.mark.parametrize("limit", ["request", "run"])
@pytest.mark.parametrize("answer", [hangs, drips, drips_headers])
def test_a_model_that_says_nothing_is_not_waited_for(
    endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch, limit: str, answer: Any
) -> None:
    endpoint.usual = answer
    if limit == "run":
        monkeypatch.setattr(loop, "RUN_SECONDS", 0.3)
    with (
        opened(endpoint, openai_timeout=0.3 if limit == "request" else 60) as store,
        pytest.raises(ModelError, match="did not answer in time"),
    ):
        ask(store, "Hello")


def test_a_run_that_is_cancelled_leaves_no_turn(store: Wellkept, atlas: AgentMemory, endpoint: ModelServer) -> None:
    endpoint.usual = trickles("Half")

    async def run() -> None:
        begun = asyncio.Event()

        async def on_event(event: RunEvent) -> None:
            begun.set()

        question = AgentQuestion(owner=atlas.owner, prompt="Hi", session_id="s-1")
        task = asyncio.create_task(AgentRunner(store).run(question, on_event))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())

    assert list(atlas.sessions.list()) == []
    event = store.tenant().audit.list()[0]
    assert (event.action, "cancelled" in event.message) == ("turn.fail", True)


def test_without_a_model_the_setting_is_named(endpoint: ModelServer) -> None:
    with opened(endpoint, openai_model="") as store, pytest.raises(Invalid, match="OPENAI_MODEL"):
        ask(store, "Hello")
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("prompt", "session_id", "sentence"),
    [(" ", "s-1", "blank"), ("x" * 100_001, "s-1", "100,000"), ("hi", "a\x00b", "session"), ("hi", "", "session")],
)
def test_what_cannot_be_asked_is_refused_before_the_model_is(
    store: Wellkept, endpoint: ModelServer, prompt: str, session_id: str, sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        ask(store, prompt, session_id)
    assert endpoint.requests == []


def test_a_session_of_another_agent_is_refused_before_the_model_is_asked(
    store: Wellkept, endpoint: ModelServer
) -> None:
    store.agent("bob").log_turn("s-1", user="Hi", assistant="Hello")

    with pytest.raises(Conflict):
        ask(store, "Hello")

    assert endpoint.requests == []


def test_an_agent_that_is_not_active_is_not_run(store: Wellkept, endpoint: ModelServer) -> None:
    store.tenant().agents.add("atlas", is_active=False)

    with pytest.raises(Invalid, match="not active"):
        ask(store, "Hello")

    assert endpoint.requests == []


def test_what_may_not_be_cut_and_does_not_fit_is_refused(endpoint: ModelServer) -> None:
    with opened(endpoint, context_budget=100) as store, pytest.raises(OverBudget, match=r"\(system prompt [\d,]+, "):
        ask(store, "Hello")
    assert endpoint.requests == []


def test_a_run_that_fills_the_budget_by_itself_is_told_so(endpoint: ModelServer) -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "recall", "arguments": '{"query": "x"}'}}
    message = {"role": "assistant", "content": "thinking " * 3_000, "tool_calls": [call]}
    endpoint.script.append(content({"choices": [{"message": message}]}))
    expected = r"of 4,000 tokens .*, the calls and results of this run take [67],\d+"
    with opened(endpoint, context_budget=4_000) as store, pytest.raises(OverBudget, match=expected):
        ask(store, "Hello")


def test_a_secret_in_a_prompt_is_not_kept(store: Wellkept, atlas: AgentMemory) -> None:
    ask(store, "My key is AKIAQYLPMN5HIEXAMP42, remember?")

    assert "AKIAQYLPMN5HIEXAMP42" not in said(atlas)[0][1]


def test_images_are_shown_to_the_model_and_kept_nowhere(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    endpoint.usual = says("A dot.")
    pixel = Image(content=b"GIF89a" + b"\x01\x00\x01\x00" + b"\x00" * 20, media_type="image/gif")

    ask(store, "What is this?", images=(pixel,))

    text, image = endpoint.bodies[0]["messages"][-1]["content"]
    assert text["text"].endswith("What is this?")
    assert image["image_url"]["url"].startswith("data:image/gif;base64,R0lGODlh")
    assert said(atlas) == [("user", "What is this?"), ("assistant", "A dot.")]
    ask(store, "And now?")
    assert isinstance(endpoint.bodies[-1]["messages"][-1]["content"], str)


def test_a_task_begins_with_similar_ones_and_a_decision_with_earlier_ones(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    atlas.remember("The refund of order 7 was refused by Ann", kind="episode", category="decision")
    atlas.remember("The command make deploy failed for the shop: the disk was full", kind="episode", category="error")

    answer = ask(store, "Should we approve the refund of order 9?", None)
    first = endpoint.bodies[-1]["messages"][-1]["content"]
    ask(store, "Thank you.", answer.session_id)
    second = endpoint.bodies[-1]["messages"][-1]["content"]
    ask(store, "Deploy the shop.", answer.session_id)
    third = endpoint.bodies[-1]["messages"][-1]["content"]

    assert answer.purposes == ("task_intake", "decision_memo")
    assert "## Similar tasks in the past, what failed first" in first
    assert "## Past approvals and refusals" in first
    assert "refused by Ann" in first
    assert "##" not in second
    assert "## Which tools worked or failed for such work" in third
    assert "decision_memo" in {item.block for item in answer.recalled}
    assert answer.session_id.startswith("s-")


def test_two_runs_of_one_session_keep_both_turns(store: Wellkept, atlas: AgentMemory) -> None:
    async def both() -> None:
        runner = AgentRunner(store)
        questions = [AgentQuestion(owner=atlas.owner, prompt=prompt, session_id="s-1") for prompt in ("one", "two")]
        await asyncio.gather(*(runner.run(question) for question in questions))

    asyncio.run(both())

    turns = said(atlas)
    assert [role for role, _ in turns] == ["user", "assistant"] * 2
    assert {content for role, content in turns if role == "user"} == {"one", "two"}


def test_a_model_given_to_the_store_is_asked_without_tools(atlas: AgentMemory, endpoint: ModelServer) -> None:
    asked: list[Any] = []

    def parrot(messages: Any) -> str:
        asked.append(messages)
        return "Tabs, squawk."

    with Wellkept(":memory:", settings=Settings(), clock=lambda: NOW, model=parrot) as store:
        store.agent("atlas").remember("Prefers tabs over spaces")
        answer = ask(store, "Tabs or spaces?")
        streamed, heard = listen(store, "And now?")

        assert (answer.response, answer.model, answer.tools) == ("Tabs, squawk.", "parrot", ())
        assert (streamed.response, heard) == ("Tabs, squawk.", [Delta(text="Tabs, squawk.")])
        assert [message["role"] for message in asked[1]] == ["system", "user", "assistant", "user"]
        assert "remember" not in asked[0][0]["content"], "it is not told of tools it does not have"
        assert "Prefers tabs over spaces" in asked[0][-1]["content"]
        assert len(said(store.agent("atlas"))) == 4
        with pytest.raises(Invalid, match="cannot see images"):
            ask(store, "What is this?", images=(Image(content=b"GIF89a", media_type="image/gif"),))
    assert endpoint.requests == []


def test_a_long_conversation_is_summarised_by_one_call_before_the_answer(endpoint: ModelServer) -> None:
    settings = {"summary_enabled": True, "summary_threshold": 4, "summary_keep_last": 2}
    with opened(endpoint, **settings, openai_summary_model="short") as store:
        atlas = store.agent("atlas")
        for number in range(3):
            atlas.log_turn("s-1", user=f"Question {number}", assistant=f"Answer {number}")
        endpoint.usual = lambda handler, body: says(
            "They spoke of questions 0 and 1." if body["model"] == "short" else "Answer 3"
        )(handler, body)

        ask(store, "Question 3")

        assert [body["model"] for body in endpoint.bodies] == ["short", "small"]
        system, *turns, last = endpoint.bodies[1]["messages"]
        assert "They spoke of questions 0 and 1." in system["content"]
        assert [turn["content"] for turn in turns] == ["Question 2", "Answer 2"]
        assert last["content"].endswith("Question 3")
        assert store.tenant().sessions.get("s-1").summarized_count == 4


def test_who_cancels_while_the_turn_is_being_kept_is_too_late(endpoint: ModelServer) -> None:
    """A turn is kept and answered, or neither: what is being written is not called cancelled."""
    is_answering, is_keeping, may_go_on = threading.Event(), threading.Event(), threading.Event()

    def clock() -> datetime:
        if is_answering.is_set():
            is_keeping.set()
            may_go_on.wait(PATIENCE)
        return NOW

    settings = Settings(openai_model="small", openai_base_url=endpoint.url)
    with Wellkept(":memory:", settings=settings, clock=clock) as store:

        async def run() -> AgentAnswer:
            async def on_event(event: RunEvent) -> None:
                is_answering.set()

            question = AgentQuestion(owner=store.agent("atlas").owner, prompt="Hi", session_id="s-1")
            task = asyncio.create_task(AgentRunner(store).run(question, on_event))
            assert await asyncio.to_thread(is_keeping.wait, PATIENCE)
            task.cancel()
            await pass_turn()
            task.cancel()
            may_go_on.set()
            return await task

        assert asyncio.run(run()).response == "Tabs."
        assert said(store.agent("atlas")) == [("user", "Hi"), ("assistant", "Tabs.")]
        assert "turn.fail" not in actions(store)


def test_a_secret_a_tool_gave_away_is_not_remembered_and_the_answer_stands(
    store: Wellkept, atlas: AgentMemory, endpoint: ModelServer
) -> None:
    def read_settings() -> str:
        """Read the settings."""
        return "aws_access_key_id = AKIAQYLPMN5HIEXAMP42"

    endpoint.script.extend([calls("read_settings"), talks("There is a key in it.")])
    answer, _ = listen(store, "What is in the settings?", tools=[read_settings])

    assert answer.response == "There is a key in it."
    assert [each.role for each in atlas.list(kind="episode")] == ["assistant", "user"]
    assert len(said(atlas)) == 2
    assert "memory.refuse" in actions(store)


def test_without_its_packages_it_says_what_to_install(
    store: Wellkept, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "wellkept.agent.loop", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)

    with pytest.raises(Invalid, match=r"pip install 'wellkept\[agent\]'"):
        ask(store, "Hello")
    assert endpoint.requests == []
