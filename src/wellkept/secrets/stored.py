"""Scan everything a tenant has stored for secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wellkept.deadline import check_deadline
from wellkept.model import Json
from wellkept.secrets.check import RANDOM_RUN, SecretGuard
from wellkept.transfer.rules import CONTENTS, KEYS, read_facts
from wellkept.upkeep.walk import Progress

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

SHELVES: Mapping[str, str] = {table: shelf for table, (shelf,) in read_facts("shelf").items()}
ORDER = "agents memories proposals transcripts details documents workflows prompts audit".split()
"""Names of the shelves in the order in which they are listed."""

MACHINE_COLUMNS = frozenset(
    """hash prev_hash content_hash created_at updated_at expires_at replaced_at archived_at last_retrieved_at valid_from
    valid_to held_at at kind role scope origin state change seq""".split()
)
"""Columns that the program fills by itself."""

ID_COLUMNS = frozenset(["id", "agent_id", "session_id", "document_id", "workflow_id", "key", "source"])
"""Columns with ids, which may be random."""

OVERLAP = 500
"""Characters of a long text that are read again with the next piece, for a secret between two pieces."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Record that appears to contain a secret, with the matching rules; never the secret itself."""

    shelf: str = field(metadata={"description": "Where it is stored.", "examples": ["memories"]})
    agent: str | None = field(metadata={"description": "null: it belongs to all agents."})
    id: str
    rules: tuple[str, ...] = field(metadata={"description": "Rules that matched."})


class SecretScan:
    """Scan of every text of a tenant, in any state, as of one moment: the rules found so far, by record."""

    def __init__(self, guard: SecretGuard, tenant: str, progress: Progress | None = None) -> None:
        """Set up; `progress` is called after each row, with a total of 0."""
        self._guard = guard
        self._tenant = tenant
        self._progress = progress
        self._found: dict[tuple[str, str | None, str], dict[str, None]] = {}
        self._in_contents: dict[str, dict[str, None]] = {}
        self._last_piece = ("", "")
        self._done = 0

    def __call__(self, store: SqlStore) -> Iterator[Sighting]:
        """Yield each record with a secret, by shelf."""
        store.export_rows(self._tenant, self._take)
        for shelf, agent, id in sorted(self._found, key=lambda each: ORDER.index(each[0])):
            yield Sighting(shelf, agent, id, tuple(self._found[shelf, agent, id]))

    def _take(self, table: str, row: Json) -> None:
        check_deadline()
        if table == CONTENTS:
            self._take_content(row)
        elif table in SHELVES:
            rules = self._find_rules(row)
            if table == "details":
                rules |= self._in_contents.get(str(row["content_hash"]), {})
            if rules:
                agent = row["id"] if table == "agents" else row.get("agent_id")
                self._found.setdefault((SHELVES[table], agent, _record_id(table, row)), {}).update(rules)
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, 0)

    def _take_content(self, row: Json) -> None:
        """Scan a piece of a long text; the details that refer to it come later."""
        hash, text = str(row["content_hash"]), str(row.get("text", ""))
        last_hash, last_text = self._last_piece
        before = last_text[-OVERLAP:] if hash == last_hash else ""
        self._last_piece = (hash, text)
        rules = {each.rule: None for each in self._guard.findings(self._tenant, before + text)}
        if rules:
            self._in_contents.setdefault(hash, {}).update(rules)

    def _find_rules(self, row: Json) -> dict[str, None]:
        rules: dict[str, None] = {}
        for column, value in row.items():
            if column in MACHINE_COLUMNS or not value or isinstance(value, int | float):
                continue
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found = (each.rule for each in self._guard.findings(self._tenant, text))
            rules |= {rule: None for rule in found if not (column in ID_COLUMNS and rule == RANDOM_RUN)}
        return rules


def _record_id(table: str, row: Json) -> str:
    """Return the id under which people find the record."""
    if table in ("memories", "memory_versions", "proposals"):
        return f"{'p' if table == 'proposals' else 'm'}-{row['seq']}"
    if table == "kb_chunks":
        return str(row["document_id"])
    return "/".join(str(row[column]) for column in KEYS[table] if column != "agent_id")
