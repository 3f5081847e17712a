"""A tenant's audit log: what was done, by whom, and whether anybody has touched the record of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.agent_memory import MAX_PAGE, SEARCH_LIMIT
from recollect.caller import current_caller
from recollect.errors import Invalid, SecretRejected
from recollect.model import ACTOR, AuditEvent, AuditHead, AuditReport, HeadCheck
from recollect.policy.history import OWN_AREAS
from recollect.policy.json_values import checked_json
from recollect.policy.numbers import checked_before
from recollect.policy.text import checked_text
from recollect.services.recall import checked_limit
from recollect.services.secrets import REJECTED
from recollect.tenant_memory.view import TenantView

MAX_MESSAGE_CHARS = 2_000
MAX_META_CHARS = 10_000
MAX_EVENT = 2**62
_ACTION = re.compile(r"[a-z][a-z0-9_]*(?:[.][a-z0-9_]+){1,4}")


class AuditLog(TenantView):
    """The verbs on the audit log."""

    def list(self, *, before: int | None = None, limit: int = SEARCH_LIMIT) -> Sequence[AuditEvent]:
        """What was done, newest first; `before` (an event's number) continues a listing. `event.actor` is the id of the
        key, or the name of the program, that did it.

        Raises: Invalid.
        """
        return self.search("", before=before, limit=limit)

    def search(self, query: str, *, before: int | None = None, limit: int = SEARCH_LIMIT) -> Sequence[AuditEvent]:
        """Events whose message holds `query`, ignoring case, newest first. `recall` finds them by single words.

        Raises: Invalid.
        """
        agents, limit, before = current_caller().agents, checked_limit(limit, most=MAX_PAGE), checked_before(before)
        needle = checked_text(query, what="query")
        return self._store.list_events(self.id, needle=needle, agents=agents, before=before, limit=limit)

    def verify(self) -> AuditReport:
        """Whether the log is whole: nothing changed, nothing missing."""
        return self._store.verify_events(self.id)

    def head(self) -> AuditHead:
        """Return the number and the hash of the last event, to be kept where nobody who can change the store can."""
        return self._store.audit_head(self.id)

    def check_heads(self, heads: Sequence[AuditHead]) -> Sequence[HeadCheck]:
        """Compare what `head` returned earlier with the log; a head that does not fit shows that it was written anew.

        Raises: Invalid.
        """
        for each in heads:
            is_number = type(each.id) is int and 0 < each.id < MAX_EVENT
            if not is_number or not isinstance(each.hash, str):
                raise Invalid("A head has the number of an event and its hash.")
        return self._store.check_heads(self.id, heads)

    def record(
        self, action: str, message: str, *, agent: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> AuditEvent:
        """Put an event of your own into the log, for good: `action` is a stable word such as "order.refund".
        Without `agent`, it is about the agent the caller is limited to, if there is one.

        Raises: Invalid, Forbidden; SecretRejected when it seems to hold a secret, whatever the mode: nothing is ever
        taken out.
        """
        agent = current_caller().own_agent(agent)
        event = AuditEvent(
            tenant=self.id,
            at=self._services.now(),
            action=_checked_action(action),
            agent_id=None if agent is None else self._owner(agent).agent,
            message=_checked_message(message),
            meta=_checked_meta({} if meta is None else meta),
        )
        said = f"{event.message}\n{json.dumps(event.meta, ensure_ascii=False)}"
        if self._services.guard.findings(self.id, said):
            refused = "An event was refused: it seems to hold a secret."
            self._store.add_event(
                AuditEvent(
                    tenant=self.id, at=event.at, action="secret.refuse", agent_id=event.agent_id, message=refused
                )
            )
            raise SecretRejected(REJECTED)
        return self._store.add_event(event)


def _checked_action(action: object) -> str:
    if not isinstance(action, str) or len(action) > 100 or not _ACTION.fullmatch(action):
        raise Invalid("An action is two or more words in lower case with dots between them, such as order.refund.")
    area = action.partition(".")[0]
    if area in OWN_AREAS:
        raise Invalid(f"Actions that begin with {area!r} are recollect's own; begin yours with another word.")
    return action


def _checked_message(message: str) -> str:
    message = checked_text(message, what="message").strip()
    if not 1 <= len(message) <= MAX_MESSAGE_CHARS:
        raise Invalid(f"A message has 1 to {MAX_MESSAGE_CHARS:,} characters.")
    return message


def _checked_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(meta, Mapping):
        raise Invalid("The meta of an event is an object of names and values.")
    if ACTOR in meta:
        raise Invalid(f"The name {ACTOR!r} in an event's meta is reserved for the key that recorded it; use another.")
    try:
        text = json.dumps(dict(meta), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Invalid("The meta of an event holds what JSON cannot say.") from None
    if len(text) > MAX_META_CHARS or "\\u0000" in text:
        raise Invalid(f"The meta of an event has at most {MAX_META_CHARS:,} characters as JSON, and no NUL.")
    checked_json(meta, what="meta")
    read: dict[str, Any] = json.loads(text)
    return read
