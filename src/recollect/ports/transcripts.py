"""What was said: sessions and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from recollect.model import Message, Owner, Session

Place: TypeAlias = tuple[datetime, str]
"""Where a listing by time goes on: behind what has that time and that id, whether or not it is still there."""


def place_of(session: Session) -> Place:
    """Where a session stands in a listing."""
    return session.updated_at, session.id


class TranscriptStore(Protocol):
    """Conversations, each of one agent. Messages are only ever added at the end, or removed with their session."""

    def add_session(self, session: Session) -> Session:
        """The agent is made if need be.

        Raises: Conflict when the tenant has a session of that id.
        """

    def get_session(self, owner: Owner, id: str) -> Session:
        """Raises: NotFound."""

    def find_session(self, owner: Owner, id: str) -> Session | None: ...

    def find_tenant_session(self, tenant: str, id: str) -> Session | None:
        """The session of that id, whichever agent's it is."""

    def list_sessions(self, owner: Owner, *, before: Place | None = None, limit: int = 100) -> Sequence[Session]:
        """The one used last comes first."""

    def list_tenant_sessions(self, tenant: str, *, before: Place | None = None, limit: int = 100) -> Sequence[Session]:
        """The same of every agent."""

    def delete_session(self, owner: Owner, id: str) -> None:
        """Remove the session and its messages.

        Raises: NotFound.
        """

    def add_messages(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages with their positions, which follow each other and those before without a gap.

        Raises: NotFound.
        """

    def list_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """In order, beginning behind position `after`; no limit means all.

        Raises: NotFound.
        """

    def update_summary(self, owner: Owner, session_id: str, summary: str, *, covers: int, instead_of: int) -> Session:
        """Write a summary of the first `covers` messages over the one that covered `instead_of`.

        Raises: NotFound; Conflict when the stored one covers another number by now.
        """
