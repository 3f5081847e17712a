"""For people: tables and colours, fitted to the width of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recollect.cli.chat.terminal import TerminalChat
from recollect.cli.consolidation.terminal import TerminalConsolidation
from recollect.cli.context.terminal import TerminalContext
from recollect.cli.demo.terminal import TerminalTour
from recollect.cli.details.terminal import TerminalDetails
from recollect.cli.erasure.terminal import TerminalErasure
from recollect.cli.history.terminal import TerminalHistory
from recollect.cli.knowledge.terminal import TerminalKnowledge
from recollect.cli.plain import as_text, details, verdict
from recollect.cli.table import new_table
from recollect.cli.transcripts.terminal import TerminalTranscripts
from recollect.cli.transfer.terminal import TerminalTransfer
from recollect.cli.view import (
    AgentShown,
    Anchor,
    CaptureShown,
    SettingShown,
    Shown,
    key_limits,
    key_state,
    mark,
    missing_hint,
    one_line,
    safe,
    show_captured,
    similar_hint,
)
from recollect.model import ApiKey, AuditReport, Check, IssuedKey, Kind, Memory, MemoryVersion, Recalled, State
from recollect.policy.recall.evaluation import METRICS

if TYPE_CHECKING:
    from recollect.evaluation import Evaluation
    from recollect.services.memories.secrets import Sighting
    from recollect.services.upkeep.maintain import MaintenanceReport

COLOURS = {Kind.CORE: "magenta", Kind.JOURNAL: "blue", Kind.NOTE: "green", Kind.EPISODE: "yellow"}
NARROW = 70
"""Below this many columns a table keeps to what cannot be done without."""

WIDE = 100
"""From here on there is room for explanations."""

TEXTS = ("Memory", "Said", "Value", "Seems to hold", "Name")
"""The columns of these tables that hold what somebody wrote."""

MOST_SHOWN = 240
"""Characters of a text in a table; `show` has all of it."""


class TerminalView(
    TerminalDetails,
    TerminalKnowledge,
    TerminalTransfer,
    TerminalHistory,
    TerminalConsolidation,
    TerminalContext,
    TerminalTranscripts,
    TerminalTour,
    TerminalErasure,
    TerminalChat,
):
    """`View` in tables."""

    is_document = False

    def captured(self, shown: CaptureShown) -> None:
        show_captured(shown)

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._is_narrow = self._console.width < NARROW

    def remembered(self, shown: Shown, similar: Sequence[Memory]) -> None:
        self._done("Remembered", shown.memory)
        for each in similar:
            self._console.print(Text(similar_hint(each), style="yellow"))

    def edited(self, shown: Shown) -> None:
        self._done("Edited", shown.memory)

    def forgotten(self, id: str) -> None:
        self._console.print(_tick(True), Text(f"Forgotten {safe(id)}"))

    def memory(self, shown: Shown, history: Sequence[MemoryVersion]) -> None:
        self._console.print(Padding(Text(safe(shown.memory.text), style="bold"), (1, 2)))
        grid = Table.grid(padding=(0, 2))
        for name, value in details(shown).items():
            style = COLOURS[shown.memory.kind] if name == "kind" else "cyan" if name == "id" else ""
            grid.add_row(Text(name, style="dim"), Text(value, style=style))
        self._console.print(Padding(grid, (0, 2)))
        if history:
            table = _table("Version", "Until", "Said")
            for each in history:
                table.add_row(str(each.version), _time(each.replaced_at), Text(safe(each.text)))
            self._console.print(table)

    def memories(self, found: Sequence[Shown], *, next_cursor: str | None, if_none: str) -> None:
        if not found:
            self._console.print(Text(if_none, style="dim"))
            return
        table = _table("Id", "Kind", *(() if self._is_narrow else ("Written",)), "Memory")
        for shown in found:
            memory = shown.memory
            when = () if self._is_narrow else (Text(_time(memory.created_at), style="dim"),)
            table.add_row(_id(memory.id), _kind(memory.kind), *when, _text(memory, shown.state))
        self._console.print(table)
        if next_cursor is not None:
            self._console.print(Text(f" There is more: add --before {next_cursor}", style="dim"))

    def review(self, found: Sequence[Shown]) -> None:
        if not found:
            self._console.print(Text("Nothing waits for approval.", style="dim"))
            return
        table = _table("Id", "Kind", "Memory")
        for shown in found:
            text = _text(shown.memory, shown.state)
            text.append(f"\n{one_line(shown.memory.flag or '')}", style="yellow")
            table.add_row(_id(shown.memory.id), _kind(shown.memory.kind), text)
        self._console.print(table)
        self._console.print(Text(" Let one into use with: recollect approve ID", style="dim"))

    def approved(self, shown: Shown) -> None:
        self._done("Approved", shown.memory)

    def approved_workspace(self, count: int) -> None:
        self._console.print(_tick(True), Text(f"Approved: {count}"))

    def injected(self, block: str | None) -> None:
        self._console.print(Text("No notes.", style="dim") if block is None else Text(safe(block)))

    def hits(self, hits: Recalled, *, is_explained: bool) -> None:
        for each in hits.unanswered:
            self._console.print(Text(missing_hint(each), style="yellow"))
        if not hits:
            self._console.print(Text("Nothing comes to mind.", style="dim"))
            return
        if hits.heading:
            self._console.print(Text(f" {hits.heading}", style="bold"))
        table = _table("Score", "Id", *(() if self._is_narrow else ("Kind",)), "Memory")
        for hit in hits:
            text = _cut(hit.text) if hit.memory is None else _text(hit.memory, State.LIVE)
            if is_explained:
                text.append(f"\n{hit.explain}", style="dim")
            kind = Text(hit.source.value) if hit.memory is None else _kind(hit.memory.kind)
            score = Text(f"{hit.score:.3f}", style="bold" if hit is hits[0] else "")
            table.add_row(score, _id(hit.id), *(() if self._is_narrow else (kind,)), text)
        self._console.print(table)

    def agents(self, agents: Sequence[AgentShown], *, next_cursor: str | None) -> None:
        if not agents:
            self._console.print(Text("No agent has remembered anything yet.", style="dim"))
            return
        table = _table("Agent")
        for kind in Kind:
            table.add_column(kind.value.capitalize(), justify="right", style=COLOURS[kind])
        for each in agents:
            name = Text(safe(each.agent.id), style="cyan")
            if each.agent.name != each.agent.id:
                name.append(f"  {one_line(each.agent.name)}", style="dim")
            table.add_row(name, *(f"{each.counts[kind]:,}" for kind in Kind))
        self._console.print(table)
        if next_cursor is not None:
            self._console.print(Text(f" There are more: add --after {safe(next_cursor)}", style="dim"))

    def verified(self, report: AuditReport) -> None:
        self._console.print(_tick(report.is_intact), Text(verdict(report)))

    def anchored(self, anchors: Sequence[Anchor], notes: Sequence[str]) -> None:
        table = _table("Tenant", "Event", "Hash")
        for each in anchors:
            table.add_row(Text(safe(each.tenant), style="cyan"), str(each.id), Text(one_line(each.hash)))
        self._console.print(table)
        for note in notes:
            self._console.print(Text(f" {one_line(note)}", style="yellow"))

    def settings(self, settings: Sequence[SettingShown]) -> None:
        table = _table("Setting", "Value", "From")
        for each in settings:
            is_default = each.source == "default"
            value = Text(one_line(as_text(each.value)), style="" if is_default else "bold")
            if self._console.width >= WIDE:
                value.append(f"\n{each.meaning}", style="dim")
            table.add_row(
                Text(each.name, style="cyan"), value, Text(each.source, style="dim" if is_default else "green")
            )
        self._console.print(table)

    def checks(self, checks: Sequence[Check]) -> None:
        grid = Table.grid(padding=(0, 1))
        for each in checks:
            says = Text(one_line(each.says))
            if each.advice:
                says.append(f"\n{one_line(each.advice)}", style="yellow")
            grid.add_row(_tick(each.is_ok), Text(each.name, style="bold"), says)
        self._console.print(Padding(grid, (1, 1)))
        broken = sum(not each.is_ok for each in checks)
        verdict = Text("Everything works.", style="green") if not broken else Text(f"Broken: {broken}", style="red")
        self._console.print(Padding(verdict, (0, 1)))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total or None)
            yield lambda done: bar.advance(task, done)

    def reembedded(self, count: int, embedder: str, *, mended: int) -> None:
        if mended:
            what = f"{mended:,} {'entry' if mended == 1 else 'entries'} of the search index"
            self._console.print(_tick(True), Text(f"Mended {what}"))
        if count or not mended:
            self._console.print(_tick(True), Text(f"Embedded {count:,} with {embedder}"))

    def maintained(self, report: MaintenanceReport) -> None:
        grid = Table.grid(padding=(0, 2))
        for name, value in asdict(report).items():
            if value != "":
                grid.add_row(Text(name, style="dim"), Text(one_line(str(value)), style="bold" if value else ""))
        self._console.print(Padding(grid, (1, 2)))

    def evaluated(self, found: Evaluation) -> None:
        table = _table("Type", "Level", "Questions", *METRICS)
        for each in found.scores:
            for level, values in (("memory", each.memories), ("session", each.sessions)):
                if values:
                    measured = [f"{values[name]:.3f}" for name in METRICS]
                    table.add_row(Text(one_line(each.type)), level, str(each.questions), *measured)
        self._console.print(table)
        speed = f"recall: p50 {found.recall_p50_ms:.1f} ms, p95 {found.recall_p95_ms:.1f} ms"
        self._console.print(Text(speed, style="dim"))

    def sightings(self, found: Iterable[Sighting]) -> None:
        table = _table("Agent", "Id", "Seems to hold")
        for each in found:
            table.add_row(_id(each.owner.agent), _id(each.id), Text(", ".join(each.rules), style="red"))
        if table.row_count:
            self._console.print(table)
        else:
            self._console.print(_tick(True), Text("Nothing that is stored looks like a secret."))

    def allowed(self, count: int) -> None:
        self._console.print(_tick(True), Text(f"Allowed: {count}"))

    def key_made(self, issued: IssuedKey) -> None:
        print(issued.key)  # as it is: a line broken to fit could not be copied
        self._console.print(Text("It is shown this once; whoever has it is let in.", style="yellow"))

    def keys(self, keys: Sequence[ApiKey], *, now: datetime) -> None:
        if not keys:
            self._console.print(Text("There is no key yet: recollect keys create --scope write", style="dim"))
            return
        table = _table("Id", "Scope", "State", *(() if self._is_narrow else ("Made", "Last used", "Name", "Limits")))
        for each in keys:
            state = key_state(each, now)
            used = Text("never" if each.last_used_at is None else _time(each.last_used_at), style="dim")
            made = Text(_time(each.created_at), style="dim")
            more = (made, used, Text(one_line(each.name)), Text(key_limits(each)))
            shown = Text(state, style="green" if state == "valid" else "red")
            table.add_row(_id(each.id), each.scope.value, shown, *(() if self._is_narrow else more))
        self._console.print(table)

    def key_revoked(self, id: str) -> None:
        self._console.print(_tick(True), Text(f"Revoked {safe(id)}"))

    def distributed(self, tables: Sequence[str]) -> None:
        for name in tables:
            self._console.print(_tick(True), Text(safe(name)))
        if not tables:
            self._console.print(Text("Everything is distributed already.", style="dim"))

    def _done(self, verb: str, memory: Memory) -> None:
        self._console.print(_tick(True), Text(verb), _id(memory.id), _kind(memory.kind))


def _table(*headers: str) -> Table:
    """Its text, if it has one, takes the room that is left; nothing else is broken over lines."""
    text = next((header for header in headers if header in TEXTS), "")
    return new_table(*headers, text=text, whole=[header for header in headers if header != text])


def _tick(is_ok: bool) -> Text:
    return Text(mark(is_ok), style="green" if is_ok else "red")


def _id(id: str) -> Text:
    return Text(safe(id), style="cyan")


def _kind(kind: Kind) -> Text:
    return Text(kind.value, style=COLOURS[kind])


def _text(memory: Memory, state: State) -> Text:
    text = _cut(memory.text)
    for tag in memory.tags:
        text.append(f" #{safe(tag)}", style="dim")
    if state is not State.LIVE:
        text.append(f" ({state.value})", style="red")
    return text


def _cut(text: str) -> Text:
    line = one_line(text)
    return Text(line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…")


def _time(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
