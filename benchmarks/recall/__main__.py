"""`python -m benchmarks recall FILE…`: print the tables of docs/benchmarks.md for files of `wellkept admin eval`."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import wellkept
from wellkept.cli.commands.evaluation import name_family
from wellkept.evaluation import Evaluation, ReplayOptions, Scores, Usage, evaluate, read_sets
from wellkept.evaluation.scores import METRICS, Estimate
from wellkept.settings import Settings

HEADLINE = ("Family", "Lifetimes", "Level", "n", "R@5", "R@10", "Hit@5", "NDCG@10", "MRR", "Evidence alive")
TYPES = ("Family", "Type", "n", "R@10", "R@10, endless", "Evidence alive")
SILENCE = ("Family", "Type", "n", "No hit")
COSTS = ("Family", "Lifetimes", "Memories", "Recall p50", "p95", "Rest gone", "Characters freed")
MODES = {"default": False, "endless": True}

Results = Mapping[str, Mapping[str, Evaluation]]
"""Evaluations by family and mode."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks recall", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a file, or a folder scored as one family")
    parser.add_argument("--as", dest="usage", type=Usage, default=Usage.TURNS, choices=list(Usage))
    parser.add_argument("--split", default="", help="ask only the questions of this split")
    given = parser.parse_args(arguments)
    results: dict[str, dict[str, Evaluation]] = {}
    for path in given.files:
        for mode, is_endless in MODES.items():
            print(f"{name_family(path)}, {mode} lifetimes", file=sys.stderr)
            options = ReplayOptions(usage=given.usage, is_endless=is_endless, split=given.split)
            found = evaluate(read_sets(path), Settings(), options=options)
            results.setdefault(name_family(path), {})[mode] = found
    print("\n".join(render_tables(results, given.usage)))
    return 0


def render_tables(results: Results, usage: Usage) -> Iterator[str]:
    """Yield the lines of all tables as Markdown."""
    today = datetime.now(UTC).date()
    yield f"wellkept {wellkept.__version__}, {today}, {platform.machine()}, Python {platform.python_version()};"
    yield f"memories stored as {usage}."
    yield from _render_table(HEADLINE, _headline_rows(results))
    yield from _render_table(TYPES, _type_rows(results))
    yield from _render_table(SILENCE, _silence_rows(results))
    yield from _render_table(COSTS, _cost_rows(results))


def _render_table(headers: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    body = [f"| {' | '.join(row)} |" for row in rows]
    if body:
        yield from ("", f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}", *body)


def _headline_rows(results: Results) -> Iterator[Sequence[str]]:
    for family, modes in results.items():
        for mode, found in modes.items():
            total = _by_type(found).get("all")
            for level, values in () if total is None else (("turn", total.turns), ("session", total.sessions)):
                if total is not None and values:
                    shown = (_render(values[metric]) for metric in METRICS)
                    yield family, mode, level, str(values[METRICS[0]].count), *shown, _render(total.alive)


def _type_rows(results: Results) -> Iterator[Sequence[str]]:
    for family, modes in results.items():
        endless = _by_type(modes["endless"])
        for name, scores in _by_type(modes["default"]).items():
            best = scores.turns.get("recall@10")
            if best is not None and name != "all":
                label = name if scores.is_headline else f"{name} (not in the headline)"
                longest = endless[name].turns.get("recall@10")
                yield family, label, str(best.count), _render(best), _render(longest), _render(scores.alive)


def _silence_rows(results: Results) -> Iterator[Sequence[str]]:
    for family, modes in results.items():
        for name, scores in _by_type(modes["endless"]).items():
            if scores.no_hit is not None:
                yield family, name, str(scores.no_hit.count), _render(scores.no_hit)


def _cost_rows(results: Results) -> Iterator[Sequence[str]]:
    for family, modes in results.items():
        for mode, found in modes.items():
            times = (f"{found.recall_p50_ms:.1f} ms", f"{found.recall_p95_ms:.1f} ms")
            yield family, mode, f"{found.stored:,}", *times, f"{found.rest.gone:.2f}", f"{found.rest.freed:.2f}"


def _by_type(found: Evaluation) -> dict[str, Scores]:
    return {scores.type: scores for scores in found.scores}


def _render(estimate: Estimate | None) -> str:
    return "" if estimate is None else str(estimate).replace("0.", ".")
