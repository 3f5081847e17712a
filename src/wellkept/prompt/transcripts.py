"""Transcripts: sessions, and turns that consist of a user's prompt and the final answer.

A turn is stored completely or not at all, after the turns before it. A secret does not make it fail, since that would
leave a gap in the conversation: the secret is replaced by a mark, or only flagged in mode `flag`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.facts.telling import Telling
from wellkept.language.names import check_session
from wellkept.memory.remember import Draft, Remember, check_own, find_session_user
from wellkept.memory.rules_kinds import RULES, check_metadata, check_moment
from wellkept.model import AuditEvent, Kind, Message, Origin, Owner, Role, Session
from wellkept.prompt.rules_summaries import clip_middle
from wellkept.shared import Shared

if TYPE_CHECKING:
    pass

MAX_MESSAGE_CHARS = 100_000
MAX_REASON_CHARS = 500
ORIGINS = {Role.USER: Origin.USER, Role.ASSISTANT: Origin.AGENT}


class TranscriptWriter:
    """Service for every change to an agent's conversations, except their summaries."""

    def __init__(
        self, shared: Shared, remember: Remember, telling: Telling, *, on_facts: Callable[[Owner], None]
    ) -> None:
        """Set up; `on_facts` is called after a turn with new facts was stored."""
        self._store, self._guard, self._now = shared.store, shared.guard, shared.now
        self._remembers = shared.settings.remember_turns
        self._remember, self._telling, self._on_facts = remember, telling, on_facts

    def add_session(
        self, owner: Owner, id: str | None = None, *, metadata: Mapping[str, Any] | None = None, claims: bool = False
    ) -> Session:
        """Start a conversation; without an id it gets a random one.

        With `claims`, its user gets the details of no user that were stored for it before. That is for the agent to
        say: a user who chose the id would take away what all users read.

        Raises: Invalid, SecretRejected; Conflict when the tenant has a session of that id.
        """
        now = self._now()
        session = Session(
            id=f"s-{uuid.uuid4().hex}" if id is None else self._check_session(owner, id),
            owner=owner.whole,
            user=owner.user or None,
            created_at=now,
            updated_at=now,
            metadata=self._guard.check_metadata(owner.tenant, check_metadata(metadata))[0],
        )

        def add() -> Session:
            added = self._store.add_session(session, claims=claims)
            self._record(owner, "session.add", f"Session {session.id} was begun.", {"session_id": session.id}, now)
            return added

        return self._store.transaction(owner.tenant, add)

    def log_turn(
        self,
        owner: Owner,
        session_id: str,
        *,
        user: str,
        assistant: str,
        remember: bool | None = None,
        category: str | None = None,
        expires_at: datetime | None = None,
        said_at: datetime | None = None,
        origin: Origin | None = None,
        claims: bool = False,
    ) -> Sequence[Message]:
        """Store one turn, said now or at `said_at`; the first one creates the session.

        Unless `remember` is False, also store its messages as episodes and what the user states as facts, in the same
        transaction; None leaves it to the settings. `category`, `expires_at` and `origin` are those of the episodes; by
        default they follow from the texts and speakers. A turn with an `origin` of its own is no talk: nothing is read
        out of it. `claims` is that of `add_session`.

        Raises: Invalid; SecretRejected when an id looks like one; Conflict when the session is another agent's or
        user's.
        """
        id, now = self._check_session(owner, session_id), self._now()
        is_remembered = self._remembers if remember is None else remember
        # Without a user of its own, the turn belongs to the user of the session, and so do its episodes.
        if owner.user is None and is_remembered:
            owner = owner.of(find_session_user(self._store, owner, id))
        then = now if said_at is None else check_moment(said_at, "said_at")
        turn = check_turn(user, assistant)
        cleaned = {role: self._guard.clean(owner.tenant, text) for role, text in turn.items()}
        messages = [
            Message(session_id=id, role=role, content=text, created_at=then) for role, (text, _) in cleaned.items()
        ]
        rules = sorted({rule for _, found in cleaned.values() for rule in found})

        def log() -> Sequence[Message]:
            return self._log(owner, id, messages, rules, then, now, claims=claims)

        drafts = [self._draft(owner, message) for message in messages] if is_remembered else []
        drafts = [
            replace(draft, category=category, expires_at=expires_at, origin=origin or draft.origin) for draft in drafts
        ]
        if not is_remembered or origin is not None:
            return self._remember.run_with_episodes(owner, drafts, log)
        own = owner.of(owner.user)
        reading = self._telling.read(own, messages[0].content)
        # What asks to forget something names it, so it is no memory itself.
        logged = self._remember.run_with_episodes(
            owner,
            [] if reading.is_request else drafts,
            log,
            also=lambda turns: self._telling.write(own, reading, {0: turns}, session_id=id, at=then),
        )
        if reading.statements:
            self._on_facts(own)
        return logged

    def _log(
        self,
        owner: Owner,
        id: str,
        messages: Sequence[Message],
        rules: Sequence[str],
        then: datetime,
        now: datetime,
        *,
        claims: bool,
    ) -> Sequence[Message]:
        """Add the messages of a turn, and record it. The caller holds a transaction."""
        placed = self._add_messages(owner, id, messages, then, claims=claims)
        positions = [each.position for each in placed]
        message = f"Messages {positions[0]} and {positions[1]} of session {id} were logged."
        self._record(owner, "turn.add", message, {"session_id": id, "positions": positions}, now)
        if rules:
            what = f"What seems to be a secret in messages {positions[0]} and {positions[1]} of session {id} was "
            done = "flagged" if self._guard.is_flagging else "removed"
            self._record(owner, "turn.secret", f"{what}{done}.", {"session_id": id, "rules": rules}, now)
        return placed

    def log_failure(self, owner: Owner, session_id: str, reason: str) -> None:
        """Record that a turn failed.

        Raises: Invalid.
        """
        id = check_session(session_id)
        cleaned, _ = self._guard.clean(owner.tenant, reason)
        message = f"A turn of session {id} did not come about: {cleaned[:MAX_REASON_CHARS]}"
        self._record(owner, "turn.fail", message, {"session_id": id}, self._now())

    def delete_session(self, owner: Owner, id: str) -> None:
        """Delete a conversation and its messages; memories made from it stay.

        Raises: NotFound.
        """
        now = self._now()
        check_own(owner, self._store.get_session(owner, id).user)

        def delete() -> None:
            self._store.delete_session(owner, id)
            self._record(owner, "session.delete", f"Session {id} was deleted.", {"session_id": id}, now)

        self._store.transaction(owner.tenant, delete)

    def _check_session(self, owner: Owner, id: str) -> str:
        """Check the ids of a session.

        Raises: Invalid, SecretRejected.
        """
        self._guard.check_names(owner.tenant, agent_id=owner.agent, session_id=check_session(id))
        return id

    def _add_messages(
        self, owner: Owner, id: str, messages: Sequence[Message], now: datetime, *, claims: bool
    ) -> Sequence[Message]:
        """Add messages to a session, which is created if it does not exist. Raises: Conflict, Forbidden."""
        # Nearly every turn continues a session, so that is tried first.
        try:
            return self._store.add_messages(owner, id, messages)
        except NotFound:
            own = owner if owner.user is not None else owner.of(None)
            self._ensure_session(own, id, now, claims=claims)
            return self._store.add_messages(own, id, messages)

    def _ensure_session(self, owner: Owner, id: str, now: datetime, *, claims: bool) -> None:
        """Create the session if it does not exist.

        Raises: Conflict when it is another agent's or user's; Forbidden when it is no user's, and the view a user's.
        """
        session = self._store.find_session(owner, id)
        if session is None:
            new = Session(id=id, owner=owner.whole, user=owner.user or None, created_at=now, updated_at=now)
            try:
                session = self._store.add_session(new, claims=claims)
            # A concurrent call created it, which is fine if it was for the same agent and user.
            except Conflict:
                session = self._store.find_session(owner, id)
                if session is None:
                    raise
        check_own(owner, session.user)

    def _draft(self, owner: Owner, message: Message) -> Draft:
        """Return the message as an episode; a long one is clipped to its beginning and end."""
        text = clip_middle(message.content, RULES[Kind.EPISODE].max_chars)
        # Clipping may have produced a text that looks like a secret.
        if text is not message.content:
            text, _ = self._guard.clean(owner.tenant, text)
        return Draft(
            text=text,
            kind=Kind.EPISODE,
            role=message.role,
            session_id=message.session_id,
            origin=ORIGINS[message.role],
            created_at=message.created_at,
        )

    def _record(self, owner: Owner, action: str, message: str, meta: Mapping[str, Any], now: datetime) -> None:
        event = AuditEvent(tenant=owner.tenant, at=now, action=action, agent_id=owner.agent, message=message, meta=meta)
        self._store.add_event(event)


def check_turn(user: str, assistant: str) -> dict[Role, str]:
    """Validate both messages of a turn and return them by role.

    Raises: Invalid.
    """
    return {Role.USER: _check_message(user, "user"), Role.ASSISTANT: _check_message(assistant, "assistant")}


def _check_message(text: str, what: str) -> str:
    """Check one message of a turn.

    Raises: Invalid.
    """
    if not text.strip():
        raise Invalid(f"The {what} message is blank; a turn needs a user's prompt and the final answer to it.")
    if len(text) > MAX_MESSAGE_CHARS:
        raise Invalid(
            f"The {what} message has {len(text):,} characters, at most {MAX_MESSAGE_CHARS:,} fit; capture the long "
            "part and log its reference."
        )
    return text
