"""Evaluation: measure what recall finds on files of memories and questions, and the speed of the verbs."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import wellkept
from wellkept.cli.output import Column, Output, Piped, Styled, Table, one_line
from wellkept.cli.run import Run
from wellkept.evaluation.scores import METRICS, Estimate, Usage
from wellkept.model import Json
from wellkept.settings import Settings, use_one_thread_each

if TYPE_CHECKING:
    from wellkept.evaluation import Evaluation, Scores
    from wellkept.evaluation.speed import VerbSpeed

HEADERS = ("Family", "Type", "Level", "Questions", *METRICS, "Alive", "No hit")
NOTHING = "-"


def measure(
    run: Run,
    files: Annotated[list[Path], click.Path(exists=True, path_type=Path)],
    as_: Usage = Usage.TURNS,
    endless: bool = False,
    wait: Annotated[int, click.IntRange(0, 3650)] = 0,
    split: str = "",
) -> None:
    """Measure the quality of recall on memories and questions with known answers.

    Nothing is stored: each set of a file gets a store in memory, with the current settings. The clock moves from memory
    to memory and on to the questions, and maintenance runs on every day in between.

    files: Memories and questions; a folder's files are scored together.
    --as: Store chat turns with role and session, or notes with the text alone.
    --endless: Let nothing expire, and run no maintenance.
    --wait: Days by which every question is asked later.
    --split: Ask only the questions of this split.

    Example: wellkept admin eval questions.jsonl"""
    use_one_thread_each()
    from wellkept import evaluation

    options = evaluation.ReplayOptions(usage=as_, is_endless=endless, wait=timedelta(days=wait), split=split)
    families: dict[str, Evaluation] = {}
    for file in files:
        name = name_family(file) if name_family(file) not in families else str(file)
        with run.printer.progress(name, 0) as advance:
            sets = evaluation.read_sets(file)
            families[name] = evaluation.evaluate(sets, run.settings, options=options, progress=advance)
    run.show(_render_families(families))


def measure_verbs(
    run: Run, memories: Annotated[int, click.IntRange(1)] = 2_000, seconds: Annotated[float, click.FloatRange(0)] = 30
) -> None:
    """Measure the speed of remember, remember_many, log_turn, recall and context on this machine.

    The store is a temporary SQLite file with default settings. The floor is one table with a full-text index in SQLite,
    with the same durability and nothing else.

    --memories: Memories in the store before it is measured.
    --seconds: Seconds to measure, after the memories are stored.

    Example: wellkept admin bench --seconds 10"""
    # As `wellkept serve` does, before NumPy is loaded: its threads spin, which is no work of the verbs.
    use_one_thread_each()
    from wellkept.evaluation import speed
    from wellkept.store.sqlite.floor import BareSqlite

    with (
        tempfile.TemporaryDirectory(prefix="wellkept-bench-") as folder,
        wellkept.Wellkept(f"sqlite:///{folder}/ours.db", settings=Settings()) as opened,
        closing(BareSqlite(Path(folder, "floor.db"))) as bare,
        run.printer.progress("verbs", 5) as advance,
    ):
        found = speed.measure_speed(opened.agent("bench"), bare, memories=memories, seconds=seconds, progress=advance)
    machine = f"wellkept {wellkept.__version__}, Python {platform.python_version()}, {platform.machine()}"
    run.show(_render_speed(found, f"{machine}, {os.cpu_count()} processors, SQLite, {memories:,} memories"))


def name_family(file: Path) -> str:
    """Return the name under which the questions of a file or folder are scored.

    >>> name_family(Path("data/locomo.json.gz"))
    'locomo'
    """
    return file.resolve().name.partition(".")[0]


SPEED_COLUMNS = (
    Column("Verb", lambda each: each.verb, is_whole=True),
    Column("Calls/s", lambda each: f"{each.per_second:,.0f}", is_whole=True),
    Column("CPU ms", lambda each: f"{each.cpu_ms:.2f}", is_whole=True),
    Column("Floor ms", lambda each: f"{each.floor_cpu_ms:.2f}", is_whole=True),
    Column("Ratio", lambda each: f"{each.ratio:.1f}", is_whole=True),
    Column("Floor", lambda each: each.floor, is_whole=True),
)


def _render_speed(found: Sequence[VerbSpeed], machine: str) -> Output:
    document = {"machine": machine, "verbs": [{**asdict(each), "ratio": each.ratio} for each in found]}
    table = Table(SPEED_COLUMNS, found, has_header=True)
    return Output(document, [table, Piped(machine), Styled(machine, "dim")])


def _render_families(families: Mapping[str, Evaluation]) -> Output:
    rows = [(name, *row) for name, found in families.items() for scores in found.scores for row in _score_rows(scores)]
    remarks = [f"{name}: {_describe_run(found)}" for name, found in families.items()]
    columns = [Column(header, itemgetter(number), is_whole=True) for number, header in enumerate(HEADERS)]
    document = {"families": [_family_json(name, found) for name, found in families.items()]}
    said = [block for each in remarks for block in (Piped(each), Styled(one_line(each), "dim"))]
    return Output(document, [Table(columns, rows, has_header=True), *said])


def _score_rows(scores: Scores) -> Iterator[tuple[str, ...]]:
    """Yield a row by turn and one by session; one without a level if nothing should be found."""
    levels = [(level, values) for level, values in (("turn", scores.turns), ("session", scores.sessions)) if values]
    name = scores.type if scores.is_headline or scores.no_hit is not None else f"{scores.type} (not in all)"
    for level, values in levels or [(NOTHING, {})]:
        metrics = (str(values[metric]) if metric in values else NOTHING for metric in METRICS)
        count = values[METRICS[0]].count if values else scores.questions
        yield name, level, str(count), *metrics, _render_share(scores.alive), _render_share(scores.no_hit)


def _render_share(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else str(estimate)


def _describe_run(found: Evaluation) -> str:
    """Say how long recall took, and how much of what no question needs is gone."""
    speed = f"recall p50 {found.recall_p50_ms:.1f} ms, p95 {found.recall_p95_ms:.1f} ms"
    if not found.rest.count:
        return speed
    rest = f"of {found.rest.count:,} other memories older than a week {found.rest.gone:.0%} are gone"
    return f"{speed}; {rest}, {found.rest.freed:.0%} of their characters"


def _family_json(name: str, found: Evaluation) -> Json:
    return {
        "family": name,
        "stored": found.stored,
        "store_seconds": found.store_seconds,
        "recall_p50_ms": found.recall_p50_ms,
        "recall_p95_ms": found.recall_p95_ms,
        "rest": {**asdict(found.rest), "gone": found.rest.gone, "freed": found.rest.freed},
        "scores": [asdict(each) for each in found.scores],
    }
