"""What was done, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.text import Text

from recollect.cli.history.plain import in_prompt, message_of, step_text
from recollect.cli.table import new_table
from recollect.cli.view import mark, missing_hint, one_line, safe
from recollect.model import AuditEvent, Explanation, Outcome, Workflow, WorkflowStep

MOST_SHOWN = 240
"""Characters of a text in a table."""


class TerminalHistory:
    """The part of `View` that is about what was done, in tables."""

    _console: Console
    _is_narrow: bool

    def events(self, events: Sequence[AuditEvent], *, next_cursor: int | None) -> None:
        if not events:
            self._console.print(Text("Nothing of that kind was done.", style="dim"))
            return
        table = new_table("Event", *(() if self._is_narrow else ("When", "Agent", "By")), "Done")
        for each in events:
            more = (Text(_time(each.at), style="dim"), _id(each.agent_id or ""), Text(safe(each.actor), style="dim"))
            table.add_row(str(each.id), *(() if self._is_narrow else more), _cut(message_of(each)))
        self._console.print(table)
        if next_cursor is not None:
            self._console.print(Text(f" There is more: add --before {next_cursor}", style="dim"))

    def recorded(self, event: AuditEvent) -> None:
        self._console.print(Text(mark(True), style="green"), Text(f"Recorded as event {event.id}"))

    def explained(self, explanation: Explanation) -> None:
        is_shown = explanation.outcome is Outcome.RECALLED
        title = Text(f"{safe(explanation.id)}: {explanation.outcome.value.replace('_', ' ')}", style="bold")
        self._console.print(Text(mark(is_shown), style="green" if is_shown else "yellow"), title)
        self._console.print(Text(one_line(explanation.sentence)))
        if explanation.words:
            self._console.print(Text(f"Words in common: {', '.join(map(one_line, explanation.words))}", style="dim"))
        for prompt in explanation.prompts:
            said = f"{prompt.call_id}, {_time(prompt.at)}: {in_prompt(prompt)}"
            self._console.print(Text(said, style="yellow" if prompt.left_out else "dim"))
        for each in explanation.unanswered:
            self._console.print(Text(missing_hint(each), style="yellow"))

    def workflows(self, workflows: Sequence[Workflow], *, next_cursor: str | None) -> None:
        if not workflows:
            self._console.print(Text("No workflow was begun yet.", style="dim"))
            return
        table = new_table("Workflow", *(() if self._is_narrow else ("Begun",)), "Name")
        for each in workflows:
            when = () if self._is_narrow else (Text(_time(each.created_at), style="dim"),)
            table.add_row(_id(each.id), *when, Text(one_line(each.name)))
        self._console.print(table)
        self._go_on(next_cursor)

    def steps(self, steps: Sequence[WorkflowStep], *, next_cursor: str | None) -> None:
        if not steps:
            self._console.print(Text("It has no steps yet.", style="dim"))
            return
        table = new_table("Step", *(() if self._is_narrow else ("When", "Agent")), "Status", "Output")
        for each in steps:
            more = (Text(_time(each.completed_at), style="dim"), _id(each.agent_id or ""))
            table.add_row(
                _id(str(each.position)), *(() if self._is_narrow else more), Text(each.status), _cut(step_text(each))
            )
        self._console.print(table)
        self._go_on(next_cursor)

    def _go_on(self, next_cursor: str | None) -> None:
        if next_cursor is not None:
            self._console.print(Text(f" There is more: add --after {safe(next_cursor)}", style="dim"))


def _id(id: str) -> Text:
    return Text(safe(id), style="cyan")


def _cut(text: str) -> Text:
    return Text(text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…")


def _time(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
