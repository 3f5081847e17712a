"""Conversations as shown to a model, with a running summary that keeps them short.

Each call reads only messages that the summary does not cover, or only the newest of them. Once they exceed the
threshold (by a setting, once all messages do), one model call folds all but the newest into the summary. The model is
called outside any transaction. The summary is written only over the one it was made from, so that of two concurrent
runs the second changes nothing. When the model fails, nothing is folded and the conversation is the old summary and all
messages after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Conflict, ModelError, NotFound, ReadOnly
from wellkept.extension import Clock
from wellkept.history.workflows import record_event
from wellkept.language.names import check_session
from wellkept.model import AuditEvent, Conversation, Message, Owner, Session
from wellkept.prompt import rules_summaries as summaries
from wellkept.prompt.rules_transcript_digest import digest
from wellkept.secrets.check import SecretGuard
from wellkept.settings import Settings
from wellkept.upkeep.resting import GuardedModel, ModelPaused

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

PAGE = 1_000
"""Messages read between two checks of the deadline."""

STEP = 200
"""Messages read at a time from the newest backwards. Steps begin at fixed positions, so that a conversation that grows
by a turn begins where it did, and what was folded of it can be used again."""


class Conversations:
    """Service that assembles conversations for a prompt."""

    def __init__(
        self, store: SqlStore, guard: SecretGuard, model: GuardedModel | None, now: Clock, settings: Settings
    ) -> None:
        """Set up the service; without a model, a digest is used as the summary."""
        self._store, self._guard, self._model, self._now = store, guard, model, now
        self._settings = settings

    def __call__(
        self, owner: Owner, session_id: str, *, limit: int | None = None, max_chars: int | None = None
    ) -> Conversation:
        """Return a conversation; one that does not exist yet is empty.

        Of the messages behind the summary it has the newest `limit`, or the newest with together about `max_chars`.

        Raises: Invalid.
        """
        id = check_session(session_id)
        try:
            session = self._store.get_session(owner, id)
            # A summary that was made before summarising was turned off is not used.
            is_used = self._settings.summary_enabled
            session = self._fold_if_due(session) if is_used else replace(session, summary="", summarized_count=0)
            start = session.summarized_count
            if limit is not None:
                after = max(start, session.message_count - limit)
                turns = self._list_messages(session, after=after)[-limit:]
            elif max_chars is not None:
                turns = self._list_newest(session, max_chars)
            else:
                turns = self._list_messages(session, after=start)
        # The session does not exist yet, or was deleted during this call.
        except NotFound:
            return Conversation(session_id=id)
        return Conversation(
            session_id=session.id,
            summary=session.summary,
            summarized_count=start,
            turns=tuple(turns),
            omitted_count=turns[0].position - 1 - start if turns else 0,
        )

    def _list_newest(self, session: Session, max_chars: int) -> Sequence[Message]:
        """Return the newest messages behind the summary, whole steps of them, until they have `max_chars`."""
        start = session.summarized_count
        after = max(start, (session.message_count - 1) // STEP * STEP)
        found = list(self._list_messages(session, after=after))
        while after > start and sum(len(each.content) for each in found) < max_chars:
            check_deadline()
            end, after = after, max(start, after - STEP)
            page = self._store.list_messages(session.owner, session.id, after=after, limit=end - after)
            found[:0] = [each for each in page if each.position <= end]
        return found

    def _list_messages(self, session: Session, *, after: int) -> Sequence[Message]:
        """Raises: NotFound, Cancelled, TimedOut."""
        found: list[Message] = []
        while True:
            check_deadline()
            page = self._store.list_messages(session.owner, session.id, after=after, limit=PAGE)
            found += page
            if len(page) < PAGE:
                return found
            after = page[-1].position

    def _fold_if_due(self, session: Session) -> Session:
        """Fold the oldest turns into the summary if there are too many; return the session unchanged if that fails.

        Raises: NotFound.
        """
        uncovered, settings = session.message_count - session.summarized_count, self._settings
        if uncovered <= max(settings.summary_keep_last, settings.summary_threshold):
            return session
        # Fold no more messages than the model's input has room for.
        most = min(uncovered - settings.summary_keep_last, summaries.MAX_INPUT_CHARS // summaries.MIN_CHARS_EACH)
        old = self._store.list_messages(session.owner, session.id, after=session.summarized_count, limit=most)
        try:
            summary = self._summarize(session, old)
        except ModelPaused:
            return session
        except ModelError as error:
            message = f"Session {session.id} could not be summarised, its turns stay as they are: {error}"
            record_event(self._store, self._event(session, "summary.fail", message, {"messages": len(old)}))
            return session
        covers = session.summarized_count + len(old)

        def save() -> Session:
            saved = self._store.update_summary(
                session.owner, session.id, summary, covers=covers, instead_of=session.summarized_count
            )
            message = f"{len(old):,} messages of session {session.id} were folded into its summary."
            self._store.add_event(
                self._event(session, "summary.fold", message, {"messages": len(old), "covers": covers})
            )
            return saved

        try:
            return self._store.transaction(session.owner.tenant, save)
        # A concurrent run wrote its summary first; use that one.
        except Conflict:
            return self._store.get_session(session.owner, session.id)
        # Use the summary without storing it; the next call makes it again.
        except ReadOnly:
            return replace(session, summary=summary, summarized_count=covers)

    def _summarize(self, session: Session, old: Sequence[Message]) -> str:
        """Return a summary of the previous one and these messages.

        Raises: ModelError.
        """
        turns = [(message.role.value, message.content) for message in old]
        sources = [session.summary, *(content for _, content in turns)]
        if self._model is None:
            text = digest(iter_with_deadline(turns), before=session.summary)
        else:
            source_chars = sum(map(len, sources))
            answer = self._model.complete(
                summaries.build_messages(session.summary, turns),
                max_tokens=summaries.MAX_TOKENS,
                about=(session.owner, session.id),
                find_problem=partial(summaries.find_problem, source_chars=source_chars),
            )
            text = summaries.read_answer(answer, source_chars=source_chars)
        cleaned, _ = self._guard.clean(session.owner.tenant, text)
        return summaries.append_references(cleaned, sources)

    def _event(self, session: Session, action: str, message: str, meta: Mapping[str, Any]) -> AuditEvent:
        return AuditEvent(
            tenant=session.owner.tenant,
            at=self._now(),
            action=action,
            agent_id=session.owner.agent,
            message=message,
            meta={"session_id": session.id, **meta},
        )
