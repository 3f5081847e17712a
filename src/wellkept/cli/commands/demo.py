"""The demo: a short tour of real commands on a store of its own, which is kept."""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import click

import wellkept
from wellkept.cli.output import Output, Piped, Styled
from wellkept.cli.run import Run
from wellkept.model import Json
from wellkept.settings import Settings

RECALL_SECONDS = 60.0
"""Long enough that no source of recall is skipped on a busy machine."""

TOUR = (
    (
        "Store short texts, and what users say. No model is needed, and no key.",
        (
            "remember 'Releases go out on Thursday mornings'",
            "remember 'Never merge a branch without a review by two people' --tag rule",
            "session log monday --user 'I live in Lisbon' --assistant 'Noted.'",
            "session log monday --user 'I drive an old Volvo' --assistant 'Noted.'",
        ),
    ),
    (
        "Ask in other words: these questions share no word with their answers.",
        (
            "recall 'when is the next version shipped?' --limit 1",
            "recall 'how many colleagues must approve changes?' --limit 1",
            "recall 'what car does the user own?' --limit 1",
        ),
    ),
    (
        "Facts change. The newest value stands, the old one ends, and the prompt holds what is true now.",
        (
            "session log friday --user 'We moved to Porto last week' --assistant 'Congratulations!'",
            "user profile",
            "context 'Which airport is closest?'",
        ),
    ),
    (
        "Forget by saying so. It can be restored for 30 days.",
        ("memory forget --about 'my car'", "user profile"),
    ),
)
"""Steps of the tour: a sentence, and the commands that follow it, without the name of the program."""


def demo(run: Run) -> None:
    """Show what wellkept does in one minute, without a model.

    Every line is a command you can type. Your memories are neither read nor changed: the demo has a store of its own,
    which stays, so that you can look at it.

    Example: wellkept demo"""
    url = f"sqlite:///{Path(tempfile.mkdtemp(prefix='wellkept-demo-'), 'demo.db').as_posix()}"
    steps: list[Json] = []
    program = click.get_current_context().find_root().command
    # The user's own settings do not count.
    run.settings = replace(Settings(), url=url, recall_deadline=RECALL_SECONDS)
    with wellkept.Wellkept(settings=run.settings) as run.store:
        for number, (says, lines) in enumerate(TOUR):
            run.show(Output(blocks=[*[""][:number], Piped(says), Styled(says, "bold")]))
            for line in lines:
                command = f"wellkept {line}"
                run.show(Output(blocks=[Piped(f"$ {command}"), Styled("$ ", "dim", ((command, "cyan"),))]))
                printed = io.StringIO()
                with redirect_stdout(printed if run.printer.is_json else sys.stdout), redirect_stderr(sys.stdout):
                    program.main(shlex.split(line), standalone_mode=False, obj=run)
                steps.append({"says": says, "command": command, "printed": printed.getvalue()})
    look = f"wellkept serve --no-auth --url {url}"
    ends = ["", "The store of this demo is kept. Look at it in the console, then delete its folder:", f"  {look}"]
    run.show(Output({"url": url, "look": look, "steps": steps}, ends))
