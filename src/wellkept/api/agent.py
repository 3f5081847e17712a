"""`AgentMemory`: all methods of one agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, Unpack

from wellkept.arguments import RawText, check_fields
from wellkept.caller import current_caller
from wellkept.errors import Invalid
from wellkept.facts.requests import make_request
from wellkept.language.names import check_user, memory_seq
from wellkept.language.text import check_text
from wellkept.language.values import check_before, check_limit, check_whole
from wellkept.memory.remember import Draft, naming_item
from wellkept.memory.rules_filters import (
    SESSION_FIELDS,
    STATE,
    MemoryFilters,
    Where,
    check_filters,
    leave_out_items,
    names_field,
    parse_filter,
)
from wellkept.memory.rules_kinds import check_kind, check_moment
from wellkept.memory.rules_trust import check_removal
from wellkept.model import (
    NO_USER,
    AddedFacts,
    Conversation,
    Explanation,
    Forgotten,
    Json,
    Kind,
    KindName,
    Memory,
    MemoryVersion,
    Message,
    OriginName,
    Owner,
    Profile,
    Recalled,
    RoleName,
    ScopeName,
    Session,
    SourceName,
    State,
    StateName,
    WorkingMemory,
)
from wellkept.model.stored import Place, ToolResult

if TYPE_CHECKING:
    pass

from wellkept.api.views import (
    ANY_STATE,
    MAX_PAGE,
    PAGE,
    SEARCH_LIMIT,
    AgentChanges,
    AgentDetails,
    AgentItems,
    AgentKnowledge,
    AgentPrompts,
    AgentReview,
    AgentView,
    Part,
    trace_operation,
)

NAME_ONE = "Name either the id of a memory or, with `about`, what to forget."
NOTHING_NAMED = (
    "Name the memories to restore: their ids, state= with archived or expired, or where=; optionally with kind, tag "
    "and other filters."
)
BOTH_NAMED = "Name the memories to restore either by their ids or by state, where and other filters, not by both."


class RecallOptions(MemoryFilters, total=False):
    """Options of a recall, other than the question."""

    limit: int
    kinds: Collection[KindName] | None
    sources: Collection[SourceName] | None
    purpose: str | None
    as_of: datetime | None
    min_relevance: float | None


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


class AgentMemory(AgentView):
    """Memory of one agent, isolated from all other agents."""

    details = Part(AgentDetails)
    items = Part(AgentItems)
    sessions = Part(AgentSessions)
    review = Part(AgentReview)
    changes = Part(AgentChanges)
    prompts = Part(AgentPrompts)
    knowledge = Part(AgentKnowledge)

    @trace_operation("create_memory")
    def remember(
        self,
        text: str,
        *,
        kind: KindName = Kind.NOTE,
        tags: Sequence[str] = (),
        scope: ScopeName | None = None,
        role: RoleName | None = None,
        session_id: str | None = None,
        importance: float | None = None,
        category: str | None = None,
        origin: OriginName | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        supersedes: str | None = None,
        valid_from: datetime | None = None,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store one short text. When this returns, it is on disk.

        `kind` is note, core, journal or episode. `scope` (user, workspace or session) says what a note is about, `role`
        who spoke; `origin` decides how far the text is trusted. `importance` (0 to 1), `category` and `expires_at`
        default to the rules of the kind. `valid_from` is when the statement became true; `supersedes` is the id of the
        memory this one corrects. `user` is the end user it belongs to, `metadata` a JSON object of up to 8 KB.

        A note or core memory that already exists, ignoring case and white space, is returned unchanged.

        Raises: Invalid, SecretRejected, NotFound.
        """
        draft = Draft(
            text=text,
            kind=kind,
            tags=tags,
            scope=scope,
            role=role,
            session_id=session_id,
            importance=importance,
            category=category,
            origin=origin,
            created_at=created_at,
            expires_at=expires_at,
            supersedes=supersedes,
            valid_from=valid_from,
            user=user,
            metadata=metadata,
        )
        return self._services.remember(self.owner, [draft])[0]

    @trace_operation("create_memory")
    def remember_many(self, items: Iterable[str | Mapping[str, Any]]) -> Sequence[Memory]:
        """Store many texts in one transaction: all or none.

        An item is a text, or a mapping of `remember`'s arguments.

        Raises: Invalid, SecretRejected, NotFound, each with the position of the refused item as `item`.
        """
        drafts = []
        for position, item in enumerate(items):
            with naming_item(position):
                drafts.append(_parse_draft(item))
        return self._services.remember(self.owner, drafts) if drafts else []

    def for_user(self, user: str, *, shared: bool = True) -> Self:
        """Return this agent's memory as one end user has it.

        Its methods read the records of this user and, unless `shared` is False, those that belong to no user. What they
        add belongs to this user, and they change nothing else.

        Raises: Invalid; Forbidden when the caller is limited to another user.
        """
        # None would be the operator's view of all users: an app that lost its user must not get it.
        owner = self._narrow(check_user(user))
        shared = shared and (self.owner.user is None or self.owner.with_shared)
        return type(self)(self._services, replace(owner, with_shared=shared))

    def get(self, id: str) -> Memory:
        """Return one memory. Raises: NotFound."""
        (found,) = self._services.retrieval_marks.apply(self.owner, [self._store.get_memory(self.owner, id)])
        return self._services.judge(found)

    def list(
        self,
        *,
        kind: KindName | None = None,
        query: str = "",
        state: StateName | None = None,
        as_of: datetime | None = None,
        before: str | None = None,
        limit: int = PAGE,
        user: str | None = None,
        **filters: Unpack[MemoryFilters],
    ) -> Sequence[Memory]:
        """List memories, newest first; items only if `kind` or `where` asks for the kind item.

        `query` matches anywhere in the text, ignoring case. `state` is live, expired, archived, held or all; by default
        live, unless `where` names a state. `as_of` lists what was true at that time. `before` (an id) continues a
        listing. `user` lists as in that user's view.

        The filters are `where` (docs/filters.md), such as "tags = food and metadata.city = 'Oslo'", and `tag` (a whole
        tag, ignoring case), `session_id`, `scope`, `origin`, `since` and `until` (when it was written, `until`
        excluded).

        Raises: Invalid, Forbidden.
        """
        owner, of_kind = self._narrow(user), None if kind is None else check_kind(kind)
        where = leave_out_items(check_filters(**filters), of_kind)
        chosen = state or (ANY_STATE if names_field(where, STATE) else State.LIVE)
        found = self._store.list_memories(
            owner,
            kind=of_kind,
            needle=query,
            where=where,
            state=parse_state(chosen),
            now=self._services.now() if as_of is None else check_moment(as_of, "as_of"),
            is_past=as_of is not None,
            before=None if before is None else _parse_seq(before),
            limit=check_limit(limit, most=MAX_PAGE),
        )
        return [self._services.judge(each) for each in self._services.retrieval_marks.apply(owner, found)]

    @trace_operation("search_memory")
    def search(
        self,
        query: str = "",
        *,
        kind: KindName | None = None,
        limit: int = SEARCH_LIMIT,
        user: str | None = None,
        **filters: Unpack[MemoryFilters],
    ) -> Sequence[Memory]:
        """List live memories that contain `query`, ignoring case, and pass the filters of `list`, newest first.

        Raises: Invalid.
        """
        return self.list(kind=kind, query=query, limit=limit, user=user, **filters)

    @trace_operation("update_memory")
    def update(
        self,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> Memory:
        """Edit a memory; the previous text, tags and metadata stay in its history.

        `metadata` replaces all of its metadata. `version` is the version the caller last read; pass it to detect
        concurrent edits.

        Raises: NotFound, Invalid, SecretRejected; Conflict when another edit came first.
        """
        return self._services.remember.update(
            self.owner, id, text=text, tags=tags, importance=importance, metadata=metadata, version=version
        )

    @trace_operation("delete_memory")
    def forget(self, id: str | None = None, *, about: str | None = None, user: str | None = None) -> Forgotten:
        """Delete a memory and its history permanently by its id, or hide what is meant by a few words.

        With `about`, such as "my old address", the facts, notes, core memories and journal entries of the user that are
        meant are hidden, facts with the turns they came from; `restore` brings them back until maintenance deletes them
        after 30 days. Where it is not clear which are meant, nothing is forgotten and the answer has `candidates`, best
        first. Notes of a workspace file cannot be hidden and are candidates too.

        Raises: Invalid, NotFound, Forbidden.
        """
        if (id is None) == (about is None):
            raise Invalid(NAME_ONE)
        if id is not None:
            self._services.remember.forget(self.owner, id)
            return Forgotten()
        if not (about or "").strip():
            raise Invalid("Say in a few words what to forget, such as 'my old address'.")
        owner = self._narrow(user)
        return self._services.telling.forget(owner.of(owner.user), check_text(about or "", what="`about`"))

    def profile(self, *, subject: str | None = None, user: str | None = None) -> Profile:
        """Return what stands of a user: the current facts out of their turns, newest first, and the block of a prompt.

        `subject` narrows it to one whom or what the user spoke about: "user", a name, a relation such as "my sister".

        Raises: Invalid, Forbidden.
        """
        return self._services.profiles(self._narrow(user), subject)

    @trace_operation("search_memory")
    def recall(self, query: str, *, user: str | None = None, **options: Unpack[RecallOptions]) -> Recalled:
        """Find what answers a question best; each hit carries the parts of its score.

        Returns at most `limit` hits (5). Searches the agent's own memories and the tenant's audit log, workflow steps
        and knowledge. `sources` limits that to some of memory, audit, workflow and knowledge, `kinds` to memories of
        these kinds. `purpose` tunes the result for task_intake, tool_selection, decision_memo, content or delegation.
        `as_of` recalls as if asked at that time. The best hits are returned however weak they are, but none for small
        talk; `min_relevance` leaves out the less relevant. `where`, `tag`, `session_id`, `scope`, `origin`, `since`
        and `until` filter as in `list`, before the best are chosen, and limit the search to memories. `user` recalls as
        in that user's view, from memory and knowledge only. Sources that did not answer in time are listed in the
        result's `unanswered`.

        Raises: Invalid, Forbidden; StoreError when no source answered.
        """
        return self._services.recall(self._narrow(user), query, **options)

    def explain(
        self, query: str, id: str | None = None, *, user: str | None = None, **options: Unpack[RecallOptions]
    ) -> Explanation:
        """Explain why `recall` with these arguments returns the memory, event, step or passage `id`, or omits it.

        Without an `id`, `items` of the result explain every hit and the best of what was left out.

        Raises: Invalid; StoreError when no source answered.
        """
        return self._services.explain(self._narrow(user), query, id, **options)

    def context(
        self,
        message: str,
        *,
        session: str | None = None,
        system_prompt: str | None = None,
        budget: int | None = None,
        layout: str | None = None,
        tool_results: Sequence[ToolResult] | None = None,
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

    def add(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session_id: str | None = None,
        dry_run: bool = False,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AddedFacts:
        """Store the lasting facts, preferences, decisions and promises of a conversation, in one transaction.

        `messages` are mappings with `role` and `content`, as chat models take them. A configured model reads them;
        without one, and when it fails, rules keep statements in the user's own words. The result lists what was
        `added`, `updated`, `superseded` and `dropped`, each with its turn; its `undo()` reverts all of it. With
        `dry_run`, nothing is stored. `user` is the end user they belong to; by default that of the session. `metadata`,
        a JSON object of up to 8 KB, is that of each new memory; memories that are only edited keep their own.

        Raises: Invalid; SecretRejected when the session id or the metadata looks like a secret.
        """
        request = make_request(messages, session_id=session_id, dry_run=dry_run, metadata=metadata)
        return self._services.facts(self._narrow(user), request)

    def history(self, id: str, *, before: int | None = None, limit: int | None = None) -> Sequence[MemoryVersion]:
        """List earlier versions of a memory, newest first.

        `before` (a version) and `limit` page through them; by default all are returned.

        Raises: NotFound, Invalid.
        """
        most = None if limit is None else check_limit(limit, most=MAX_PAGE)
        return self._store.list_versions(self.owner, id, before=check_before(before), limit=most)

    def restore(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        state: StateName | None = None,
        kind: KindName | None = None,
        **filters: Unpack[MemoryFilters],
    ) -> Sequence[Memory]:
        """Make archived or expired memories live again, and return them.

        Name one id or several, or restore all that are in a `state` (archived or expired), have this kind and pass the
        filters of `list`. `where` may name the state instead, or leave it out for both. The end of a restored memory is
        renewed by the lifetime of its category, and its decay starts again. By id, a live memory is returned unchanged.
        Otherwise, memories that were corrected stay as they are.

        Raises: Invalid, NotFound; Conflict when a memory was corrected, or a live one has the same text; Forbidden.
        """
        restore, is_filtered = self._services.restore, any((state, kind, *filters.values()))
        if ids is not None:
            if is_filtered:
                raise Invalid(BOTH_NAMED)
            return restore(self.owner, [ids] if isinstance(ids, str) else list(ids))
        named = None if state is None else parse_state(state)
        where = check_filters(**filters)
        if named is None and (state is not None or not filters.get("where")):
            raise Invalid(NOTHING_NAMED)
        of_kind = None if kind is None else check_kind(kind)
        return restore.restore_matching(self.owner, named, kind=of_kind, where=leave_out_items(where, of_kind))

    def private_memory(self) -> str | None:
        """Render core memories and recent journal entries as the block that follows the system prompt, if any.

        They are those of this view's user or, without one, only those of no user.
        """
        return self._services.blocks.render_private(self._find_reader())

    def tools(self, sets: Collection[str] | None = None, *, form: str = "openai") -> Sequence[Json]:
        """Return the tool definitions in the given `form`: "openai", "anthropic" or "mcp".

        `sets` defaults to the set `memory`.

        Raises: Invalid.
        """
        return self._services.render_tools(sets, form)

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
        return self._services.call_tool(memory, name, arguments, session_id=session_id, sets=sets)


def _parse_draft(item: object) -> Draft:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise Invalid(f"A memory is a text or a mapping of its fields, not {type(item).__name__}.")
    unknown = set(item) - set(Draft.__dataclass_fields__)
    if unknown or "text" not in item:
        problem = f"has no {sorted(unknown)[0]!r}" if unknown else "needs a text"
        raise Invalid(f"A memory {problem}; its fields are {', '.join(Draft.__dataclass_fields__)}.")
    check_fields(AgentMemory.remember, item)
    return Draft(**item)


def parse_state(state: str) -> State | None:
    if state == ANY_STATE:
        return None
    try:
        return State(state)
    except ValueError:
        raise Invalid(f"There is no state {str(state)[:40]!r}; choose {', '.join(State)} or {ANY_STATE}.") from None


def _parse_seq(id: str) -> int:
    seq = memory_seq(id)
    if seq is None:
        raise Invalid("`before` is the id of a memory, such as m-7.")
    return seq
