"""Report of a maintenance run: its counts, the sentence of its event, and the record of the last one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wellkept.model import MaintenanceRun


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """Counts of one maintenance run."""

    agents: int = 0
    examined: int = 0
    expired: int = 0
    faded: int = 0
    over_quota: int = 0
    gisted: int = field(default=0, metadata={"description": "Expired memories of which the gist was kept."})
    items: int = field(default=0, metadata={"description": "Expired items that were archived."})
    deleted: int = field(
        default=0, metadata={"description": "Expired items that were archived a week ago, and deleted now."}
    )
    swept: int = field(default=0, metadata={"description": "Unused texts of details that were removed."})
    embedded: int = 0
    embedding_problem: str = field(default="", metadata={"description": "Reason for missing vectors, if any."})

    @property
    def archived(self) -> int:
        """Number of archived episodes."""
        return self.expired + self.faded + self.over_quota

    def changes(self) -> dict[str, int]:
        """Return the counts of what was changed."""
        names = ("archived", "gisted", "items", "deleted", "swept")
        return {name: getattr(self, name) for name in names}


def describe_changes(changes: Mapping[str, int]) -> str:
    """Return the sentence of the event about a run.

    >>> describe_changes({"archived": 1, "gisted": 2, "items": 0, "deleted": 0, "swept": 1})
    'Maintenance archived 1 episode, kept the gist of 2 more and removed 1 text no detail has.'
    """
    archived, gisted, items, deleted, swept = changes.values()
    message = f"Maintenance archived {archived:,} episode{'' if archived == 1 else 's'}"
    if gisted:
        message += f", kept the gist of {gisted:,} more"
    if items:
        message += f", archived {items:,} expired item{'' if items == 1 else 's'}"
    if deleted:
        message += f", deleted {deleted:,} item{'' if deleted == 1 else 's'} archived before"
    if swept:
        message += f" and removed {swept:,} text{'' if swept == 1 else 's'} no detail has"
    return f"{message}."


def parse_run(found: tuple[str, datetime] | None) -> MaintenanceRun | None:
    """Return the last run from its record: the counts, and when it was."""
    if found is None:
        return None
    counts = json.loads(found[0])
    return MaintenanceRun(at=found[1], error=counts.pop("error", ""), counts=counts)
