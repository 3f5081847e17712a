"""Search terms and importance of a tenant's history: audit events and workflow steps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wellkept.language.text import fold, terms
from wellkept.model import AuditEvent, WorkflowStep

MAX_SEARCHED = 50_000
"""Number of newest events that recall searches; older ones can only be listed."""

OWN_AREAS = frozenset(
    """memory agent secret turn maintenance workflow document chunk skill detail session summary context key export
    import erase note blob consolidation change""".split()
)
"""First words of the actions that wellkept records; programs use other words for their own events."""

BOOKKEEPING_IMPORTANCE = 0.2
"""Importance of our own events, which only say that something was stored or edited."""

EVENT_IMPORTANCE = 0.5
"""Importance of events recorded by programs or people."""

DECISION_IMPORTANCE: Mapping[str, float] = {"refuse": 0.5, "approve": 0.5, "fail": 0.5, "delete": 0.4, "erase": 0.5}
"""Importance of our own events that record a decision, by the last word of their action."""

STEP_CHARS = 4096
"""Number of leading characters of a step's output that are searched."""

STEP_IMPORTANCE = 0.5
FAILED_IMPORTANCE = 0.7
"""Importance of failed steps, which are worth knowing before a retry."""

COMPLETED = "completed"
FAILURES = frozenset("failed failure fail error errored rejected refused cancelled canceled aborted timeout".split())
"""Words in a status or action that report a failure."""

_ID = re.compile(r"(?<![\w-])[a-z]-\d+(?![\w-])")


def history_terms(text: str) -> list[str]:
    """Return the search terms of a message or question; an id is one term, so "17 things" does not match m-17.

    >>> history_terms("Note m-17 was stored.")
    ['m-17', 'note', 'store']
    >>> history_terms("17 things")
    ['17', 'thing']
    """
    folded = fold(text)
    ids = _ID.findall(folded)
    return [*ids, *terms(_ID.sub(" ", folded) if ids else folded)]


def is_bookkeeping(action: str) -> bool:
    """Return True for an action that wellkept records about its own work.

    >>> is_bookkeeping("turn.log"), is_bookkeeping("refund.approve")
    (True, False)
    """
    return action.partition(".")[0] in OWN_AREAS


def step_words(step: WorkflowStep) -> str:
    """Return the searchable text of a step."""
    return f"{step.workflow_name} {step.name} {step.output[:STEP_CHARS]}"


def step_importance(step: WorkflowStep) -> float:
    """Return the importance of a step, 0 to 1."""
    return FAILED_IMPORTANCE if step.status in FAILURES else STEP_IMPORTANCE


def event_importance(event: AuditEvent) -> float:
    """Return the importance of an event, 0 to 1."""
    area, _, verb = event.action.partition(".")
    return DECISION_IMPORTANCE.get(verb, BOOKKEEPING_IMPORTANCE) if area in OWN_AREAS else EVENT_IMPORTANCE


def event_id(number: int) -> str:
    """Return the public id of a tenant's audit event.

    >>> event_id(12)
    'a-12'
    """
    return f"a-{number}"
