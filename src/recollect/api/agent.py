"""`AgentMemory`: every verb of one agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect.api.agent_details import AgentDetails, Capturing, Consolidation
from recollect.api.agent_records import ANY_STATE, MAX_PAGE, PAGE, SEARCH_LIMIT, AgentView, Records
from recollect.caller import current_caller
from recollect.model import ContextCall, Conversation, Hit, Json, Message, Recalled, Session, Skill, WorkingMemory
from recollect.policy.memories.trust import check_removal
from recollect.policy.numbers import checked_whole
from recollect.policy.prompt.tokens import count_message
from recollect.policy.prompt.window import private_memory
from recollect.policy.recall.purposes import checked_purpose, recall_block
from recollect.policy.text import checked_text
from recollect.ports import Place
from recollect.services.prompt.blocks import memories_to_show, private_memories, with_real_references
from recollect.services.prompt.gather import ToolResult
from recollect.services.recall.recall import RecallRequest, checked_limit
from recollect.tools import catalog
from recollect.tools.guidance import guidance


class Transcripts(AgentView):
    """The verbs that work on conversations."""

    def log_turn(
        self, session_id: str, *, user: str, assistant: str, remember: bool | None = None
    ) -> Sequence[Message]:
        """Keep one turn, a user's prompt and the final answer to it; a session is made by its first turn. `remember`
        also keeps both as episodes that can be recalled (None: as the settings say). A secret is replaced by a mark.

        Raises: Invalid; Conflict when the session is another agent's.
        """
        return self._services.transcripts.log_turn(
            self.owner, session_id, user=user, assistant=assistant, remember=remember
        )

    def log_failure(self, session_id: str, reason: str) -> None:
        """Say in the audit log that a turn did not come about, and why; of what was said nothing is kept.

        Raises: Invalid.
        """
        self._services.transcripts.log_failure(self.owner, session_id, reason)

    def conversation(self, session_id: str) -> Conversation:
        """What the next model call needs of a conversation: `.messages`, ready to be sent. Summarises what has become
        too long, if the settings want it. A session nobody has begun is an empty conversation.

        Raises: Invalid.
        """
        return self._services.conversations(self.owner, session_id)

    def add_session(self, id: str | None = None) -> Session:
        """Begin a conversation, under an id of your own or a new one.

        Raises: Invalid; Conflict when there is one of that id.
        """
        return self._services.transcripts.add_session(self.owner, id)

    def sessions(self, *, before: Place | None = None, limit: int = PAGE) -> Sequence[Session]:
        """Conversations, the one used last first; `before` (`place_of` a session) continues a listing.

        Raises: Invalid.
        """
        return self._store.list_sessions(self.owner, before=before, limit=checked_limit(limit, most=MAX_PAGE))

    def session(self, id: str) -> Session:
        """Raises: NotFound."""
        return self._store.get_session(self.owner, id)

    def messages(self, session_id: str, *, after: int = 0, limit: int = PAGE) -> Sequence[Message]:
        """What was said, in order; `after` (a position) continues a listing.

        Raises: NotFound, Invalid.
        """
        after, limit = checked_whole(after, "`after` (a position)"), checked_limit(limit, most=MAX_PAGE)
        return self._store.list_messages(self.owner, session_id, after=after, limit=limit)

    def delete_session(self, id: str) -> None:
        """Delete a conversation for good. What was remembered of it stays.

        Raises: NotFound, Forbidden.
        """
        check_removal(current_caller().trust)
        self._services.transcripts.delete_session(self.owner, id)


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
        request = RecallRequest(query=query, limit=limit, purpose=checked_purpose(purpose))
        return self.render_recalled(self._services.recall(self.owner, request))

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


MAX_CALLS = 200
CALLS_PAGE = 20


class Contexts(AgentView):
    """The verbs around a model call."""

    def context(
        self,
        session_id: str,
        message: str = "",
        *,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[ToolResult] | None = None,
    ) -> WorkingMemory:
        """Everything a model should see before it answers `message`, as chat messages that fit `budget` tokens.

        Without a system prompt the agent's own is used; without tool results, what the session stored with that role.
        `layout` is "standard" or "cache_stable". What was shortened is in `truncations` and in the audit log.

        Raises: Invalid; OverBudget when the system prompt, the skills and the message alone do not fit.
        """
        return self._services.assemble(
            self.owner,
            session_id,
            message,
            system_prompt=system_prompt,
            budget=budget,
            layout=layout,
            tool_results=tool_results,
        )

    def context_calls(
        self, *, session_id: str = "", before: str = "", limit: int = CALLS_PAGE
    ) -> Sequence[ContextCall]:
        """What this agent was shown at its latest calls, newest first; `before` (an id) continues a listing.

        Raises: Invalid.
        """
        return self._services.context_calls.latest(
            self.owner,
            session_id=checked_text(session_id, what="session id"),
            before=checked_text(before, what="id"),
            limit=checked_limit(limit, most=MAX_CALLS),
        )

    def context_call(self, id: str) -> ContextCall:
        """What this agent was shown at one call and what was left out, each with its text as it reads now.

        Raises: NotFound.
        """
        return self._services.seen(self.owner, id)


class Knowledge(AgentView):
    """The verbs that read what an agent did not write itself."""

    def skills(self) -> Sequence[Skill]:
        """What this agent is taught by files, by name."""
        return self._services.skills.for_agent(self.owner)

    def search_knowledge(self, query: str, *, categories: Collection[str] = (), limit: int = 5) -> Sequence[Hit]:
        """The passages of the tenant's documents that fit a question best, by words and by meaning, within the
        categories this agent is limited to; no category means all of those.

        Raises: Invalid.
        """
        return self._services.search_knowledge.for_agent(self.owner, query, categories=categories, limit=limit)


__all__ = ["ANY_STATE", "MAX_PAGE", "PAGE", "SEARCH_LIMIT", "AgentMemory"]


class AgentMemory(Records, Transcripts, Prompts, Contexts, AgentDetails, Capturing, Knowledge, Consolidation):
    """One agent's memory: its own records, and nobody else's."""
