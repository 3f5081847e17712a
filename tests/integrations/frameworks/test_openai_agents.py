"""Sessions, tools and recall in whole runs of the OpenAI Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, set_tracing_disabled
from agents.memory import Session, SQLiteSession
from agents.testing import ScriptedModel, assistant_message, function_call

from tests.integrations.examples import read_expected, run_example
from tests.integrations.views import library, opened_view, view
from wellkept.integrations.openai_agents import WellkeptSession, make_function_tools, make_recall_filter

__all__ = ["library", "opened_view", "view"]

pytestmark = pytest.mark.slow
set_tracing_disabled(True)


def make_agent(memory: Any, *steps: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel([[step] for step in steps])
    return Agent(name="atlas", instructions="Be brief.", model=model, tools=make_function_tools(memory)), model


STEPS = [
    function_call("memory_store", {"text": "Lives in Oslo"}, call_id="c-1"),
    assistant_message("Noted."),
    assistant_message("In Oslo."),
]


def test_it_is_a_session_and_takes_part_in_runs_like_the_sdks_own(view: Any) -> None:
    async def run() -> list[Any]:
        found = []
        for session in (WellkeptSession("s-1", view), SQLiteSession("s-1")):
            assert isinstance(session, Session)
            agent, model = make_agent(view, *STEPS)
            await Runner.run(agent, "I live in Oslo.", session=session)
            result = await Runner.run(agent, "Where do I live?", session=session)
            assert result.final_output == "In Oslo."
            found.append((await session.get_items(), model.calls[-1].input))
        return found

    (ours, seen), (theirs, _) = asyncio.run(run())

    # The note that the second run finds is stored already, so the answers of the tool differ.
    assert [{**each, "output": ""} for each in ours] == [{**each, "output": ""} for each in theirs]
    assert seen == ours[:-1]


def test_tools_write_the_memory_of_the_agent_and_refusals_reach_the_model(view: Any, library: Any) -> None:
    broken = function_call("memory_store", {"colour": "blue"}, call_id="c-2")
    agent, model = make_agent(view, *STEPS[:1], broken, assistant_message("Done."))

    asyncio.run(Runner.run(agent, "I live in Oslo."))

    assert [each.text for each in library.list()] == ["Lives in Oslo"]
    answers = [
        json.loads(each["output"]) for each in model.calls[-1].input if each.get("type") == "function_call_output"
    ]
    assert [each["ok"] for each in answers] == [True, False]
    assert "has no argument 'colour'" in answers[1]["error"]


def test_recalled_memories_stand_in_front_of_the_message_and_are_not_kept(view: Any, library: Any) -> None:
    library.remember("Anna lives in Oslo")
    agent, model = make_agent(view, assistant_message("In Oslo."))
    session = WellkeptSession("s-2", view, session_settings=SessionSettings(limit=1))

    async def run() -> list[Any]:
        config = RunConfig(call_model_input_filter=make_recall_filter(view))
        await Runner.run(agent, "Where does Anna live?", session=session, run_config=config)
        assert len(await session.get_items()) == 1
        return await session.get_items(9)

    kept = asyncio.run(run())

    (said,) = model.calls[-1].input
    assert "Anna lives in Oslo" in said["content"][0]["text"]
    assert said["content"][1]["text"] == "Where does Anna live?"
    assert "Oslo" not in str(kept[0])


def test_a_failed_run_leaves_a_session_that_can_go_on(view: Any) -> None:
    async def run() -> None:
        session = WellkeptSession("s-3", view, remember=True)
        agent, _ = make_agent(view)
        with pytest.raises(Exception, match="script"):
            await Runner.run(agent, "Hello?", session=session)
        agent, _ = make_agent(view, assistant_message("Hi."))
        result = await Runner.run(agent, "Hello again?", session=session)
        assert result.final_output == "Hi."

    asyncio.run(run())


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    assert run_example("openai-agents", tmp_path) == read_expected("openai-agents")
