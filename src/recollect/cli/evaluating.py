"""Measuring recall on a labelled file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.run import Command, Run
from recollect.lazy import LazyModule

if TYPE_CHECKING:
    from recollect import evaluation
else:
    evaluation = LazyModule("recollect.evaluation")


def measure(
    run: Run,
    file: Annotated[Path, typer.Argument(help="Memories and questions, one JSON object a line.", show_default=False)],
) -> None:
    """Measure how well recall finds what it should, on memories and questions of your own.

    Nothing is stored: each set of the file is put into a store in memory, with the settings as they are."""
    sets = evaluation.read_sets(file)
    run.view.evaluated(evaluation.evaluate(sets, run.settings))


COMMANDS = (Command(run=measure, called="eval", example="recollect eval questions.jsonl"),)
