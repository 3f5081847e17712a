"""The demo: a tour of real commands on a temporary store."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import groupby
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

DETAILS = "details"
RECALL_SECONDS = 60.0
"""Long enough that no source of recall is skipped on a busy machine."""

OTHERS = (
    *memories.COMMANDS,
    *recall.COMMANDS,
    *context.COMMANDS,
    *sessions.COMMANDS,
    *knowledge.COMMANDS,
    *audit.COMMANDS,
    *maintenance.COMMANDS,
)
"""Commands the tour may run, besides those of `details`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """A command of the tour and what it printed."""

    stop: Stop
    line: str
    printed: str


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
    printed: list[CommandOutput] = []
    with _Tour.start() as tour:
        for number, stop in enumerate(TOUR, start=1):
            tour.advance(stop.days_later)
            run.show(_render_stop(number, stop))
            for line in map(tour.fill_in, stop.lines):
                run.show(_render_line(line))
                if run.printer.is_json:
                    printed.append(CommandOutput(stop=stop, line=line, printed=tour.read(line)))
                else:
                    tour.run(line)
    run.show(_render_end(printed))


COMMANDS = (Command(run=demo, example="wellkept demo"),)


class _Tour:
    """A temporary store with its own clock, on which commands run."""

    def __init__(self, folder: str) -> None:
        self._now = BEGINS_AT
        # The user's own settings do not count.
        settings = replace(Settings(), url=f"sqlite:///{folder}/demo.db", recall_deadline=RECALL_SECONDS)
        self.store = wellkept.Wellkept(settings=settings, clock=lambda: self._now)

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[_Tour]:
        """Start a tour in a temporary folder with the files its commands read."""
        with tempfile.TemporaryDirectory(prefix="wellkept-demo-") as folder, chdir(folder):
            for name, text in FILES.items():
                Path(name).write_text(text, "utf-8")
            tour = cls(folder)
            with tour.store:
                yield tour

    def advance(self, days: int) -> None:
        """Move the clock."""
        self._now += timedelta(days=days)

    def fill_in(self, line: str) -> str:
        """Return the command line with the placeholder filled in."""
        if KEY not in line:
            return line
        (newest, *_) = self.store.agent().search_details("")
        return line.replace(KEY, newest.key)

    def run(self, line: str) -> None:
        """Run a command with both of its streams on standard output."""
        name, *arguments = shlex.split(line)
        commands: Sequence[Command] = OTHERS
        if name == DETAILS:
            commands, (name, *arguments) = details.COMMANDS, arguments
        (command,) = (each for each in commands if each.name == name)
        built = build_command(command, partial(_TourRun, self.store))
        with redirect_stderr(sys.stdout):
            built(arguments, standalone_mode=False)

    def read(self, line: str) -> str:
        """Run a command and return what it printed."""
        with redirect_stdout(io.StringIO()) as printed:
            self.run(line)
        return printed.getvalue()


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


def _render_line(line: str) -> Output:
    """Render the command that runs next."""
    return Output(lines=[f"$ wellkept {line}"], blocks=[Styled("\n$ ", "dim", ((f"wellkept {line}", "cyan"),))])


def _render_end(printed: Sequence[CommandOutput]) -> Output:
    """Render the end of the tour; the JSON document holds all of it."""
    stops = groupby(printed, key=lambda each: each.stop)
    return Output(
        json=lambda: {"stops": [_stop_json(stop, list(commands)) for stop, commands in stops]},
        lines=[f"\n{THE_END}"],
        blocks=[Indented(Styled(THE_END, "green"), (1, 0))],
    )


def _stop_json(stop: Stop, printed: Sequence[CommandOutput]) -> Json:
    commands = [{"command": f"wellkept {each.line}", "printed": each.printed} for each in printed]
    return {"title": stop.title, "says": stop.says, "days_later": stop.days_later, "commands": commands}
