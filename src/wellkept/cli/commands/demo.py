"""The demo: a tour of real commands on a temporary store."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import wellkept
from wellkept.cli.commands import audit, context, details, knowledge, maintenance, memories, recall, sessions
from wellkept.cli.output import Indented, Output, Printer, Styled
from wellkept.cli.run import Command, Run, build_command
from wellkept.model import Json
from wellkept.settings import Settings

if TYPE_CHECKING:
    from wellkept.api.wellkept import AgentMemory, Wellkept

RECALL_SECONDS = 60.0
"""Long enough that no source of recall is skipped on a busy machine."""

OTHERS = (memories, recall, context, sessions, knowledge, audit, maintenance)
BY_NAME = {each.name: each for module in OTHERS for each in module.COMMANDS} | {
    f"details {each.name}": each for each in details.COMMANDS
}
"""Commands the tour may run."""

BEGINS_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""A Monday morning. The tour has its own clock, so that weeks can pass in it and every run looks the same."""

KEY = "{key}"
"""Placeholder for the key of the newest detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One topic of the tour."""

    title: str
    says: str
    lines: tuple[str, ...]  # commands, without the program's name
    days_later: int = 0  # days since the previous stop


FILES = {
    "refunds.md": "# Refunds\n\nRefunds are paid within 14 days.\n\n## Fees\n\nOrders to Norway pay a fee of 3 EUR.\n",
    "build.log": "".join(f"[{number:4}/1200] compiling module_{number}.c\n" for number in range(1, 1201))
    + "module_877.c:12: error: no such file: tax.h\n1 error, build stopped\n",
}
"""Files the tour's commands read."""

_SOURCE = tomllib.loads(Path(__file__).with_name("demo.toml").read_text("utf-8"))
THE_END: str = _SOURCE["the_end"]
TOUR = tuple(Stop(**{**stop, "lines": tuple(stop["lines"])}) for stop in _SOURCE["stops"])


def demo(run: Run) -> None:
    """Show what wellkept does in a one-minute tour, without a model.

    Every line is a command you can type. It runs on a temporary store: your memories are neither read nor
    changed."""
    stops: list[Json] = []
    now = BEGINS_AT
    with ExitStack() as closing:
        folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="wellkept-demo-"))
        closing.enter_context(chdir(folder))
        for name, text in FILES.items():
            Path(name).write_text(text, "utf-8")
        # The user's own settings do not count.
        settings = replace(Settings(), url=f"sqlite:///{folder}/demo.db", recall_deadline=RECALL_SECONDS)
        store = closing.enter_context(wellkept.Wellkept(settings=settings, clock=lambda: now))
        for number, stop in enumerate(TOUR, start=1):
            now += timedelta(days=stop.days_later)
            run.show(_render_stop(number, stop))
            commands: list[Json] = []
            for line in stop.lines:
                if KEY in line:
                    line = line.replace(KEY, store.agent().search_details("")[0].key)
                shown = Styled("\n$ ", "dim", ((f"wellkept {line}", "cyan"),))
                run.show(Output(lines=[f"$ wellkept {line}"], blocks=[shown]))
                printed = io.StringIO()
                with redirect_stdout(printed if run.printer.is_json else sys.stdout):
                    _run_line(store, line)
                commands.append({"command": f"wellkept {line}", "printed": printed.getvalue()})
            about = {"title": stop.title, "says": stop.says, "days_later": stop.days_later}
            stops.append({**about, "commands": commands})
    ending = Indented(Styled(THE_END, "green"), (1, 0))
    run.show(Output(json={"stops": stops}, lines=[f"\n{THE_END}"], blocks=[ending]))


COMMANDS = (Command(run=demo, example="wellkept demo"),)


def _run_line(store: Wellkept, line: str) -> None:
    """Run a command on the store of the tour, with both of its streams on standard output."""
    name, *arguments = shlex.split(line)
    if name == "details":
        name, *arguments = f"{name} {arguments[0]}", *arguments[1:]
    with redirect_stderr(sys.stdout):
        build_command(BY_NAME[name], partial(_TourRun, store))(arguments, standalone_mode=False)


class _TourRun(Run):
    """A run of a command on the store of the tour."""

    def __init__(self, store: Wellkept, flags: Mapping[str, object], printer: Printer, closing: ExitStack) -> None:
        super().__init__(flags, printer, closing)
        self._tour_store = store

    @cached_property
    def store(self) -> Wellkept:
        return self._tour_store

    @property
    def memory(self) -> AgentMemory:
        agent = self.flags["agent"]
        return self.store.agent(None if agent is None else str(agent))


def _render_stop(number: int, stop: Stop) -> Output:
    title = Styled(
        f" {stop.title} ", "bold white on blue", ((f" {number} of {len(TOUR)}", "not bold dim default on default"),)
    )
    blank = "\n" if number > 1 else ""
    return Output(lines=[f"{blank}{number}. {stop.title}\n{stop.says}"], blocks=[Indented(title, (1, 0)), stop.says])
