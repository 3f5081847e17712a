"""How a tenant's history is searched: the words of what was done, and how much each kind of event matters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recollect.model import AuditEvent, WorkflowStep
from recollect.policy.text import fold, terms

MAX_SEARCHED = 50_000
"""The newest events a question is held against; older ones are found by listing."""

OWN_AREAS = frozenset(
    """memory agent secret turn maintenance workflow document chunk skill detail session summary context key export
    import erase note blob consolidation""".split()
)
"""First words of the actions recollect records by itself; a program that records its own events uses others."""

BOOKKEEPING_IMPORTANCE = 0.2
"""That something was stored or edited says little; what it was is found elsewhere."""

EVENT_IMPORTANCE = 0.5
"""What a program or a person thought worth recording."""

TELLING: Mapping[str, float] = {"refuse": 0.5, "approve": 0.5, "fail": 0.5, "delete": 0.4, "erase": 0.5}
"""Of our own events, those that tell of a decision, by the last word of their action."""

STEP_CHARS = 4096
"""Of a step's output, what is searched: its beginning."""

STEP_IMPORTANCE = 0.5
FAILED_IMPORTANCE = 0.7
"""What went wrong once is worth knowing before it is tried again."""

COMPLETED = "completed"
FAILURES = frozenset("failed failure fail error errored rejected refused cancelled canceled aborted timeout".split())
"""The words by which a step or an event says that it did not go well."""

_ID = re.compile(r"(?<![\w-])[a-z]-\d+(?![\w-])")


def history_terms(text: str) -> list[str]:
    """The words of a message or of a question about it. An id is one word: a question about 17 things means no m-17.

    >>> history_terms("Note m-17 was stored.")
    ['m-17', 'note', 'store']
    >>> history_terms("17 things")
    ['17', 'thing']
    """
    folded = fold(text)
    ids = _ID.findall(folded)
    return [*ids, *terms(_ID.sub(" ", folded) if ids else folded)]


def step_words(step: WorkflowStep) -> str:
    """What a step is found by."""
    return f"{step.workflow_name} {step.name} {step.output[:STEP_CHARS]}"


def step_importance(step: WorkflowStep) -> float:
    """From 0 to 1."""
    return FAILED_IMPORTANCE if step.status in FAILURES else STEP_IMPORTANCE


def event_importance(event: AuditEvent) -> float:
    """From 0 to 1."""
    area, _, done = event.action.partition(".")
    return TELLING.get(done, BOOKKEEPING_IMPORTANCE) if area in OWN_AREAS else EVENT_IMPORTANCE


def event_id(number: int) -> str:
    """The public id of a tenant's audit event.

    >>> event_id(12)
    'a-12'
    """
    return f"a-{number}"
