"""Giving the tour: each of its commands runs as if it had been typed, on a store that is thrown away."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import recollect
from recollect.cli import finding, memories, overview, upkeep
from recollect.cli.context import commands as context
from recollect.cli.demo.script import BEGINS_AT, FILES, KEY, TOUR, Seen
from recollect.cli.details import commands as details
from recollect.cli.knowledge import documents
from recollect.cli.run import Command, Run, callback_of
from recollect.cli.transcripts import commands as transcripts
from recollect.cli.view import View
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.api.recollect import AgentMemory, Recollect

OF_DETAILS = "details"
PATIENCE = 60.0
OTHERS = (
    *memories.COMMANDS,
    *finding.COMMANDS,
    *context.COMMANDS,
    *transcripts.COMMANDS,
    *documents.COMMANDS,
    *overview.COMMANDS,
    *upkeep.COMMANDS,
)


def demo(run: Run) -> None:
    """Show what recollect does: a tour of a minute, without a model.

    Every line of it is a command you can type. It has a store of its own, which is thrown away: your memories are
    neither read nor changed."""
    seen: list[Seen] = []
    with _Tour.begun() as tour:
        for number, stop in enumerate(TOUR, start=1):
            tour.wait(stop.days_later)
            run.view.tour_stop(number, stop)
            for line in map(tour.line, stop.lines):
                run.view.tour_line(line)
                if run.view.is_document:
                    seen.append(Seen(stop=stop, line=line, printed=tour.read(line)))
                else:
                    tour.run(line)
    run.view.tour_ended(seen)


COMMANDS = (Command(run=demo, example="recollect demo"),)


class _Tour:
    """A store, its clock, and how a command is run on it."""

    def __init__(self, folder: str) -> None:
        self._now = BEGINS_AT
        # Whatever the user's own settings are; and no source of recall is left out because the machine is busy.
        settings = replace(Settings(), url=f"sqlite:///{folder}/demo.db", recall_deadline=PATIENCE)
        self.store = recollect.Recollect(settings=settings, clock=lambda: self._now)

    @classmethod
    @contextmanager
    def begun(cls) -> Iterator[_Tour]:
        """In a folder that has the files its commands read."""
        with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder, chdir(folder):
            for name, text in FILES.items():
                Path(name).write_text(text, "utf-8")
            tour = cls(folder)
            with tour.store:
                yield tour

    def wait(self, days: int) -> None:
        self._now += timedelta(days=days)

    def line(self, line: str) -> str:
        """The command as one would type it."""
        if KEY not in line:
            return line
        (newest, *_) = self.store.agent().search_details("")
        return line.replace(KEY, newest.key)

    def run(self, line: str) -> None:
        """Run a command; what it says on either stream goes to standard output."""
        name, *arguments = shlex.split(line)
        commands: Sequence[Command] = OTHERS
        if name == OF_DETAILS:
            commands, (name, *arguments) = details.COMMANDS, arguments
        (command,) = (each for each in commands if each.name == name)
        app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        app.command()(callback_of(command, partial(_TourRun, self.store)))
        with redirect_stderr(sys.stdout):
            app(arguments, standalone_mode=False)

    def read(self, line: str) -> str:
        """Run a command; what it printed."""
        with redirect_stdout(io.StringIO()) as printed:
            self.run(line)
        return printed.getvalue()


class _TourRun(Run):
    """A command's run on the store of the tour."""

    def __init__(self, store: Recollect, flags: Mapping[str, object], view: View, closing: ExitStack) -> None:
        super().__init__(flags, view, closing)
        self._tour_store = store

    @cached_property
    def store(self) -> Recollect:
        return self._tour_store

    @property
    def memory(self) -> AgentMemory:
        agent = self.flags["agent"]
        return self.store.agent(None if agent is None else str(agent))
