"""Conversations as shown to a model, with a running summary that keeps them short.

Each call reads only messages that the summary does not cover. Once they exceed the threshold (by a setting, once all
messages do), one model call folds all but the newest into the summary. The model is called outside any transaction. The
summary is written only over the one it was made from, so that of two concurrent runs the second changes nothing. When
the model fails, nothing is folded and the conversation is the old summary and all messages after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from recollect.deadline import check_deadline, iter_with_deadline
from recollect.errors import Conflict, ModelError, NotFound, ReadOnly
from recollect.model import AuditEvent, Conversation, Message, Owner, Session
from recollect.policy.names import check_session
from recollect.policy.prompt import summaries
from recollect.policy.prompt.transcript_digest import digest
from recollect.ports import Clock, Store
from recollect.services.background.resting import GuardedModel, ModelPaused
from recollect.services.history.noting import record_event
from recollect.services.memories.secrets import SecretGuard

PAGE = 1_000
"""Messages read between two checks of the deadline."""


class Conversations:
    """Service that assembles conversations for a prompt."""

    def __init__(
        self,
        store: Store,
        guard: SecretGuard,
        model: GuardedModel | None,
        now: Clock,
        *,
        is_enabled: bool,
        threshold: int,
        keep_last: int,
        max_input_chars: int,
        is_counting_all: bool = False,
    ) -> None:
        """Set up the service; without a model, a digest is used as the summary.

        With `is_counting_all`, messages that the summary covers count towards the threshold too.
        """
        self._store = store
        self._guard = guard
        self._model = model
        self._now = now
        self._is_enabled = is_enabled
        self._threshold = threshold
        self._keep_last = keep_last
        self._max_input_chars = max_input_chars
        self._is_counting_all = is_counting_all

    def __call__(self, owner: Owner, session_id: str) -> Conversation:
        """Return a conversation; one that does not exist yet is empty.

        Raises: Invalid.
        """
        id = check_session(session_id)
        try:
            if not self._is_enabled:
                return Conversation(session_id=id, turns=tuple(self._list_messages(owner, id)))
            session = self._store.get_session(owner, id)
            turns = self._list_uncovered(session)
            return self._fold(session, turns) if self._is_due(session, turns) else _make_conversation(session, turns)
        # The session does not exist yet, or was deleted during this call.
        except NotFound:
            return Conversation(session_id=id)

    def _is_due(self, session: Session, turns: Sequence[Message]) -> bool:
        covered = session.summarized_count if self._is_counting_all else 0
        return len(turns) > self._keep_last and covered + len(turns) > self._threshold

    def _list_uncovered(self, session: Session) -> Sequence[Message]:
        return self._list_messages(session.owner, session.id, after=session.summarized_count)

    def _list_messages(self, owner: Owner, session_id: str, *, after: int = 0) -> Sequence[Message]:
        """Raises: NotFound, Cancelled, TimedOut."""
        found: list[Message] = []
        while True:
            check_deadline()
            page = self._store.list_messages(owner, session_id, after=after, limit=PAGE)
            found += page
            if len(page) < PAGE:
                return found
            after = page[-1].position

    def _fold(self, session: Session, turns: Sequence[Message]) -> Conversation:
        """Fold the oldest turns into the summary; return the conversation unchanged if that fails.

        Raises: NotFound.
        """
        # Fold no more messages than the model's input has room for.
        most = self._max_input_chars // summaries.MIN_CHARS_EACH
        old = turns[: len(turns) - self._keep_last][:most]
        try:
            summary = self._summarize(session, old)
        except ModelPaused:
            return _make_conversation(session, turns)
        except ModelError as error:
            message = f"Session {session.id} could not be summarised, its turns stay as they are: {error}"
            record_event(self._store, self._event(session, "summary.fail", message, {"messages": len(old)}))
            return _make_conversation(session, turns)
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
            return _make_conversation(self._store.transaction(session.owner.tenant, save), turns[len(old) :])
        # A concurrent run wrote its summary first; use that one.
        except Conflict:
            latest = self._store.get_session(session.owner, session.id)
            return _make_conversation(latest, self._list_uncovered(latest))
        # Use the summary without storing it; the next call makes it again.
        except ReadOnly:
            return _make_conversation(replace(session, summary=summary, summarized_count=covers), turns[len(old) :])

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
                summaries.build_messages(session.summary, turns, max_chars=self._max_input_chars),
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


def _make_conversation(session: Session, turns: Sequence[Message]) -> Conversation:
    return Conversation(
        session_id=session.id,
        summary=session.summary,
        summarized_count=session.summarized_count,
        turns=tuple(turns),
    )
