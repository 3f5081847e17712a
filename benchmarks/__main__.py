"""`make bench`: print every measurement with its floor, its ratio and what was promised. Exits 1 if one is missed.

`python -m benchmarks recall --help` says how to measure what recall finds, `python -m benchmarks budgets --help` how to
measure how often a prompt of a given budget holds the answer.
`python -m benchmarks server` (or another part) measures only that part.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import (
    contexts,
    details,
    filters,
    hostile,
    maintenance,
    migrations,
    postgres,
    recalls,
    searches,
    server,
    starts,
    transfers,
    users,
    writes,
)
from benchmarks.budgets import main as measure_budgets
from benchmarks.measure import printed
from benchmarks.recall.__main__ import main as measure_recall

PARTS = {
    "writes": writes,
    "searches": searches,
    "postgres": postgres,
    "recalls": recalls,
    "filters": filters,
    "details": details,
    "contexts": contexts,
    "maintenance": maintenance,
    "transfers": transfers,
    "server": server,
    "hostile": hostile,
    "users": users,
    "starts": starts,
    "migrations": migrations,
}

ON_FILES = {"recall": measure_recall, "budgets": measure_budgets}
"""Measurements on files that are named on the command line."""


def main() -> int:
    if unknown := [name for name in sys.argv[1:] if name not in PARTS]:
        print(f"There is no part {unknown[0]!r}; choose {', '.join([*PARTS, *ON_FILES])}.", file=sys.stderr)
        return 2
    chosen = [PARTS[name] for name in sys.argv[1:]] or PARTS.values()
    with tempfile.TemporaryDirectory(prefix="wellkept-bench-") as folder:
        lines = [line for part in chosen for line in part.measured(Path(folder))]
    print(printed(lines))
    return 0 if all(line.is_met for line in lines) else 1


if __name__ == "__main__":
    on_files = ON_FILES.get(sys.argv[1]) if sys.argv[1:] else None
    sys.exit(main() if on_files is None else on_files(sys.argv[2:]))
