"""What a model is shown of a conversation, and the running summary that keeps it short.

Each call reads what the summary does not cover and nothing of what it does. Once that is more than the threshold, one
model call folds all but the newest into the summary; then it takes as many new messages again until the next one. The
call is made outside any transaction; the summary is written only over the one it was made from, so that of two runs at
once the second changes nothing. When the model fails, nothing is folded: the old summary and all that follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from recollect.errors import Conflict, ModelError, NotFound, ReadOnly
from recollect.model import AuditEvent, Conversation, Message, Owner, Session
from recollect.policy.names import checked_session
from recollect.policy.prompt import summaries
from recollect.policy.prompt.transcript_digest import digest
from recollect.ports import Clock, Store
from recollect.services.background.resting import ModelResting, RestedModel
from recollect.services.history.noting import note
from recollect.services.memories.secrets import SecretGuard


class Conversations:
    """Assembles conversations; every face asks it for each run."""

    def __init__(
        self,
        store: Store,
        guard: SecretGuard,
        model: RestedModel | None,
        now: Clock,
        *,
        is_enabled: bool,
        threshold: int,
        keep_last: int,
        max_input_chars: int,
    ) -> None:
        """Without a model, a digest takes the summary's place."""
        self._store = store
        self._guard = guard
        self._model = model
        self._now = now
        self._is_enabled = is_enabled
        self._threshold = threshold
        self._keep_last = keep_last
        self._max_input_chars = max_input_chars

    def __call__(self, owner: Owner, session_id: str) -> Conversation:
        """A conversation that has not begun yet is an empty one.

        Raises: Invalid.
        """
        id = checked_session(session_id)
        try:
            if not self._is_enabled:
                return Conversation(session_id=id, turns=tuple(self._store.list_messages(owner, id)))
            session = self._store.get_session(owner, id)
            turns = self._uncovered(session)
            return self._folded(session, turns) if self._is_due(turns) else _shown(session, turns)
        except NotFound:  # not begun, or deleted while we were at it
            return Conversation(session_id=id)

    def _is_due(self, turns: Sequence[Message]) -> bool:
        return len(turns) > max(self._threshold, self._keep_last)

    def _uncovered(self, session: Session) -> Sequence[Message]:
        return self._store.list_messages(session.owner, session.id, after=session.summarized_count)

    def _folded(self, session: Session, turns: Sequence[Message]) -> Conversation:
        """The conversation with its oldest turns folded in; as it was, if that fails.

        Raises: NotFound.
        """
        most = self._max_input_chars // summaries.MIN_CHARS_EACH
        old = turns[: len(turns) - self._keep_last][:most]
        try:
            summary = self._summary(session, old)
        except ModelResting:
            return _shown(session, turns)
        except ModelError as error:
            message = f"Session {session.id} could not be summarised, its turns stay as they are: {error}"
            note(self._store, self._event(session, "summary.fail", message, {"messages": len(old)}))
            return _shown(session, turns)
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
            return _shown(self._store.transaction(session.owner.tenant, save), turns[len(old) :])
        except Conflict:  # another run was faster; what it wrote counts, and what we made is dropped
            latest = self._store.get_session(session.owner, session.id)
            return _shown(latest, self._uncovered(latest))
        except ReadOnly:  # shown without being kept; it is made again next time
            return _shown(replace(session, summary=summary, summarized_count=covers), turns[len(old) :])

    def _summary(self, session: Session, old: Sequence[Message]) -> str:
        """Raises: ModelError."""
        said = [(message.role.value, message.content) for message in old]
        sources = [session.summary, *(content for _, content in said)]
        if self._model is None:
            text = digest(said, before=session.summary)
        else:
            answer = self._model.complete(
                summaries.question(session.summary, said, max_chars=self._max_input_chars),
                max_tokens=summaries.MAX_TOKENS,
                about=(session.owner, session.id),
                find_problem=partial(summaries.problem, source_chars=sum(map(len, sources))),
            )
            text = summaries.answer_text(answer)
        cleaned, _ = self._guard.cleaned(session.owner.tenant, text)
        return summaries.with_references(cleaned, sources)

    def _event(self, session: Session, action: str, message: str, meta: Mapping[str, Any]) -> AuditEvent:
        return AuditEvent(
            tenant=session.owner.tenant,
            at=self._now(),
            action=action,
            agent_id=session.owner.agent,
            message=message,
            meta={"session_id": session.id, **meta},
        )


def _shown(session: Session, turns: Sequence[Message]) -> Conversation:
    return Conversation(
        session_id=session.id,
        summary=session.summary,
        summarized_count=session.summarized_count,
        turns=tuple(turns),
    )
