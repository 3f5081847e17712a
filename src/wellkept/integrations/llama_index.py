"""Memory block for LlamaIndex's `Memory`: recalls for the latest message, and remembers what leaves the chat history.

Needs the package `llama-index-core`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from wellkept.integrations.plans import Plan, call_verb, log_turn, run_plan_async
from wellkept.language.text import clean_text

DEFAULT_SESSION = "llama-index"


class WellkeptMemoryBlock(BaseMemoryBlock[str]):
    """Block for `Memory.from_defaults(memory_blocks=[WellkeptMemoryBlock(memory=atlas)])`.

    `memory` is an agent's memory, or that of one of its users (`for_user`). Messages are remembered as turns of the
    conversation that has the id of LlamaIndex's session.
    """

    name: str = Field(default="wellkept", description="Name of the block in the prompt.")
    memory: Any = Field(description="Memory of an agent: of Wellkept, AsyncWellkept, Client or AsyncClient.")
    limit: int = Field(default=5, description="Largest number of memories in the prompt.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = (message.content or "" for message in reversed(messages or []) if message.role == "user")
        query = clean_text(next((text for text in said if text.strip()), ""))
        if not query.strip():
            return ""
        return await call_verb(self.memory, "prompts.recall_block", query, limit=self.limit) or ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await run_plan_async(self.memory, _log(messages))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the memories that match least, a line at a time."""
        lines, room = content.split("\n"), len(content) - tokens_to_truncate * CHARS_PER_TOKEN
        while lines and len("\n".join(lines)) > room:
            lines.pop()
        # The first line is the heading.
        return "\n".join(lines) if len(lines) > 1 else None


def _log(messages: Sequence[ChatMessage]) -> Plan[None]:
    """Log messages as turns: what the user said, up to the next answer of the assistant with a text."""
    said: list[str] = []
    session_id = DEFAULT_SESSION
    for message in messages:
        session_id = message.additional_kwargs.get("session_id") or session_id
        text = message.content or ""
        if message.role == "user":
            said.append(text)
        elif message.role == "assistant" and text.strip():
            yield from log_turn(session_id, "\n\n".join(said), text)
            said = []
    yield from log_turn(session_id, "\n\n".join(said), "")


CHARS_PER_TOKEN = 4
"""Characters of a token, as LlamaIndex's own blocks estimate it."""
