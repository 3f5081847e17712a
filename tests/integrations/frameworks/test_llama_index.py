"""The memory block inside LlamaIndex's `Memory` and in a whole turn of a chat engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import Memory

from tests.integrations.examples import read_expected, run_example
from tests.integrations.views import library, opened_view, view
from wellkept.integrations.llama_index import WellkeptMemoryBlock

__all__ = ["library", "opened_view", "view"]

pytestmark = pytest.mark.slow


def test_what_leaves_the_history_is_remembered_and_recalled_elsewhere(view: Any, library: Any) -> None:
    names = [f"{day}-{library.owner.agent}" for day in ("monday", "tuesday")]

    async def run() -> list[Any]:
        block = WellkeptMemoryBlock(memory=view.for_user("anna"))
        monday, tuesday = (
            Memory.from_defaults(session_id=name, token_limit=400, chat_history_token_ratio=0.1, memory_blocks=[block])
            for name in names
        )
        for text in ("I live in Oslo. The wifi password is Falcon#77", "What is new? " * 30):
            await monday.aput(ChatMessage(role="user", content=text))
            await monday.aput(ChatMessage(role="assistant", content="I see. " * 5))
        return await tuesday.aget(input="Where do I live?")

    prompt = asyncio.run(run())

    said = library.for_user("anna").sessions.messages(names[0])[0].content
    assert said == "I live in Oslo. The wifi password is [secret removed: password]"
    assert "I live in Oslo." in prompt[0].content


def test_a_chat_engine_asks_its_model_with_the_memories(view: Any, library: Any) -> None:
    library.remember("Anna lives in Oslo")
    memory = Memory.from_defaults(session_id="s", memory_blocks=[WellkeptMemoryBlock(memory=view)])
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)

    # This model answers with what it was sent.
    answer = asyncio.run(engine.achat("Where does Anna live?"))

    assert "Anna lives in Oslo" in str(answer)


def test_unpaired_messages_are_remembered_too_and_odd_ones_do_no_harm(view: Any, library: Any) -> None:
    block = WellkeptMemoryBlock(memory=view)
    messages = [
        ChatMessage(role="assistant", content="Welcome to the harbour!"),
        ChatMessage(role="tool", content="42"),
        ChatMessage(role="user", content="My password is: Falcon#77"),
    ]

    async def run() -> str:
        await block.aput(messages)
        await block.aput([])
        assert await block.aget([]) == ""
        assert await block.aget([ChatMessage(role="user", content=" \x00 ")]) == ""
        return await block.aget([ChatMessage(role="user", content="Tell me about the harbour")])

    assert "Welcome to the harbour!" in asyncio.run(run())
    assert [each.text for each in library.list()] == ["Welcome to the harbour!"]


def test_a_block_that_is_too_long_loses_its_last_lines() -> None:
    block = WellkeptMemoryBlock(memory=None, priority=1)
    content = "## What you remember\n- (memory m-1) first\n- (memory m-2) second"

    assert asyncio.run(block.atruncate(content, 3)) == "## What you remember\n- (memory m-1) first"
    assert asyncio.run(block.atruncate(content, 100)) is None


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    assert run_example("llama-index", tmp_path) == read_expected("llama-index")
