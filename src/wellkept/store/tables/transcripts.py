"""Rows of chat sessions and messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from wellkept.errors import Conflict, NotFound
from wellkept.memory.rules_filters import Condition
from wellkept.model import Block, BlockItem, ContextCall, Memory, Message, Owner, Session, Truncation
from wellkept.model.stored import Place
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Row, Unit, Units, owner_params
from wellkept.store.tables.agents import ensure_agent
from wellkept.store.tables.rows import (
    BEHIND_ALL,
    COLUMNS,
    RecordRows,
    json_list,
    json_text,
    memory_from,
    moment,
)

NO_SUCH_SESSION = "There is no such session."


class TranscriptRows(Units):
    """Conversations of agents. Messages are only appended, or removed with their session.

    A message's position is its number within the session; the session's row holds the count.
    """

    def add_session(self, session: Session, *, claims: bool = False) -> Session:
        """Add a session; create the agent if necessary.

        With `claims`, details of no user that were stored with its id before get its user.

        Raises: Conflict when the tenant has a session with that id.
        """
        values = _SESSIONS.render(session)

        def add(unit: Unit) -> int:
            now = session.created_at
            ensure_agent(unit, session.owner, now)
            count = unit.run("add_session", **values)
            if count and claims and session.user is not None:
                names = ("tenant_id", "agent_id", "user_id", "id")
                unit.put("claim_details", **{name: values[name] for name in names})
            return count

        if not self.write(session.owner.tenant, add):
            raise Conflict(f"Session {session.id!r} already exists; choose another id.")
        return session

    def get_session(self, owner: Owner, id: str) -> Session:
        """Return one session. Raises: NotFound."""
        return _session_from(self._get(owner, "find_session", NO_SUCH_SESSION, id=id))

    def find_session(self, owner: Owner, id: str) -> Session | None:
        row = self._one(owner, "find_session", id=id)
        return None if row is None else _session_from(row)

    def find_tenant_session(self, tenant: str, id: str) -> Session | None:
        """Return the session with that id, of any agent."""
        row = self._one(tenant, "find_tenant_session", id=id)
        return None if row is None else _session_from(row)

    def list_sessions(
        self, owner: Owner, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions that meet `where`, most recently used first."""
        name, place = ("first_sessions", {}) if before is None else ("sessions_before", _cursor(before))
        clause, by_use = compile_filter(where, self._engine.name), attrgetter("updated_at", "id")
        return self._list(owner, name, _session_from, by_use, clause, limit=limit, **place)

    def list_tenant_sessions(
        self, tenant: str, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions of all agents that meet `where`, most recently used first."""
        name, place = ("first_tenant_sessions", {}) if before is None else ("tenant_sessions_before", _cursor(before))
        clause = compile_filter(where, self._engine.name)
        return [*map(_session_from, self._all(tenant, name, clause, **place, limit=limit))]

    def delete_session(self, owner: Owner, id: str) -> None:
        """Delete the session and its messages. Raises: NotFound."""
        if not self._run(owner, "delete_session", id=id):
            raise NotFound(NO_SUCH_SESSION)

    def add_messages(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """Append messages and return them with their positions, which have no gaps. Raises: NotFound."""
        now = max((message.created_at for message in messages), default=None)
        if now is None:
            return []

        def add(unit: Unit) -> Sequence[Message]:
            row = unit.one("take_positions", **owner_params(owner), id=session_id, count=len(messages), now=now)
            if row is None:
                raise NotFound(NO_SUCH_SESSION)
            first = row[0] - len(messages) + 1
            placed = [replace(each, session_id=session_id, position=at) for at, each in enumerate(messages, first)]
            unit.run_many("add_message", [{"tenant_id": owner.tenant, **_message_values(each)} for each in placed])
            return placed

        return self.write(owner.tenant, add)

    def list_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """List messages in order, starting after position `after`; `limit` None returns all. Raises: NotFound."""

        def read(unit: Unit) -> Sequence[Row]:
            if unit.one("find_session", **owner_params(owner), id=session_id) is None:
                raise NotFound(NO_SUCH_SESSION)
            count = BEHIND_ALL if limit is None else limit
            return unit.all("messages_after", tenant=owner.tenant, id=session_id, after=after, limit=count)

        return [_message_from(row) for row in self.read(owner.tenant, read)]

    def update_summary(self, owner: Owner, session_id: str, summary: str, *, covers: int, instead_of: int) -> Session:
        """Replace the summary that covered `instead_of` messages by one that covers the first `covers`.

        Raises: NotFound; Conflict when the stored summary covers another number by now.
        """

        def update(unit: Unit) -> Row:
            written = unit.run(
                "update_summary",
                **owner_params(owner),
                id=session_id,
                summary=summary,
                covers=covers,
                instead_of=instead_of,
            )
            row = unit.one("find_session", **owner_params(owner), id=session_id)
            if row is None:
                raise NotFound(NO_SUCH_SESSION)
            if not written:
                raise Conflict("This session was summarised meanwhile; read it again.")
            return row

        return _session_from(self.write(owner.tenant, update))


def _cursor(place: Place) -> dict[str, object]:
    return dict(zip(("updated_at", "id"), place, strict=True))


_SESSIONS = RecordRows(Session, COLUMNS["session"])
_MESSAGES = RecordRows(Message, COLUMNS["message"])
_session_from = _SESSIONS.parse
_message_from, _message_values = _MESSAGES.parse, _MESSAGES.render


BEHIND_ALL_CALLS = "~"
"""Text that sorts after every id; start of a listing without a cursor."""

NO_SUCH_CALL = "There is no such call; only the latest are kept."


class ContextRows(Units):
    """Prompts assembled for an agent, stored as ids and digests."""

    def add_context_calls(self, owner: Owner, calls: Sequence[ContextCall], *, keep: int) -> bool:
        # The latest calls are kept, whoever they were for.
        """Add calls and delete the oldest beyond `keep`; return False and store nothing if there is no such agent."""
        owner = owner.whole

        def add(unit: Unit) -> bool:
            if unit.one("find_agent", **owner_params(owner)) is None:
                return False
            unit.run_many("add_context_call", map(_call_values, calls))
            oldest = unit.one("oldest_kept_context_call", **owner_params(owner), keep=keep)
            if oldest is not None:
                unit.put("prune_context_calls", **owner_params(owner), id=oldest[0])
            return True

        return self.write(owner.tenant, add)

    def get_context_call(self, owner: Owner, id: str) -> ContextCall:
        """Return one call. Raises: NotFound."""
        return call_from(self._get(owner, "find_context_call", NO_SUCH_CALL, id=id))

    def list_context_calls(
        self, owner: Owner, *, session_id: str = "", before: str = "", limit: int = 20, item: str | None = None
    ) -> Sequence[ContextCall]:
        """List calls, newest first, optionally of one session; `before` (an id) continues a listing.

        With `item`, blocks hold only items with this id; with an empty one, none. A prompt may have considered
        thousands.
        """
        place = {"session": session_id, "before": before or BEHIND_ALL_CALLS, "limit": limit}
        rows = self._all(owner, "list_context_calls", **place)
        return [call_from(row if item is None else _drop_items(row, item)) for row in rows]

    def add_shown(self, owner: Owner, hashes: Collection[str], *, at: datetime, since: datetime, keep: int) -> bool:
        """Remember the newest `keep` hashes of texts shown after `since`; return False if there is no such agent."""

        def add(unit: Unit) -> bool:
            if unit.one("find_agent", **owner_params(owner)) is None:
                return False
            # Sorted, so that two processes lock the rows in the same order.
            unit.run_many("add_shown", (owner_params(owner) | {"hash": each, "at": at} for each in sorted(hashes)))
            oldest = unit.one("oldest_kept_shown", **owner_params(owner), keep=keep)
            last = since if oldest is None else max(since, moment(oldest[0]))
            unit.put("prune_shown", **owner_params(owner), at=last)
            return True

        return self.write(owner.tenant, add)

    def find_shown(self, owner: Owner, hashes: Collection[str], *, since: datetime) -> Collection[str]:
        """Return those of the hashes that were shown after `since`, by whatever process."""
        return {row[0] for row in self._all(owner, "find_shown", names=list(hashes), since=since)}

    def forget_shown(self, tenant: str) -> None:
        """Delete the hashes of a tenant's shown texts."""
        self._run(tenant, "forget_shown")

    def list_tool_results(self, owner: Owner, session_id: str, *, now: datetime, limit: int = 20) -> Sequence[Memory]:
        """List live memories of tool results in a session, newest first."""
        return [*map(memory_from, self._all(owner, "list_tool_results", session=session_id, now=now, limit=limit))]


def _block_values(block: Block) -> dict[str, Any]:
    items = [_non_empty_fields(item) for item in block.items]
    return {"name": block.name, "tokens": block.tokens, **({"items": items} if items else {})}


def _non_empty_fields(record: BlockItem | Truncation) -> dict[str, Any]:
    """Return the fields of a record that are not empty."""
    return {name: value for name, value in asdict(record).items() if value not in (None, "", ())}


def _block_from(values: dict[str, Any]) -> Block:
    items = tuple(BlockItem(**item) for item in values.get("items", ()))
    return Block(name=values["name"], tokens=values["tokens"], items=items)


_BLOCKS = COLUMNS["context_call"].index("blocks")


def _drop_items(row: Row, item: str) -> list[Any]:
    """Return a row whose blocks hold only the items with an id."""
    values = list(row)
    values[_BLOCKS] = [
        {**block, "items": [each for each in block.get("items", ()) if each["id"] == item]}
        for block in json_list(values[_BLOCKS])
    ]
    return values


def _truncation_from(values: dict[str, Any]) -> Truncation:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Truncation(**{"sources": (), **values, **lists})


_CALLS = RecordRows(
    ContextCall,
    COLUMNS["context_call"],
    blocks=(
        "blocks",
        lambda blocks: tuple(map(_block_from, json_list(blocks))),
        lambda blocks: json_text([_block_values(block) for block in blocks]),
    ),
    truncations=(
        "truncations",
        lambda truncations: tuple(map(_truncation_from, json_list(truncations))),
        lambda truncations: json_text([_non_empty_fields(truncation) for truncation in truncations]),
    ),
)
call_from, _call_values = _CALLS.parse, _CALLS.render
