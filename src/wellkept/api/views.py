"""Views of a store: their base classes, and the groups of an agent's methods.

The groups are long texts, items, memories that await a decision, changes, prompts and documents. Methods that store or
recall have OpenTelemetry spans by the semantic conventions for GenAI memory. A span contains the operation, the owner
of the memory, the number of records and the error type, but never a text, a query or an error message. OpenTelemetry is
not imported here; spans are only made if the host program has loaded and configured it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from wellkept.arguments import Arguments, CheckedMethods, RawText, check_fields
from wellkept.caller import current_caller
from wellkept.details import details as outputs
from wellkept.details import parts as pieces
from wellkept.details.rules_keys import parse_part
from wellkept.errors import Invalid, WellkeptError
from wellkept.language.names import change_seq, check_owner
from wellkept.language.text import check_text
from wellkept.language.values import check_depth, check_limit, check_whole
from wellkept.memory.remember import OTHER_USER, naming_item
from wellkept.memory.rules_filters import KnowledgeOptions, Where
from wellkept.memory.rules_items import IndexedFields, ItemDraft, Namespace
from wellkept.memory.rules_items import Place as ItemPlace
from wellkept.memory.rules_trust import check_removal
from wellkept.model import (
    NO_USER,
    Captured,
    Change,
    ChangeState,
    ContextCall,
    Detail,
    DetailPage,
    Forgotten,
    Hit,
    Item,
    Json,
    Memory,
    OriginName,
    Owner,
    Recalled,
    Skill,
    State,
    WorkingMemory,
)
from wellkept.model.stored import Place
from wellkept.prompt.rules_tokens import count_message

if TYPE_CHECKING:
    from wellkept.api.build import Services

NAME = "wellkept"
P = ParamSpec("P")
S = TypeVar("S", bound=Any)
T = TypeVar("T")
V = TypeVar("V")

MAX_PAGE = 500
PAGE = 100
SEARCH_LIMIT = 20


def trace_operation(operation: str) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Decorate a method of an agent's memory with a span for an operation such as `search_memory`."""

    def decorate(verb: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        arguments = Arguments(verb)

        @wraps(verb)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            arguments.check((self, *args), kwargs)
            tracer = _get_tracer()
            if tracer is None:
                return verb(self, *args, **kwargs)
            # The message of an exception may quote the text to be stored, so it is not recorded.
            context = tracer.start_as_current_span(
                operation,
                attributes=_attributes(operation, self.owner),
                record_exception=False,
                set_status_on_exception=False,
            )
            with context as span:
                try:
                    result = verb(self, *args, **kwargs)
                except WellkeptError as error:
                    span.set_attribute("error.type", error.code)
                    span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
                    raise
                _describe(span, result, args)
                return result

        call.arguments = arguments  # type: ignore[attr-defined]
        return call

    return decorate


def _get_tracer() -> Any:
    """Return a tracer; None unless OpenTelemetry is configured."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer(NAME)


def _attributes(operation: str, owner: Owner) -> dict[str, str]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": NAME,
        "gen_ai.memory.store.id": f"{owner.tenant}/{owner.agent}",
        "gen_ai.agent.id": owner.agent,
    }


def _describe(span: Any, result: object, args: Sequence[object]) -> None:
    """Set the number of records and, for a single one, its id."""
    if isinstance(result, Memory):
        span.set_attribute("gen_ai.memory.record.id", result.id)
    # The first argument of a deletion is the id.
    elif isinstance(result, Forgotten) and args:
        span.set_attribute("gen_ai.memory.record.id", str(args[0]))
    count = len(result) if isinstance(result, Sequence) else 1
    span.set_attribute("gen_ai.memory.record.count", count)


def find_owner(agent: str, tenant: str, user: str | None = None, *, with_shared: bool = True) -> Owner:
    """Return the owner of an agent's memories, or of those of one user.

    Raises: Invalid; Forbidden when the caller is limited to other agents or to another user.
    """
    owner, caller = check_owner(agent, tenant, user=user, with_shared=with_shared), current_caller()
    caller.check_agent(owner.agent)
    return replace(owner, user=caller.own_user(owner.user))


class Part(Generic[V]):
    """Attribute of a view for one group of its methods, such as `agent.details`."""

    def __init__(self, view: Callable[..., V]) -> None:
        self._view = view

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, whole: None, owner: type) -> Self: ...

    @overload
    def __get__(self, whole: Any, owner: type) -> V: ...

    def __get__(self, whole: Any, owner: type) -> Self | V:
        return self if whole is None else whole._open(self._view, self._name)


class AgentView(CheckedMethods):
    """Base class of an agent's methods."""

    def __init__(self, services: Services, owner: Owner) -> None:
        self.owner = owner
        self._services = services
        self._store = services.store

    def _open(self, view: Callable[[Services, Owner], V], name: str) -> V:
        return view(self._services, self.owner)

    def __repr__(self) -> str:
        user = "" if self.owner.user is None else f", user={self.owner.user!r}"
        return f"{type(self).__name__}({self.owner.agent!r}, tenant={self.owner.tenant!r}{user})"

    def _narrow(self, user: str | None) -> Owner:
        """Return the owner of one user's records, or that of this view. Raises: Invalid, Forbidden."""
        if user is None:
            return self.owner
        owner = find_owner(self.owner.agent, self.owner.tenant, user, with_shared=self.owner.with_shared)
        if self.owner.user not in (None, owner.user):
            raise Invalid(OTHER_USER)
        return owner

    def _find_reader(self) -> Owner:
        """Return the owner of what a prompt without a session shows: of this view's user, or else only of no user."""
        return self.owner if self.owner.user is not None else Owner(self.owner.tenant, self.owner.agent, NO_USER)


class TenantView(CheckedMethods):
    """Base class of a tenant's methods."""

    def __init__(self, services: Services, id: str) -> None:
        self.id = id
        self._services = services
        self._store = services.store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def _open(self, view: Callable[[Services, str], V], name: str) -> V:
        return view(self._services, self.id)

    def _owner(self, agent: str) -> Owner:
        """Raises: Invalid; Forbidden when the caller is limited to other agents."""
        return find_owner(agent, self.id)

    def _agent_owner(self, agent: str) -> Owner:
        """Return the owner of an agent that is to be changed. Raises: Invalid, Forbidden."""
        current_caller().check_all_users()
        return self._owner(agent)


if TYPE_CHECKING:
    pass


MAX_CALLS = 200
"""Largest page of prompts."""

CALLS_PAGE = 20
"""Default page of prompts."""

ANY_STATE: Final = "all"


class AgentDetails(AgentView):
    """Long texts of an agent, and captured output of its tools."""

    def store(
        self,
        content: pieces.TextSource,
        *,
        description: str = "",
        type: str = "text",
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Detail:
        """Store a long text under a generated key. When this returns, it is on disk.

        `content` is a string, a `Path`, an open file or an iterable of parts; files and iterables are streamed. The
        content is stored unchanged. Description, summary and metadata can reach prompts, so anything that looks like a
        credential is removed from them.

        Raises: Invalid.
        """
        return self._services.details.store(
            self.owner, content, description=description, type=type, session_id=session_id, metadata=metadata
        )

    def read(
        self,
        key: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        lines: str | None = None,
        head: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
        context: int = 2,
        json_path: str | None = None,
    ) -> DetailPage:
        """Read part of a long text: `limit` characters starting at `offset`, or one of the selections below.

        `lines` is a range such as "120-180"; `head` and `tail` are numbers of lines; `grep` returns the lines that
        contain a string or match a `/pattern/`, with `context` lines around them; `json_path` selects a value. `limit`
        (4,000 characters by default for a page, 50,000 otherwise) bounds every answer; `remaining` says how to
        continue.

        Raises: NotFound; Invalid; StoreError when the text is missing or damaged.
        """
        part = parse_part(
            offset=offset,
            limit=limit,
            lines=lines,
            head=head,
            tail=tail,
            grep=grep,
            context=context,
            json_path=json_path,
        )
        return self._services.details.read(self.owner, key, part)

    def search(
        self, query: str = "", *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Search details by words in their key, type, description, summary or source.

        Details matching most words come first, then the newest; `offset` skips that many. An empty query lists the
        newest.

        Raises: Invalid.
        """
        return self._services.details.search(
            self.owner,
            query,
            session_id=session_id,
            offset=check_whole(offset, "offset"),
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def list(
        self,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: str | Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """List details, newest first.

        `is_active=False` lists hidden ones, None all. `before` continues a listing: a key, or `(created_at, key)`,
        which works even if that detail has been deleted.

        Raises: Invalid; NotFound when `before` is a key that no longer exists.
        """
        if isinstance(before, str):
            last = self.get(before)
            before = last.created_at, last.key
        return self._store.list_details(
            self.owner,
            session_id=session_id,
            is_active=is_active,
            before=before,
            limit=check_limit(limit, most=MAX_PAGE),
        )

    def get(self, key: str) -> Detail:
        """Return the metadata of a long text, including a hidden one. Raises: NotFound."""
        return self._services.details.get(self.owner, key)

    def hide(self, key: str, *, is_hidden: bool = True) -> Detail:
        """Hide a long text from search and reading without deleting it.

        `is_hidden=False` shows it again.

        Raises: NotFound, Forbidden.
        """
        check_removal(current_caller().trust)
        return self._services.details.set_active(self.owner, key, not is_hidden)

    def delete(self, key: str) -> None:
        """Delete a long text permanently. Raises: NotFound, Forbidden."""
        check_removal(current_caller().trust)
        self._services.details.delete(self.owner, key)

    def capture(self, output: RawText, **fields: Unpack[outputs.OutputFields]) -> str:
        """Return the text to put into the prompt for a tool's output: the output itself, or a reference to it.

        Short output is returned unchanged. Long output is stored whole and replaced by a one-line reference;
        `read` reads it in parts. The fields are `source` (the command or tool), `status`, `type`
        ("command_output"), `session_id`, `duration` in seconds and `metadata`.

        Raises: Invalid.
        """
        return self.capture_output(output, **fields).text

    def capture_output(self, output: RawText | IO[bytes], **fields: Unpack[outputs.OutputFields]) -> Captured:
        """Capture like `capture`, but return the key along with the text.

        `output` may also be a seekable binary file, which is streamed.

        Raises: Invalid.
        """
        capture = self._services.capture
        keep: Callable[..., Captured] = capture.file if hasattr(output, "read") else capture
        return keep(self.owner, output, **fields)


class AgentItems(AgentView):
    """Key–value store of an agent, whose values `recall` finds."""

    @trace_operation("upsert_memory")
    def put(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        *,
        index: IndexedFields = None,
        ttl: float | None = None,
        refresh: bool = False,
        version: int | None = None,
        origin: OriginName | None = None,
        user: str | None = None,
    ) -> Item | None:
        """Store a JSON value of up to 64 KB under a namespace, such as `("users", "7")`, and a key.

        A stored item gets the new value and the next version; its former value stays in its history. The same value
        makes no new version, but starts its lifetime again. A value of None deletes the item and returns None.

        `index` names the fields by which the item is found (`name`, `address.city`, `tags[*]`); by default all texts,
        with False none. `ttl` is its lifetime in seconds; with `refresh`, each reading starts it again. `version`
        writes only if the stored item has this version, 0 only if there is none. `user` is the end user it belongs to;
        each user has items of his own.

        Raises: Invalid, SecretRejected; Conflict when the item does not have that version; Forbidden when it is trusted
        more than the caller.
        """
        draft = ItemDraft(
            namespace=namespace,
            key=key,
            value=value,
            index=index,
            ttl=ttl,
            refresh=refresh,
            version=version,
            origin=origin,
        )
        return self._services.items.put(self._narrow(user), [draft])[0]

    @trace_operation("upsert_memory")
    def put_many(self, items: Iterable[Mapping[str, Any]], *, user: str | None = None) -> Sequence[Item | None]:
        """Store many items in one transaction: all or none. Each is a mapping of `put`'s arguments.

        Raises: Invalid, SecretRejected, Conflict, Forbidden, each with the position of the refused item as `item`.
        """
        drafts = []
        for position, item in enumerate(items):
            with naming_item(position):
                drafts.append(_parse_item_draft(item))
        return self._services.items.put(self._narrow(user), drafts)

    @trace_operation("search_memory")
    def get(self, namespace: Namespace, key: str, *, refresh: bool = True, user: str | None = None) -> Item | None:
        """Return an item, or None if there is none or it has expired. A user also reads the items of no user.

        If the item was put with `refresh`, its lifetime starts again; pass `refresh=False` to read it without that.

        Raises: Invalid.
        """
        return self._services.items.get(self._narrow(user), [(namespace, key)], refresh=refresh)[0]

    def get_many(
        self, places: Collection[ItemPlace], *, refresh: bool = True, user: str | None = None
    ) -> Sequence[Item | None]:
        """Return the items at many places, each a namespace and a key; None for each that is missing.

        Raises: Invalid.
        """
        return self._services.items.get(self._narrow(user), places, refresh=refresh)

    @trace_operation("delete_memory")
    def delete(self, namespace: Namespace, key: str, *, version: int | None = None, user: str | None = None) -> bool:
        """Delete an item and its history permanently; return False if there is none.

        Raises: Invalid; Conflict when it does not have that version; Forbidden when it is trusted more than the caller.
        """
        return self._services.items.delete(self._narrow(user), (namespace, key), version=version)

    @trace_operation("search_memory")
    def search(
        self,
        prefix: Namespace = (),
        *,
        query: str | None = None,
        where: Where = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
        user: str | None = None,
    ) -> Sequence[Item]:
        """Return items of a namespace and of all below it.

        With a `query`, the best first, as `recall` ranks them, each with its score; otherwise the last written first.
        `where` is a filter (docs/filters.md) in which `value.<key>` is a field of the value: "value.age >= 18 and
        value.city = 'Oslo'". `user` narrows it to the items of one user and of none.

        Raises: Invalid; StoreTimeout when the search takes too long.
        """
        return self._services.items.search(
            self._narrow(user), prefix, query=query, where=where, limit=limit, offset=offset, refresh=refresh
        )

    def namespaces(
        self,
        prefix: Namespace = (),
        *,
        suffix: Namespace = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
        user: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """List the namespaces that have items, sorted by their paths.

        `prefix` and `suffix` are names with which they begin and end, in which `*` stands for any name. `max_depth`
        cuts longer ones to so many names.

        Raises: Invalid.
        """
        return self._services.items.namespaces(
            self._narrow(user), prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset
        )


def _parse_item_draft(item: object) -> ItemDraft:
    known = ItemDraft.__dataclass_fields__
    if not isinstance(item, Mapping):
        raise Invalid(f"An item is a mapping of its fields, not {type(item).__name__}.")
    if set(item) - set(known) or not {"namespace", "key", "value"} <= set(item):
        raise Invalid(f"An item needs namespace, key and value; its fields are {', '.join(known)}.")
    check_fields(AgentItems.put, item)
    return ItemDraft(**item)


class AgentReview(AgentView):
    """Memories of an agent that await a person's decision."""

    def list(self) -> Sequence[Memory]:
        """List memories that await a person's decision: held for lack of trust, or marked as suspicious."""
        return self._store.list_for_review(self.owner, limit=MAX_PAGE)

    def approve(self, id: str) -> Memory:
        """Approve a memory from the review for use. Raises: NotFound."""
        return self._services.remember.approve(self.owner, id)

    def set_aside(
        self, id: str, state: Literal["held", "archived"] = "held", *, version: int | None = None, flag: str = ""
    ) -> Memory:
        """Undo `approve` (state "held", with the former `flag`) or `restore` (state "archived").

        With `version`, only if the memory is still at this version.

        What an approved memory corrected stays corrected.

        Raises: Invalid, NotFound; Conflict when it is at another version; Forbidden.
        """
        if state not in (State.HELD, State.ARCHIVED):
            raise Invalid(f"There is no state {str(state)[:40]!r} to set a memory aside; choose held or archived.")
        return self._services.restore.set_aside(self.owner, id, State(state), version=version, flag=flag)

    def approve_workspace(self) -> int:
        """Trust the notes that came with the workspace file like the user's own; return how many there were.

        Raises: Invalid when the agent has no such file; Forbidden in a user's view.
        """
        return self._services.remember.approve_workspace(self.owner)

    def similar(self, memory: str | Memory) -> Sequence[Memory]:
        """List live near-duplicates of a memory, given itself or by id, most similar first: candidates for merging.

        Raises: NotFound.
        """
        return [self._services.judge(each) for each in self._services.similar(self.owner, memory)]


class AgentChanges(AgentView):
    """Changes of an agent's memories: what add, turns, consolidation and edits of several did or propose."""

    def list(
        self, *, state: str = ChangeState.PROPOSED, before: str | None = None, limit: int = PAGE
    ) -> Sequence[Change]:
        """List changes, newest first.

        `state` is proposed, applied, rejected, undone or all; `before` (an id) continues a listing.

        Raises: Invalid.
        """
        seq = None if before is None else change_seq(before)
        if before is not None and seq is None:
            raise Invalid("`before` is the id of a change, such as c-3.")
        if state not in (*ChangeState, ANY_STATE):
            raise Invalid(f"There is no state {state[:40]!r}; choose {', '.join(ChangeState)} or {ANY_STATE}.")
        chosen = None if state == ANY_STATE else ChangeState(state)
        return self._services.changes.list(self.owner, chosen, before=seq, limit=check_limit(limit, most=MAX_PAGE))

    def get(self, id: str) -> Change:
        """Return one change, with what each of its memories says and said before. Raises: NotFound."""
        return self._services.changes.get(self.owner, id)

    def apply(self, id: str) -> Change:
        """Carry out a proposed change. Memories that it ends are kept, and `undo` restores them.

        Raises: NotFound; Conflict when it is not proposed, or one of its memories was edited or deleted since;
        Forbidden.
        """
        return self.get(self._services.changes.apply(self.owner, id).id)

    def reject(self, id: str) -> Change:
        """Reject a proposed change; the same is not proposed again until one of its memories changes.

        Raises: NotFound; Conflict when it is not proposed; Forbidden.
        """
        return self.get(self._services.changes.reject(self.owner, id).id)

    def undo(self, id: str) -> Change:
        """Undo an applied change as a whole: delete what it added, restore what it edited and ended.

        Raises: NotFound; Conflict when it is not applied, or one of its memories was edited or deleted since;
        Forbidden.
        """
        return self.get(self._services.changes.undo(self.owner, id).id)

    def edit(self, ids: Sequence[str], edit: Callable[[Memory], object], *, reason: str) -> Sequence[Change]:
        """Call `edit` with each of these memories, all or none, so that its updates can be undone together.

        `edit` may call `update`, `restore` or `review.approve` of this agent. The reason is shown with the changes, one
        for each user whose memories were edited.

        Raises: NotFound, Invalid, and any error of `edit`.
        """
        changes = self._services.changes.edit(self.owner, ids, edit, check_text(reason, what="reason"))
        return [self.get(each.id) for each in changes]

    def consolidate(self) -> Sequence[Change]:
        """Merge near-duplicates and end contradicted facts now, and return the changes made and proposed.

        Maintenance does it by rules; this also asks the configured model, whose suggestions are only proposed.
        """
        return [self.get(each.id) for each in self._services.consolidate(self.owner)]


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
        return self._services.context_calls.inspect(self.owner, id)

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
        return self._services.blocks.render_notes(self._find_reader(), message, mode=mode)

    def recall_block(self, query: str, *, purpose: str | None = None, limit: int = 5) -> str | None:
        """Recall for a question and render the hits as a block with a heading; None if there are none.

        `purpose` selects hits and heading as in `recall`. Without a user, only memories of no user are shown.

        Raises: Invalid; StoreError when no source answered.
        """
        recalled = self._services.recall(self._find_reader(), query, purpose=purpose, limit=limit)
        return self.render_recalled(recalled)

    def render_recalled(self, recalled: Recalled) -> str | None:
        """Render a result of `recall` as a block for the next prompt; None if it is empty."""
        return self._services.blocks.render_recalled(self.owner, recalled)

    def count_tokens(self, said: str | Sequence[Json]) -> int:
        """Count the tokens of a text, or of a list of chat messages including their framing.

        Uses the tokenizer of this store.
        """
        count = self._services.tokens.count
        if isinstance(said, str):
            return count(said)
        check_depth(said, what="list of messages")
        return sum(count_message(message, count) for message in said)


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
