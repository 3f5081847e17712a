"""`python -m benchmarks recall --locomo FILE --longmemeval FILE`: print what recall finds of each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recall.files import locomo, longmemeval
from recollect.evaluation import Evaluation, evaluate, read_sets
from recollect.policy.recall.evaluation import METRICS
from recollect.settings import Settings

READERS = {"locomo": locomo, "longmemeval": longmemeval, "labelled": read_sets}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks recall", description=__doc__)
    for name in READERS:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    given = {name: path for name, path in vars(parser.parse_args(arguments)).items() if path is not None}
    if not given:
        parser.error("name at least one file")
    for name, path in given.items():
        found = evaluate(READERS[name](path), Settings(), progress=lambda each: print(".", end="", file=sys.stderr))
        print(file=sys.stderr)
        print("\n".join(lines(name, found)))
    return 0


def lines(name: str, found: Evaluation) -> list[str]:
    """The scores as a table, and the speed below it."""
    head = f"{name:28} {'level':8} {'n':>5} " + " ".join(f"{metric:>9}" for metric in METRICS)
    table = [head]
    for each in found.scores:
        for level, values in (("turn", each.memories), ("session", each.sessions)):
            if values:
                measured = " ".join(f"{values[metric]:9.3f}" for metric in METRICS)
                table.append(f"{each.type:28} {level:8} {each.questions:5} {measured}")
    per_second = found.stored / max(found.store_seconds, 1e-9)
    speed = f"recall p50 {found.recall_p50_ms:.1f} ms, p95 {found.recall_p95_ms:.1f} ms"
    return [*table, f"{found.stored:,} memories stored at {per_second:,.0f} a second; {speed}", ""]
