"""`AgentMemory`: all methods of one agent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

from wellkept.api.agent_changes import AgentChanges
from wellkept.api.agent_curation import AgentCuration
from wellkept.api.agent_details import AgentDetails
from wellkept.api.agent_items import AgentItems
from wellkept.api.agent_recall import AgentRecall
from wellkept.api.agent_records import (
    ANY_STATE,
    MAX_PAGE,
    PAGE,
    SEARCH_LIMIT,
    AgentRecords,
    AgentReview,
    AgentView,
    Part,
)
from wellkept.arguments import RawText
from wellkept.caller import current_caller
from wellkept.knowledge.search import KnowledgeOptions
from wellkept.language.values import check_depth, check_limit, check_whole
from wellkept.memory.rules_filters import SESSION_FIELDS, Where, parse_filter
from wellkept.memory.rules_trust import check_removal
from wellkept.model import (
    NO_USER,
    ContextCall,
    Conversation,
    Hit,
    Json,
    Message,
    Owner,
    Recalled,
    Session,
    Skill,
    WorkingMemory,
)
from wellkept.model.stored import Place
from wellkept.prompt import gather
from wellkept.prompt.blocks import break_forged_in_memories, break_forged_references, list_private_memories
from wellkept.prompt.rules_tokens import count_message
from wellkept.prompt.rules_window import private_memory
from wellkept.recall.rules_ranking import RecallRequest, check_purpose, recall_block
from wellkept.tools import catalog


class AgentTranscripts(AgentView):
    """Methods to store conversations."""

    def log_turn(
        self,
        session_id: str,
        *,
        user: str,
        assistant: str,
        remember: bool | None = None,
        category: str | None = None,
        expires_at: datetime | None = None,
        user_id: str | None = None,
    ) -> Sequence[Message]:
        """Store one chat turn: the user's message and the final answer to it.

        The session is created by its first turn. What the user states becomes facts, which end older ones that they
        replace, and both texts become episodes that `recall` finds; with `remember` False only the transcript is kept,
        None leaves it to the setting `remember_turns`. "Forget my old address", said by the user, hides what is meant.
        `category` and `expires_at` of the episodes follow from their texts unless they are given. Secrets are replaced
        by a mark. `user_id` is the end user a new session belongs to; its later turns and their memories belong to the
        same.

        Raises: Invalid; Conflict when the session is another agent's or user's; Forbidden.
        """
        return self._services.transcripts.log_turn(
            self._narrow(user_id),
            session_id,
            user=user,
            assistant=assistant,
            remember=remember,
            category=category,
            expires_at=expires_at,
            claims=self.owner.user is None,
        )


class AgentSessions(AgentView):
    """Conversations of an agent."""

    def log_failure(self, session_id: str, reason: str) -> None:
        """Record in the audit log that a turn failed, with the reason; store none of its messages. Raises: Invalid."""
        self._services.transcripts.log_failure(self.owner, session_id, reason)

    def conversation(self, session_id: str, *, limit: int | None = None) -> Conversation:
        """Return the conversation as `.messages`, ready for the next model call.

        Summarises older messages when the conversation has become too long and the settings allow it. With `limit`, of
        the messages after the summary only the newest are read; `omitted_count` says how many are left out. An unknown
        session gives an empty conversation.

        Raises: Invalid.
        """
        most = None if limit is None else check_whole(limit, "`limit` (of messages)", least=1)
        return self._services.conversations(self.owner, session_id, limit=most)

    def start(
        self, id: str | None = None, *, user: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Session:
        """Start a conversation with the given id, or with a generated one.

        `user` is the end user it belongs to, `metadata` a JSON object of up to 8 KB.

        Raises: Invalid, SecretRejected; Conflict when the id is taken; Forbidden.
        """
        claims = self.owner.user is None
        return self._services.transcripts.add_session(self._narrow(user), id, metadata=metadata, claims=claims)

    def list(self, *, where: Where = None, before: Place | None = None, limit: int = PAGE) -> Sequence[Session]:
        """List conversations, most recently used first.

        `where` filters by user, created_at, updated_at and metadata (docs/filters.md). `before` (`place_of` a session)
        continues a listing.

        Raises: Invalid.
        """
        found, most = parse_filter(where, SESSION_FIELDS), check_limit(limit, most=MAX_PAGE)
        return self._store.list_sessions(self.owner, where=found, before=before, limit=most)

    def get(self, id: str) -> Session:
        """Return one conversation. Raises: NotFound."""
        return self._store.get_session(self.owner, id)

    def messages(self, session_id: str, *, after: int = 0, limit: int = PAGE) -> Sequence[Message]:
        """List the messages of a conversation in order.

        `after` (a position) continues a listing.

        Raises: NotFound, Invalid.
        """
        after, limit = check_whole(after, "`after` (a position)"), check_limit(limit, most=MAX_PAGE)
        return self._store.list_messages(self.owner, session_id, after=after, limit=limit)

    def reader(self, session_id: str) -> AgentMemory:
        """Return the agent's memory as the reader of a conversation has it: its user or, if it has none, nobody in
        particular, who has only what belongs to no user."""
        owner = self.owner
        if owner.user is None:
            session = self._store.find_session(owner, session_id)
            owner = Owner(owner.tenant, owner.agent, (session and session.user) or NO_USER)
        return AgentMemory(self._services, owner)

    def delete(self, id: str) -> None:
        """Delete a conversation permanently. Memories made from it stay. Raises: NotFound, Forbidden."""
        check_removal(current_caller().trust)
        self._services.transcripts.delete_session(self.owner, id)


MAX_CALLS = 200
"""Largest page of `context_calls`."""
CALLS_PAGE = 20
"""Default page of `context_calls`."""


class AgentPrompts(AgentView):
    """Prompts that an agent's calls were shown, and texts for prompts of your own."""

    def list(
        self, *, session_id: str = "", before: str = "", limit: int = CALLS_PAGE, item: str | None = None
    ) -> Sequence[ContextCall]:
        """List the latest assembled prompts of this agent, newest first.

        `session_id` limits the listing to one session; `before` (an id) continues it. Blocks list every item that was
        considered; with `item`, only those with this id, and with an empty one, none.

        Raises: Invalid.
        """
        return self._services.context_calls.latest(
            self.owner,
            session_id=session_id,
            before=before,
            limit=check_limit(limit, most=MAX_CALLS),
            item=item,
        )

    def get(self, id: str) -> ContextCall:
        """Return one assembled prompt: the items it contained and those left out, each with its current text.

        Raises: NotFound.
        """
        return self._services.inspect_call(self.owner, id)

    def preview(
        self,
        message: str,
        *,
        budget: int | None = None,
        min_relevance: float | None = None,
        where: Where = None,
        user: str | None = None,
    ) -> WorkingMemory:
        """Assemble what `context` would, outside a conversation, without recording it or marking memories as retrieved.

        Raises: Invalid, Forbidden; OverBudget as `context`.
        """
        return self._services.assemble(
            self._narrow(user), message, budget=budget, min_relevance=min_relevance, where=where, is_preview=True
        )

    def inject(self, message: str, *, mode: str | None = None) -> str | None:
        """Render the notes that match the latest user message as a block for the next prompt; None if none match.

        They are those of this view's user or, without one, only those of no user. `mode` overrides the setting
        `inject_mode`.

        Raises: Invalid.
        """
        return self._services.inject(self._find_reader(), message, mode=mode)

    def recall_block(self, query: str, *, purpose: str | None = None, limit: int = 5) -> str | None:
        """Recall for a question and render the hits as a block with a heading; None if there are none.

        `purpose` selects hits and heading as in `recall`. Without a user, only memories of no user are shown.

        Raises: Invalid; StoreError when no source answered.
        """
        request = RecallRequest(query=query, limit=limit, purpose=check_purpose(purpose))
        return self.render_recalled(self._services.recall(self._find_reader(), request))

    def render_recalled(self, recalled: Recalled) -> str | None:
        """Render a result of `recall` as a block for the next prompt; None if it is empty."""
        texts = break_forged_references(self._store, self.owner, [hit.text for hit in recalled])
        hits = (replace(hit, text=text) for hit, text in zip(recalled, texts, strict=True))
        return recall_block(Recalled(hits, recalled.unanswered, recalled.heading))

    def count_tokens(self, said: str | Sequence[Json]) -> int:
        """Count the tokens of a text, or of a list of chat messages including their framing.

        Uses the tokenizer of this store.
        """
        count = self._services.tokens.count
        if isinstance(said, str):
            return count(said)
        check_depth(said, what="list of messages")
        return sum(count_message(message, count) for message in said)


class AgentContexts(AgentView):
    """Methods around a model call."""

    def context(
        self,
        message: str,
        *,
        session: str | None = None,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[gather.ToolResult] | None = None,
        min_relevance: float | None = None,
        where: Where = None,
        user: str | None = None,
        participants: Sequence[str] | None = None,
    ) -> WorkingMemory:
        """Assemble everything a model should see before it answers `message`, within `budget` tokens.

        `session` is the id of the conversation that the message continues; without it, the prompt has no earlier turns.
        `system_prompt` defaults to the agent's own, and a blank one to "You are <name>.". `tool_results` defaults to
        those the session stored, `budget` and `layout` ("standard" or "cache_stable") to the settings. Recalled are
        only memories that pass the filter `where` (docs/filters.md), and with `min_relevance` nothing less relevant;
        without it weak memories come last, if there is room, and weak passages not at all. Core memories, journal and
        notes stay. Everything that was shortened is listed in `truncations` and in the audit log. `user` is the reader
        of the prompt; by default the user of the session. If it has none either, the prompt shows only what belongs to
        no user. `participants` are the names of those in a group conversation, with or without the agent's own.

        Raises: Invalid, Forbidden; OverBudget when the system prompt, the skills and the message alone do not fit.
        """
        return self._services.assemble(
            self._narrow(user),
            message,
            session=session,
            participants=participants,
            system_prompt=system_prompt,
            budget=budget,
            layout=layout,
            tool_results=tool_results,
            min_relevance=min_relevance,
            where=where,
        )


class AgentKnowledge(AgentView):
    """Documents and skills that an agent may read."""

    def skills(self) -> Sequence[Skill]:
        """List the skills of this agent by name, read from skill files."""
        return self._services.skills.for_agent(self.owner)

    def search(self, query: str, **options: Unpack[KnowledgeOptions]) -> Sequence[Hit]:
        """Search the tenant's documents by words and meaning; return the best `limit` passages (5).

        `categories` narrows the search within the categories this agent may read; empty means all of those. `where`
        filters the documents by title, category, source, created_at, updated_at and metadata (docs/filters.md). A score
        is the probability that a person would call the passage relevant; `min_relevance` leaves out those below it.

        Raises: Invalid.
        """
        return self._services.search_knowledge.for_agent(self.owner, query, **options)


__all__ = ["ANY_STATE", "MAX_PAGE", "PAGE", "SEARCH_LIMIT", "AgentMemory"]


class AgentMemory(AgentRecords, AgentRecall, AgentCuration, AgentTranscripts, AgentContexts):
    """Memory of one agent, isolated from all other agents."""

    details = Part(AgentDetails)
    items = Part(AgentItems)
    sessions = Part(AgentSessions)
    review = Part(AgentReview)
    changes = Part(AgentChanges)
    prompts = Part(AgentPrompts)
    knowledge = Part(AgentKnowledge)

    def private_memory(self) -> str | None:
        """Render core memories and recent journal entries as the block that follows the system prompt, if any.

        They are those of this view's user or, without one, only those of no user.
        """
        owner = self._find_reader()
        core, journal = list_private_memories(self._store, owner, self._services.judge, now=self._services.now())
        self._services.loop_guard.note_shown(owner, [memory.text for memory in (*core, *journal)])
        return private_memory(*(break_forged_in_memories(self._store, owner, each) for each in (core, journal)))

    def tools(self, sets: Collection[str] | None = None, *, form: str = "openai") -> Sequence[Json]:
        """Return the tool definitions in the given `form`: "openai", "anthropic" or "mcp".

        `sets` defaults to the set `memory`.

        Raises: Invalid.
        """
        return catalog.render_tools(sets, form)

    def call_tool(
        self,
        name: RawText,
        arguments: Mapping[str, Any],
        *,
        session_id: str | None = None,
        sets: Collection[str] | None = None,
    ) -> Json:
        """Run one tool. Refusals are returned as answers, not raised.

        `session_id` is the conversation in which the model calls it; `store_memory` keeps it. If the conversation
        belongs to a user, the tool reaches what that user's view does. Answers name only tools of `sets` (None: that of
        the tool).
        """
        view = self if session_id is None else self.sessions.reader(session_id)
        memory = view if view.owner.user else self
        return catalog.call(memory, name, arguments, session_id=session_id, sets=sets)
