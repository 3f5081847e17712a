"""Methods for an agent's memories, and their OpenTelemetry spans by the semantic conventions for GenAI memory.

A span contains the operation, the owner of the memory, the number of records and the error type, but never a text, a
query or an error message. OpenTelemetry is not imported here; spans are only made if the host program has loaded and
configured it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from wellkept.arguments import Arguments, CheckedMethods, check_fields
from wellkept.caller import current_caller
from wellkept.errors import Invalid, WellkeptError
from wellkept.language.names import check_owner, check_user, memory_seq
from wellkept.language.text import check_text
from wellkept.language.values import check_limit
from wellkept.memory.remember import OTHER_USER, Draft, naming_item
from wellkept.memory.rules_filters import STATE, MemoryFilters, check_filters, leave_out_items, names_field
from wellkept.memory.rules_kinds import check_kind, check_moment
from wellkept.model import (
    NO_USER,
    Forgotten,
    Kind,
    KindName,
    Memory,
    OriginName,
    Owner,
    Profile,
    RoleName,
    ScopeName,
    State,
    StateName,
)

if TYPE_CHECKING:
    from wellkept.api.build import Services

NAME = "wellkept"
NAME_ONE = "Name either the id of a memory or, with `about`, what to forget."

P = ParamSpec("P")
S = TypeVar("S", bound=Any)
T = TypeVar("T")
V = TypeVar("V")


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


MAX_PAGE = 500
PAGE = 100
SEARCH_LIMIT = 20
ANY_STATE: Final = "all"


class AgentRecords(AgentView):
    """Methods that work on single memories."""

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


def _parse_draft(item: object) -> Draft:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise Invalid(f"A memory is a text or a mapping of its fields, not {type(item).__name__}.")
    unknown = set(item) - set(Draft.__dataclass_fields__)
    if unknown or "text" not in item:
        problem = f"has no {sorted(unknown)[0]!r}" if unknown else "needs a text"
        raise Invalid(f"A memory {problem}; its fields are {', '.join(Draft.__dataclass_fields__)}.")
    check_fields(AgentRecords.remember, item)
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
