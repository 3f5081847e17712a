"""An agent's conversations: logging turns, reading them again, and what a model is shown of them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agent_memory.records import MAX_PAGE, PAGE
from recollect.agent_memory.view import AgentView
from recollect.caller import current_caller
from recollect.model import Conversation, Message, Session
from recollect.policy.numbers import checked_whole
from recollect.policy.trust import check_removal
from recollect.ports import Place
from recollect.services.recall import checked_limit


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
