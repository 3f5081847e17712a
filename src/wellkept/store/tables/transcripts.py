"""Rows of chat sessions and messages."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.errors import Conflict, NotFound
from wellkept.language.names import is_session_id
from wellkept.memory.rules_filters import Condition
from wellkept.model import Agent, Message, Owner, Session
from wellkept.model.stored import Place
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Row, Unit, Units
from wellkept.store.tables.agents import make_agent
from wellkept.store.tables.columns import COLUMNS
from wellkept.store.tables.rows import BEHIND_ALL, RecordRows, merge_parts, owner_params

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
            make_agent(unit, Agent(owner=session.owner, name=session.owner.agent, created_at=now, updated_at=now))
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
        session = self.find_session(owner, id)
        if session is None:
            raise NotFound(NO_SUCH_SESSION)
        return session

    def find_session(self, owner: Owner, id: str) -> Session | None:
        row = self.read(owner.tenant, lambda unit: unit.one("find_session", **owner_params(owner), id=_id_param(id)))
        return None if row is None else _session_from(row)

    def find_tenant_session(self, tenant: str, id: str) -> Session | None:
        """Return the session with that id, of any agent."""
        row = self.read(tenant, lambda unit: unit.one("find_tenant_session", tenant=tenant, id=_id_param(id)))
        return None if row is None else _session_from(row)

    def list_sessions(
        self, owner: Owner, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions that meet `where`, most recently used first."""
        name, place = ("first_sessions", {}) if before is None else ("sessions_before", _cursor(before))
        clause = compile_filter(where, self._engine.name)

        def read(unit: Unit) -> list[list[Session]]:
            parts = (unit.all(name, clause, **owner_params(part), **place, limit=limit) for part in owner.parts)
            return [[*map(_session_from, rows)] for rows in parts]

        return merge_parts(self.read(owner.tenant, read), limit, lambda session: (session.updated_at, session.id))

    def list_tenant_sessions(
        self, tenant: str, *, where: Condition | None = None, before: Place | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """List sessions of all agents that meet `where`, most recently used first."""
        name, place = ("first_tenant_sessions", {}) if before is None else ("tenant_sessions_before", _cursor(before))
        clause = compile_filter(where, self._engine.name)
        rows = self.read(tenant, lambda unit: unit.all(name, clause, tenant=tenant, **place, limit=limit))
        return [_session_from(row) for row in rows]

    def delete_session(self, owner: Owner, id: str) -> None:
        """Delete the session and its messages. Raises: NotFound."""
        if not self.write(
            owner.tenant, lambda unit: unit.run("delete_session", **owner_params(owner), id=_id_param(id))
        ):
            raise NotFound(NO_SUCH_SESSION)

    def add_messages(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """Append messages and return them with their positions, which have no gaps. Raises: NotFound."""
        now = max((message.created_at for message in messages), default=None)
        if now is None:
            return []

        def add(unit: Unit) -> Sequence[Message]:
            row = unit.one(
                "take_positions", **owner_params(owner), id=_id_param(session_id), count=len(messages), now=now
            )
            if row is None:
                raise NotFound(NO_SUCH_SESSION)
            first = row[0] - len(messages) + 1
            placed = [
                Message(
                    session_id=session_id,
                    position=position,
                    role=each.role,
                    content=each.content,
                    created_at=each.created_at,
                )
                for position, each in enumerate(messages, first)
            ]
            unit.run_many("add_message", [_message_values(owner.tenant, each) for each in placed])
            return placed

        return self.write(owner.tenant, add)

    def list_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """List messages in order, starting after position `after`; `limit` None returns all. Raises: NotFound."""

        def read(unit: Unit) -> Sequence[Row]:
            if unit.one("find_session", **owner_params(owner), id=_id_param(session_id)) is None:
                raise NotFound(NO_SUCH_SESSION)
            count = BEHIND_ALL if limit is None else limit
            return unit.all("messages_after", tenant=owner.tenant, id=_id_param(session_id), after=after, limit=count)

        return [_message_from(row) for row in self.read(owner.tenant, read)]

    def update_summary(self, owner: Owner, session_id: str, summary: str, *, covers: int, instead_of: int) -> Session:
        """Replace the summary that covered `instead_of` messages by one that covers the first `covers`.

        Raises: NotFound; Conflict when the stored summary covers another number by now.
        """

        def update(unit: Unit) -> Row:
            written = unit.run(
                "update_summary",
                **owner_params(owner),
                id=_id_param(session_id),
                summary=summary,
                covers=covers,
                instead_of=instead_of,
            )
            row = unit.one("find_session", **owner_params(owner), id=_id_param(session_id))
            if row is None:
                raise NotFound(NO_SUCH_SESSION)
            if not written:
                raise Conflict("This session was summarised meanwhile; read it again.")
            return row

        return _session_from(self.write(owner.tenant, update))


def _id_param(id: str) -> str:
    """Return the id as a parameter; the empty id, which matches nothing, if it is not a valid one."""
    return id if is_session_id(id) else ""


def _cursor(place: Place) -> dict[str, object]:
    return dict(zip(("updated_at", "id"), place, strict=True))


_SESSIONS = RecordRows(Session, COLUMNS["session"])
_MESSAGES = RecordRows(Message, COLUMNS["message"])
_session_from, _message_from = _SESSIONS.parse, _MESSAGES.parse


def _message_values(tenant: str, message: Message) -> dict[str, object]:
    return {"tenant_id": tenant, **_MESSAGES.render(message)}
