"""What of an agent's memory enters a prompt: blocks of text, tools and how to use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect.agent_memory.view import AgentView
from recollect.model import Json, Recalled
from recollect.policy.message_tokens import count_message
from recollect.policy.purposes import checked_purpose, recall_block
from recollect.policy.render import private_memory
from recollect.services.private import private_memories
from recollect.services.real_references import memories_to_show, with_real_references
from recollect.services.recall import Wish
from recollect.tools import catalog
from recollect.tools.guidance import guidance


class Prompts(AgentView):
    """The verbs that write for a model."""

    def inject(self, message: str, *, mode: str | None = None) -> str | None:
        """The block of notes that fit the last user message, for the next prompt; None when there are none.

        Raises: Invalid.
        """
        return self._services.inject(self.owner, message, mode=mode)

    def recall_block(self, query: str, *, purpose: str | None = None, limit: int = 5) -> str | None:
        """What is recalled about a question, as a block with a heading for the next prompt; None when there is nothing.

        Raises: Invalid; StoreError when nothing could answer.
        """
        wish = Wish(query=query, limit=limit, purpose=checked_purpose(purpose))
        return self.render_recalled(self._services.recall(self.owner, wish))

    def render_recalled(self, recalled: Recalled) -> str | None:
        """The block of what `recall` has returned, for the next prompt; None when that is nothing."""
        texts = with_real_references(self._store, self.owner, [hit.text for hit in recalled])
        hits = (replace(hit, text=text) for hit, text in zip(recalled, texts, strict=True))
        return recall_block(Recalled(hits, recalled.unanswered, recalled.heading))

    def private_memory(self) -> str | None:
        """The block of core memories and recent journal entries that belongs behind the system prompt, if any."""
        core, journal = private_memories(self._store, self.owner, self._services.judge, now=self._services.now())
        self._services.echoes.shown(self.owner, [memory.text for memory in (*core, *journal)])
        return private_memory(*(memories_to_show(self._store, self.owner, each) for each in (core, journal)))

    def guidance(self, sets: Iterable[str] | None = None) -> str:
        """What a model should know before it uses these sets of tools (none named: all): part of its system prompt.

        Raises: Invalid.
        """
        return guidance(dict.fromkeys(tool.set for tool in catalog.in_sets(sets)))

    def count_tokens(self, said: str | Sequence[Json]) -> int:
        """How many tokens a text is, or a list of chat messages with their frames, by this store's tokenizer."""
        count = self._services.tokens.count
        return count(said) if isinstance(said, str) else sum(count_message(message, count) for message in said)

    def tools(self, sets: Iterable[str] | None = None, *, form: str = "openai") -> Sequence[Json]:
        """Descriptions of the tools for `form` "openai", "anthropic" or "mcp"; all sets if none is named.

        Raises: Invalid.
        """
        return catalog.rendered(sets, form)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """Run one tool. A refusal is an answer, not an exception."""
        return catalog.call(self, name, arguments)
