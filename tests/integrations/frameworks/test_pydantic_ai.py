"""The capability in whole runs of pydantic-ai, with its function model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ImageUrl, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from tests.integrations.examples import read_expected, run_example
from tests.integrations.views import library, opened_view, view
from wellkept.integrations.pydantic_ai import WellkeptCapability, make_toolset

__all__ = ["library", "opened_view", "view"]

pytestmark = pytest.mark.slow


@dataclass
class Deps:
    user: str


class ScriptedModel:
    """Answers with one part after the other, and keeps what it was sent."""

    def __init__(self, *parts: Any) -> None:
        self.parts, self.prompts, self.infos = list(parts), list[Any](), list[Any]()

    def __call__(self, messages: Any, info: Any) -> ModelResponse:
        self.prompts.append(messages)
        self.infos.append(info)
        return ModelResponse(parts=[self.parts.pop(0)])


def test_a_run_recalls_stores_and_remembers_for_its_user(view: Any, library: Any) -> None:
    session = f"s-{library.owner.agent}"
    store = ToolCallPart("memory_store", {"text": "Lives in Oslo"})
    model = ScriptedModel(store, TextPart("Noted."), TextPart("In Oslo."), TextPart("No idea."))
    capability = WellkeptCapability(lambda ctx: view.for_user(ctx.deps.user))
    agent = Agent(FunctionModel(model), deps_type=Deps, capabilities=[capability])

    async def run() -> list[Any]:
        prompt: list[Any] = ["I moved to Oslo", ImageUrl("https://example.org/a.png")]
        await agent.run(prompt, deps=Deps("anna"), conversation_id=session)
        runs = [
            await agent.run("Where do I live, in Oslo?", deps=Deps(user), conversation_id=f"{session}-{user}")
            for user in ("anna", "bob")
        ]
        return [each.all_messages() for each in runs]

    histories = asyncio.run(run())

    annas, bobs = (["\n".join(str(part.content) for part in each[-1].parts)][0] for each in model.prompts[-2:])
    assert "I moved to Oslo" in annas
    assert bobs == "Where do I live, in Oslo?"
    assert "moved" not in str(histories[0][0].parts)
    assert "memory_store" in (model.infos[0].instructions or "")
    assert {(each.text, each.user) for each in library.list(kind="note")} == {("Lives in Oslo", "anna")}
    assert [each.content for each in library.for_user("anna").sessions.messages(session)] == [
        "I moved to Oslo",
        "Noted.",
    ]


def test_everything_can_be_switched_off(view: Any, library: Any) -> None:
    model = ScriptedModel(TextPart("Hi."))
    capability = WellkeptCapability(view, sets=[], recall_limit=0, remember=False)

    asyncio.run(Agent(FunctionModel(model), capabilities=[capability]).run("Hello"))

    assert model.infos[0].function_tools == []
    assert not model.infos[0].instructions
    assert not library.list()


def test_the_toolset_works_alone(view: Any, library: Any) -> None:
    model = ScriptedModel(ToolCallPart("memory_store", {"text": "Lives in Oslo"}), TextPart("Noted."))
    agent = Agent(FunctionModel(model), toolsets=[make_toolset(view, ["notes"])])

    assert asyncio.run(agent.run("I live in Oslo")).output == "Noted."

    assert [each.text for each in library.list()] == ["Lives in Oslo"]


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    assert run_example("pydantic-ai", tmp_path) == read_expected("pydantic-ai")
