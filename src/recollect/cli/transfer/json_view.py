"""Moving a tenant, for programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from recollect.cli.json_text import write_json
from recollect.model import Exported, Imported


class JsonTransfer:
    """The part of `View` that is about moving a tenant, as JSON."""

    def exported(self, exported: Exported, path: Path) -> None:
        write_json(asdict(exported) | {"path": str(path), "problems": list(exported.problems)})

    def imported(self, imported: Imported) -> None:
        told = asdict(imported)
        told["dry_run"] = told.pop("is_dry_run")
        write_json(told | {"refused": list(told["refused"]), "problems": list(imported.problems)})
