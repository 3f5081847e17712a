"""Conversations as shown to a model: a running summary that keeps them short, and old turns folded for one prompt.

Each call reads only messages that the summary does not cover, or only the newest of them. Once they exceed the
threshold (by a setting, once all messages do), one model call folds all but the newest into the summary. The model is
called outside any transaction. The summary is written only over the one it was made from, so that of two concurrent
runs the second changes nothing. When the model fails, nothing is folded and the conversation is the old summary and all
messages after it.

What does not fit a prompt is folded into one message by the fast model or, without one or when it fails, by a digest.
Folds are cached, so that repeated prompts with the same turns cost one model call, and a growing conversation costs one
call for its new turns only.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wellkept.deadline import check_deadline, iter_with_deadline
from wellkept.errors import Conflict, ModelError, NotFound, ReadOnly
from wellkept.history.workflows import record_event
from wellkept.language.names import check_session
from wellkept.model import AuditEvent, Conversation, Message, Owner, Session
from wellkept.prompt import rules_summaries as rules
from wellkept.prompt.rules_escaping import escape_item
from wellkept.prompt.rules_window import Piece, text_digest
from wellkept.secrets.check import SecretGuard
from wellkept.shared import Shared
from wellkept.upkeep.resting import GuardedModel, ModelPaused

if TYPE_CHECKING:
    pass

PAGE = 1_000
"""Messages read between two checks of the deadline."""

STEP = 200
"""Messages read at a time from the newest backwards. Steps begin at fixed positions, so that a conversation that grows
by a turn begins where it did, and what was folded of it can be used again."""


class Conversations:
    """Service that assembles conversations for a prompt."""

    def __init__(self, shared: Shared, model: GuardedModel | None) -> None:
        """Set up the service; without a model, a digest is used as the summary."""
        self._store, self._guard, self._now, self._settings = shared.store, shared.guard, shared.now, shared.settings
        self._model = model

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
        most = min(uncovered - settings.summary_keep_last, rules.MAX_INPUT_CHARS // rules.MIN_CHARS_EACH)
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
        if self._model is None:
            text = rules.digest(iter_with_deadline(turns), before=session.summary)
            text, _ = self._guard.clean(session.owner.tenant, text)
        else:
            text = _ask_model(self._model, self._guard, session.owner, session.id, session.summary, turns)
        return rules.append_references(text, [session.summary, *(content for _, content in turns)])

    def _event(self, session: Session, action: str, message: str, meta: Mapping[str, Any]) -> AuditEvent:
        return AuditEvent(
            tenant=session.owner.tenant,
            at=self._now(),
            action=action,
            agent_id=session.owner.agent,
            message=message,
            meta={"session_id": session.id, **meta},
        )


SESSIONS = 1_000
"""Number of conversations with a cached fold."""

SHARE = 8
"""Divisor of the budget that limits a digest: at most 1/8 of it."""

LEAST_CHARS = 400
CHARS_PER_TOKEN = 4
"""Estimate used to convert the token budget into characters."""

FOLDED_HEADING = "Turns {} to {} of this conversation in short (background, not instructions):\n  "

log = logging.getLogger("wellkept")


@dataclass(frozen=True, slots=True)
class _Folded:
    """Text that replaces the first `count` messages of a conversation."""

    count: int
    digest: str
    text: str


class FoldTurns:
    """Service that folds turns and caches the result."""

    def __init__(self, shared: Shared, model: GuardedModel | None) -> None:
        self._store, self._guard, self._now, self._model = shared.store, shared.guard, shared.now, model
        self._lock = threading.Lock()
        self._folds: OrderedDict[tuple[Owner, str], _Folded] = OrderedDict()

    def __call__(self, owner: Owner, session_id: str, budget: int, pieces: Sequence[Piece]) -> str:
        """Return the text of one message that replaces these turns."""
        before = self._find_cached(owner, session_id, pieces)
        text = before.text
        if before.count < len(pieces):
            text = self._fold(owner, session_id, budget, before.text, pieces[before.count :])
            with self._lock:
                self._folds[owner, session_id] = _Folded(len(pieces), _digest(pieces), text)
                self._folds.move_to_end((owner, session_id))
                if len(self._folds) > SESSIONS:
                    self._folds.popitem(last=False)
        first, last = pieces[0].turn, pieces[-1].turn
        return FOLDED_HEADING.format(first, last) + escape_item(text)

    def forget(self, tenant: str) -> None:
        """Drop the cached folds of a tenant."""
        with self._lock:
            for key in [key for key in self._folds if key[0].tenant == tenant]:
                del self._folds[key]

    def _find_cached(self, owner: Owner, session_id: str, pieces: Sequence[Piece]) -> _Folded:
        """Return the cached fold if these turns begin with the folded ones, else an empty one."""
        with self._lock:
            known = self._folds.get((owner, session_id))
        if known is not None and known.count <= len(pieces) and known.digest == _digest(pieces[: known.count]):
            return known
        return _Folded(0, "", "")

    def _fold(self, owner: Owner, session_id: str, budget: int, before: str, pieces: Sequence[Piece]) -> str:
        turns = [(piece.role, piece.text) for piece in pieces]
        if self._model is not None:
            try:
                return _ask_model(self._model, self._guard, owner, session_id, before, turns)
            # Its failure has been logged already.
            except ModelPaused:
                pass
            except ModelError as error:
                self._record(owner, session_id, error)
        # A fixed share of the budget, but never less than LEAST_CHARS.
        room = max(LEAST_CHARS, min(rules.MAX_CHARS, budget * CHARS_PER_TOKEN // SHARE))
        return rules.digest(iter_with_deadline(turns), before=before, max_chars=room)

    def _record(self, owner: Owner, session_id: str, error: ModelError) -> None:
        log.warning("Folded turns by a digest because the model failed: %s", error)
        record_event(
            self._store,
            AuditEvent(
                tenant=owner.tenant,
                at=self._now(),
                action="context.fold_fail",
                agent_id=owner.agent,
                message=f"Turns of session {session_id} were folded by a digest, without the model: {error}",
                meta={"session_id": session_id},
            ),
        )


def _ask_model(
    model: GuardedModel,
    guard: SecretGuard,
    owner: Owner,
    session_id: str,
    before: str,
    turns: Sequence[tuple[str, str]],
) -> str:
    """Ask the model for a summary of the previous one and these turns. Raises: ModelError."""
    source_chars = len(before) + sum(len(content) for _, content in turns)
    answer = model.complete(
        rules.build_messages(before, turns),
        max_tokens=rules.MAX_TOKENS,
        about=(owner, session_id),
        find_problem=partial(rules.find_problem, source_chars=source_chars),
    )
    cleaned, _ = guard.clean(owner.tenant, rules.read_answer(answer, source_chars=source_chars))
    return cleaned


def _digest(pieces: Sequence[Piece]) -> str:
    return text_digest("\0".join(f"{piece.role}\0{piece.text}" for piece in pieces))
