"""Moving a tenant, for pipes and files."""

from __future__ import annotations

import sys
from pathlib import Path

from recollect.cli.view import one_line
from recollect.model import Exported, Imported


class PlainTransfer:
    """The part of `View` that is about moving a tenant, as lines."""

    def exported(self, exported: Exported, path: Path) -> None:
        for table, count in exported.counts.items():
            print(f"{table}\t{count}")
        for problem in exported.problems:
            print(one_line(problem), file=sys.stderr)

    def imported(self, imported: Imported) -> None:
        added = "would be added" if imported.is_dry_run else "added"
        for table in dict.fromkeys([*imported.added, *imported.present]):
            new, old = imported.added.get(table, 0), imported.present.get(table, 0)
            print(f"{table}\t{new} {added}\t{old} there already")
        for line in told_refused(imported):
            print(line, file=sys.stderr)


def told_refused(imported: Imported) -> list[str]:
    """What did not come in, and what else somebody should know."""
    lines = [f"{one_line(each.place)}: {one_line(each.reason)}" for each in imported.refused]
    if imported.refused_count > len(imported.refused):
        lines.append(f"and {imported.refused_count - len(imported.refused):,} more")
    return [*lines, *map(one_line, imported.problems)]
