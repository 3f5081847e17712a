"""The library: `Recollect`, and the views of it a tenant or an agent gets. The only place where parts are wired up.

Nothing is kept between calls except what the store holds, so one `Recollect` serves many threads at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, Unpack

from recollect.errors import Invalid
from recollect.model import Agent, Hit, Json, Kind, Memory, MemoryVersion, Owner, State
from recollect.policy.agents import AgentFields, checked_agent_fields
from recollect.policy.kinds import checked_kind
from recollect.policy.names import checked_owner, checked_tenant, memory_seq
from recollect.policy.render import private_memory
from recollect.policy.text import checked_text
from recollect.ports import Clock, Embedder
from recollect.providers.embedders import CheckedEmbedder, open_embedder
from recollect.services.embedding import Embedding
from recollect.services.recall import Recall, checked_limit
from recollect.services.remember import Draft, Remember
from recollect.settings import Settings
from recollect.store import open_store
from recollect.tools import catalog

MAX_PAGE = 500
PAGE = 100
SEARCH_LIMIT = 20
PROMPT_LIMIT = 1_000_000
ANY_STATE = "all"


class Recollect:
    """One store of memories. Open it once, share it between threads, close it at the end (or use `with`)."""

    def __init__(
        self,
        url: str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        replace_embedder: bool = False,
    ) -> None:
        """Open the store at `url`: `sqlite:///file.db`, `:memory:`, `postgresql://…`; by default a file in the user's
        data folder. `replace_embedder` gives up vectors another embedder made, to be made anew by `embed_waiting`.

        Raises: Invalid, StoreError, SchemaMismatch; ModelError when `replace_embedder` finds the new one out of reach.
        """
        self.settings = settings if settings is not None else Settings.load()
        if url is not None:
            self.settings = replace(self.settings, url=url)
        self._now = clock if clock is not None else _utc_now
        self._store = open_store(
            self.settings.store_url,
            busy_timeout=self.settings.busy_timeout,
            pool_size=self.settings.pool_size,
            index_cache_mb=self.settings.index_cache_mb,
        )
        try:
            self._embedding = self._open_embedding(embedder, replace_embedder)
        except BaseException:
            self._store.close()
            raise
        self._remember = Remember(self._store, self._embedding, self._now)
        weights = {name: getattr(self.settings, f"weight_{name}") for name in PARTS}
        share = self.settings.similarity_words
        self._recall = Recall(self._store, self._embedding, self._now, weights=weights, words_share=share)

    def agent(self, id: str | None = None, tenant: str | None = None) -> AgentMemory:
        """One agent's memory. Nothing is written by this; the agent is made when it first remembers something.

        Raises: Invalid.
        """
        return AgentMemory(self, checked_owner(id or self.settings.agent, tenant or self.settings.tenant))

    def tenant(self, id: str | None = None) -> TenantMemory:
        """What all agents of a tenant share.

        Raises: Invalid.
        """
        return TenantMemory(self, checked_tenant(id or self.settings.tenant))

    def embed_waiting(self) -> int:
        """Give a vector to every memory that has none yet; how many those were.

        Raises: ModelError.
        """
        return self._embedding.embed_waiting()

    def count_waiting(self) -> int:
        """How many texts have no vector yet, in every tenant."""
        return self._embedding.count_waiting()

    def now(self) -> datetime:
        """The time by this store's clock, which decides what has expired."""
        return self._now()

    def close(self) -> None:
        """Finish what is being written and let go of the store. Calling it again does nothing."""
        self._embedding.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_embedding(self, given: Embedder | None, replace_embedder: bool) -> Embedding:
        chosen = given or open_embedder(
            self.settings.embedder, api_key=self.settings.openai_api_key, base_url=self.settings.openai_base_url
        )
        if chosen is None:
            return Embedding(self._store, None)
        embedder = CheckedEmbedder(chosen)
        if replace_embedder:
            self._store.change_embedder(embedder.name, embedder.dimensions)
        elif not embedder.is_remote:  # a remote one is asked nothing yet: it may be out of reach, and memory works on
            self._store.use_embedder(embedder.name, embedder.dimensions)
        return Embedding(self._store, embedder)


PARTS = ("similarity", "recency", "importance", "source")


class AgentMemory:
    """One agent's memory: its own records, and nobody else's."""

    def __init__(self, recollect: Recollect, owner: Owner) -> None:
        self.owner = owner
        self._recollect = recollect
        self._store = recollect._store

    def remember(
        self,
        text: str,
        *,
        kind: str = Kind.NOTE,
        tags: Sequence[str] = (),
        scope: str | None = None,
        role: str | None = None,
        session_id: str | None = None,
        importance: float | None = None,
        category: str | None = None,
        origin: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> Memory:
        """Keep one short text. When this returns, it is on disk.

        Raises: Invalid.
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
        )
        return self._recollect._remember(self.owner, [draft])[0]

    def remember_many(self, items: Iterable[str | Mapping[str, Any]]) -> Sequence[Memory]:
        """Keep many texts in one transaction: all of them or none. An item is a text, or `remember`'s arguments.

        Raises: Invalid.
        """
        drafts = [_draft(item) for item in items]
        return self._recollect._remember(self.owner, drafts) if drafts else []

    def get(self, id: str) -> Memory:
        """Raises: NotFound."""
        return self._store.get_memory(self.owner, id)

    def list(
        self,
        *,
        kind: str | None = None,
        tag: str = "",
        query: str = "",
        state: str = State.LIVE,
        before: str | None = None,
        limit: int = PAGE,
    ) -> Sequence[Memory]:
        """Memories, newest first; `state` is live, expired, archived or all; `before` (an id) continues a listing.

        Raises: Invalid.
        """
        return self._store.list_memories(
            self.owner,
            kind=None if kind is None else checked_kind(kind),
            needle=checked_text(query, what="query"),
            tag=checked_text(tag, what="tag").strip(),
            state=_checked_state(state),
            now=self._recollect._now(),
            before=None if before is None else _checked_seq(before),
            limit=checked_limit(limit, most=MAX_PAGE),
        )

    def search(
        self, query: str = "", *, tag: str = "", kind: str | None = None, limit: int = SEARCH_LIMIT
    ) -> Sequence[Memory]:
        """Live memories whose text holds `query` and that have the tag, ignoring case, newest first.

        Raises: Invalid.
        """
        return self.list(kind=kind, tag=tag, query=query, limit=limit)

    def recall(self, query: str, *, limit: int = 5, kinds: Collection[str] | None = None) -> Sequence[Hit]:
        """What fits a question best, by meaning and by words, each hit with the parts of its score.

        Raises: Invalid.
        """
        wanted = tuple(Kind) if kinds is None else tuple(checked_kind(kind) for kind in kinds)
        return self._recollect._recall(self.owner, query, limit=limit, kinds=wanted)

    def update(
        self,
        id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
    ) -> Memory:
        """Edit a memory; what it said before stays in its history.

        Raises: NotFound, Invalid, Conflict.
        """
        return self._recollect._remember.update(self.owner, id, text=text, tags=tags, importance=importance)

    def history(self, id: str) -> Sequence[MemoryVersion]:
        """What a memory said before its edits, newest first.

        Raises: NotFound.
        """
        return self._store.list_versions(self.owner, id)

    def forget(self, id: str) -> None:
        """Delete a memory and its history for good.

        Raises: NotFound.
        """
        self._store.delete_memory(self.owner, id)

    def private_memory(self) -> str | None:
        """The block of core memories and recent journal entries that belongs behind the system prompt, if any."""
        now = self._recollect._now()
        core, journal = (
            list(reversed(self._store.list_memories(self.owner, kind=kind, now=now, limit=PROMPT_LIMIT)))
            for kind in (Kind.CORE, Kind.JOURNAL)
        )
        return private_memory(core, journal)

    def tools(self, sets: Iterable[str] | None = None, *, form: str = "openai") -> Sequence[Json]:
        """Descriptions of the tools for `form` "openai", "anthropic" or "mcp"; all sets if none is named.

        Raises: Invalid.
        """
        return catalog.rendered(sets, form)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """Run one tool. A refusal is an answer, not an exception."""
        return catalog.call(self, name, arguments)


class TenantMemory:
    """What a tenant's agents share, and the agents themselves."""

    def __init__(self, recollect: Recollect, id: str) -> None:
        self.id = id
        self._recollect = recollect
        self._store = recollect._store

    def agent(self, id: str) -> AgentMemory:
        """Raises: Invalid."""
        return self._recollect.agent(id, self.id)

    def add_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Make an agent: name, system_prompt, model, tools, colour, icon, is_active.

        Raises: Invalid; Conflict when there is one of that id.
        """
        owner, now = checked_owner(id, self.id), self._recollect._now()
        checked = checked_agent_fields(fields)
        return self._store.add_agent(
            Agent(owner=owner, created_at=now, updated_at=now, **{"name": owner.agent, **checked})
        )

    def get_agent(self, id: str) -> Agent:
        """Raises: NotFound."""
        return self._store.get_agent(checked_owner(id, self.id))

    def list_agents(self, *, after: str = "", limit: int = PAGE) -> Sequence[Agent]:
        """By id, beginning behind `after`.

        Raises: Invalid.
        """
        limit = checked_limit(limit, most=MAX_PAGE)
        return self._store.list_agents(self.id, after=checked_text(after, what="after"), limit=limit)

    def update_agent(self, id: str, **fields: Unpack[AgentFields]) -> Agent:
        """Raises: NotFound, Invalid."""
        checked = checked_agent_fields(fields)
        owner, now = checked_owner(id, self.id), self._recollect._now()
        store = self._store
        return store.transaction(
            self.id, lambda: store.update_agent(replace(store.get_agent(owner), updated_at=now, **checked))
        )

    def delete_agent(self, id: str) -> None:
        """Remove an agent and everything it owns.

        Raises: NotFound.
        """
        self._store.delete_agent(checked_owner(id, self.id))

    def count_memories(self, id: str) -> Mapping[Kind, int]:
        """How many memories of each kind an agent has."""
        return self._store.count_memories(checked_owner(id, self.id))

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """Run a tool where no agent is speaking: tools that need one say so."""
        return catalog.call(None, name, arguments)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _draft(item: str | Mapping[str, Any]) -> Draft:
    if isinstance(item, str):
        return Draft(text=item)
    unknown = set(item) - set(Draft.__dataclass_fields__)
    if unknown or "text" not in item:
        problem = f"has no {sorted(unknown)[0]!r}" if unknown else "needs a text"
        raise Invalid(f"A memory {problem}; its fields are {', '.join(Draft.__dataclass_fields__)}.")
    return Draft(**item)


def _checked_state(state: str) -> State | None:
    if state == ANY_STATE:
        return None
    try:
        return State(state)
    except ValueError:
        raise Invalid(f"There is no state {str(state)[:40]!r}; choose {', '.join(State)} or {ANY_STATE}.") from None


def _checked_seq(id: str) -> int:
    seq = memory_seq(id)
    if seq is None:
        raise Invalid("`before` is the id of a memory, such as m-7.")
    return seq
