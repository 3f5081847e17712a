"""What an agent was shown at its latest calls, and what tools said in a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import ContextCall, Memory, Owner


class ContextStore(Protocol):
    """The prompts that were put together for an agent, by ids and digests."""

    def add_context_calls(self, owner: Owner, calls: Sequence[ContextCall], *, keep: int) -> bool:
        """Keep these and forget the oldest beyond `keep`; False, and nothing is kept, when there is no such agent."""

    def get_context_call(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""

    def list_context_calls(
        self, owner: Owner, *, session_id: str = "", before: str = "", limit: int = 20
    ) -> Sequence[ContextCall]:
        """Newest first, of one session if one is named; `before` (an id) continues a listing."""

    def list_tool_results(self, owner: Owner, session_id: str, *, now: datetime, limit: int = 20) -> Sequence[Memory]:
        """Live memories of what tools said in a session, newest first."""
