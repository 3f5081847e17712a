"""What the tour shows, and says about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

BEGINS_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""A Monday morning. The tour has a clock of its own, so that weeks can pass in it and every run looks the same."""

KEY = "{key}"
"""Stands for the key of the text that was stored last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One thing the tour shows."""

    title: str
    says: str
    lines: tuple[str, ...]  # commands, without the program's name
    days_later: int = 0  # how long after the stop before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A command of the tour and what it printed, for those who read it all at once."""

    stop: Stop
    line: str
    printed: str


FILES = {
    "refunds.md": "# Refunds\n\nRefunds are paid within 14 days.\n\n## Fees\n\nOrders to Norway pay a fee of 3 EUR.\n",
    "build.log": "".join(f"[{number:4}/1200] compiling module_{number}.c\n" for number in range(1, 1201))
    + "module_877.c:12: error: no such file: tax.h\n1 error, build stopped\n",
}
"""What the tour's commands read."""

THE_END = "That store is gone. Yours begins with: recollect remember 'Prefers tabs over spaces'"

TOUR = (
    Stop(
        title="Four kinds of memory",
        says="A memory is one short text. Its kind picks the rules it lives by: core is who the agent is, a note is a "
        "fact about the user or the work, the journal is what the agent noticed this week.",
        lines=(
            "remember 'I am careful with money' --kind core",
            "remember 'The team indents with tabs' --tag preference",
            "remember 'Lena leads the billing team' --tag people",
            "remember 'Deployed version 2.4 of the shop; no rollback needed' --kind journal",
        ),
    ),
    Stop(
        title="Conversations become episodes",
        says="The fourth kind is what was said and done. A turn is kept word for word, and remembered as episodes.",
        lines=(
            "log monday --remember --user 'We ship the invoice export on Thursday'"
            " --assistant 'Noted: the invoice export ships on Thursday.'",
            "list --kind episode",
        ),
    ),
    Stop(
        title="Recall finds by meaning and by words, and says why",
        says="The score is a sum, and each part of it can be read: how well it fits, how recent it is, how important, "
        "and where it comes from.",
        lines=(
            "recall 'who is responsible for billing?' --limit 2 --explain",
            "explain 'who is responsible for billing?' --id m-2 --limit 1",
        ),
    ),
    Stop(
        title="Facts change; the past stays readable",
        says="Three days later a correction ends what it corrects. Recall finds the new fact; asked about the day "
        "before, it finds the old one.",
        lines=(
            "remember 'The team indents with two spaces' --tag preference --supersedes m-2",
            "recall 'how do we indent?' --limit 1",
            "recall 'how do we indent?' --limit 1 --as-of 2026-01-07T12:00:00Z",
        ),
        days_later=3,
    ),
    Stop(
        title="Documents are knowledge all agents share",
        says="They are cut into passages that keep the headings above them, and recall asks them, too.",
        lines=(
            "ingest refunds.md --category policy",
            "recall 'what does a refund to Norway cost?' --source knowledge --limit 1",
        ),
    ),
    Stop(
        title="Small enters the prompt, big is referred to",
        says="A long output is stored whole and stands in the prompt as one line. Behind the line it can be searched.",
        lines=(
            "details store build.log --description 'nightly build'",
            f"details show {KEY} --grep error --context 0",
        ),
    ),
    Stop(
        title="The next prompt, within a budget",
        says="All of it is put together for one call of a model: nothing twice, and never more tokens than allowed. "
        "What had to go is said, and why.",
        lines=("context monday 'Shall I indent the invoice export with tabs?' --budget 140 --blocks",),
    ),
    Stop(
        title="What does not get in",
        says="Credentials are recognised and refused before anything is written. And what one agent remembers, another "
        "does not see.",
        lines=("remember 'The key is AKIAQYLPMN5HIEXAMP42'", "list --agent nova"),
    ),
    Stop(
        title="Forgetting",
        says="Five weeks later the journal has left the prompt, and maintenance archives the episodes nobody asked "
        "for. What an agent is, and what it knows of its user, stays.",
        lines=("maintain", "list"),
        days_later=35,
    ),
    Stop(
        title="Forgetting for good, and proof of what was done",
        says="What is forgotten is gone with its history. The audit log tells that it happened, without the text, and "
        "its chain of hashes shows whether anybody changed it.",
        lines=("forget m-3", "audit m-3 --limit 1", "audit --verify"),
    ),
)
