"""First pass over an export: check that it is complete and decide what to do with each row, without writing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from wellkept.errors import Invalid
from wellkept.extension import Clock
from wellkept.history.rules_history import START, find_seal_problem, is_foreign, is_keyed
from wellkept.model import AuditEvent, Json, Kind, Owner
from wellkept.secrets.check import SecretGuard
from wellkept.transfer.archive import ArchiveReader, Header, Line
from wellkept.transfer.rules import (
    CONTENTS,
    ERASED_HERE,
    KEYS,
    MAX_LISTED,
    OWNED,
    TEXTS,
    Key,
    Refused,
    key_of,
    owner_of,
    parent_of,
)
from wellkept.upkeep.rules_erasure import MARKED, UNMARKED, list_subject_marks, mark_cleared, mark_row

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore
    from wellkept.upkeep.embedding import Embedding


BATCH = 200
FOREIGN = (
    "From event {} on, the audit log of the file is keyed with an audit_key that is not set here and cannot be "
    "checked; its events are sealed again, each with its old hash."
)


@dataclass(slots=True)
class LogState:
    """Audit log of the file, compared with the stored one."""

    first: str = ""  # hash of its first event, which identifies the log
    last: int = 0
    shared: int = 0  # last event that both logs share
    previous_hash: str = START
    problem: str = ""
    erased: set[int] = field(default_factory=set)  # new events whose message was erased here
    is_foreign: bool = False  # keyed with a key that is not set here


@dataclass(slots=True)
class ArchiveFindings:
    """Decisions about the rows of a file."""

    header: Header
    sha256: str = ""
    signature: str = ""
    is_signed: bool = False  # with the export_key that is set here
    added: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    clashes: Refused = field(default_factory=Refused)  # rows with a key that is taken
    erased: Refused = field(default_factory=Refused)  # rows that were erased here
    blanked: set[Key] = field(default_factory=set)  # rows that keep their place without their texts
    flagged: Refused = field(default_factory=Refused)  # new rows that seem to hold a secret
    secrets: dict[Key, str] = field(default_factory=dict)  # new memories that do, and the rule that found it
    core_count: int = 0  # new core memories that are not held yet
    prompted: list[str] = field(default_factory=list)  # the first new agents with a system prompt
    left_out: set[Key] = field(default_factory=set)  # including all their parts
    log: LogState = field(default_factory=LogState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Target of an import, and the keys that are set there."""

    store: SqlStore
    embedding: Embedding
    now: Clock
    audit_key: str
    export_key: str


class CheckArchive:
    """First pass over one file, for one tenant."""

    def __init__(self, place: Place, tenant: str, path: Path, *, with_erased: bool) -> None:
        """Open the file. Raises: Invalid when it is no export."""
        self._archive = ArchiveReader(path, key=place.export_key)
        self._found = ArchiveFindings(self._archive.header)
        self._audit_key = place.audit_key
        self._store = place.store
        self._tenant = tenant
        # Allowances in the file count as if they were stored.
        self._allowed: set[str] = set()
        self._guard = SecretGuard(place.store, place.now, mode="flag", also_allowed=self._allowed)
        self._has_rows = {table: place.store.has_rows(tenant, table) for table in KEYS}
        # A stored memory can also clash with a version.
        self._has_rows["memory_versions"] = self._has_rows["memories"]
        self._has_erased = self._has_rows["erased_texts"] and not with_erased
        # Agents in the file so far, or in the store.
        self._agents: set[str] = set()
        # Events that seem to hold a secret; the allowances of the file follow behind them.
        self._suspects: list[Line] = []
        # Running hash of the current text, and the hash it must have.
        self._text_hash = hashlib.sha256()
        self._text = ""

    def __call__(self, report: Callable[[int], None]) -> ArchiveFindings:
        """Read the file and return the decisions. `report` receives the number of bytes read.

        Raises: Invalid when the file is incomplete or has invalid rows.
        """
        archive, found, batch = self._archive, self._found, list[Line]()
        for line in archive:
            if line.table not in KEYS and line.table != CONTENTS:
                raise Invalid(f"Line {line.number}: there is no table {line.table[:40]!r}; update wellkept.")
            if batch and (len(batch) == BATCH or batch[0].table != line.table):
                self._take(batch)
                batch = []
                report(line.read)
            self._check_text(line)
            if line.table != CONTENTS:
                self._check_row(line)
                batch.append(line)
            else:
                report(line.read)
        if batch:
            self._take(batch)
        self._end_text()
        for event in self._suspects:
            self._flag(event)
        found.sha256, found.signature, found.is_signed = archive.sha256, archive.signature, archive.is_signed
        return found

    def _check_row(self, line: Line) -> None:
        try:
            self._store.check_row(line.table, line.row)
        except Invalid as error:
            raise Invalid(f"Line {line.number}: {error}") from error
        if line.table == "agents":
            self._agents.add(line.row["id"])
        if line.table in OWNED and line.row["agent_id"] not in self._agents:
            agent = self._store.find_agent(Owner(self._tenant, line.row["agent_id"]))
            if agent is None:
                raise Invalid(f"Line {line.number}: {line.table}: the file has no agent of that name.")
            self._agents.add(agent.id)

    def _check_text(self, line: Line) -> None:
        """Check that the pieces of a text match its hash, unless the file marks the text as missing.

        Raises: Invalid.
        """
        expected, text = line.row.get("content_hash"), line.row.get("text")
        if line.table != CONTENTS or expected != self._text:
            self._end_text()
        if line.table != CONTENTS:
            return
        if not isinstance(expected, str) or not isinstance(text, str | None):
            raise Invalid(f"Line {line.number} is not a piece of a text.")
        if not self._text:
            self._text, self._text_hash = expected, hashlib.sha256()
        # The text was damaged in the store it was exported from.
        if text is None:
            self._text = ""
        else:
            self._text_hash.update(text.encode("utf-8", "surrogatepass"))

    def _end_text(self) -> None:
        if self._text and self._text_hash.hexdigest() != self._text:
            raise Invalid(f"The text {self._text[:16]}… is not what its hash says; the file was changed.")
        self._text = ""

    def _take(self, batch: list[Line]) -> None:
        table = batch[0].table
        if table == "audit_log":
            self._take_events(batch)
        elif table != "shelves":
            rows = [line for line in batch if self._admit(line)]
            comparisons = self._find_rows(table, [line.row for line in rows])
            new = [line for line, same in zip(rows, comparisons, strict=True) if same is None]
            erased = self._find_erased(new)
            for line, is_same in zip(rows, comparisons, strict=True):
                if line.number in erased:
                    self._leave_out(line)
                else:
                    self._classify(line, is_same)

    def _find_rows(self, table: str, rows: list[Json]) -> list[bool | None]:
        if not self._has_rows[table]:
            return [None] * len(rows)
        return list(self._store.find_rows(self._tenant, table, rows))

    def _find_erased(self, lines: list[Line]) -> set[int]:
        """Return the numbers of new lines that were erased here; note those that only lost their texts."""
        if not self._has_erased or not lines or lines[0].table in UNMARKED:
            return set()
        text, made = MARKED[lines[0].table]
        marks = {line.number: mark_row(line.table, line.row[text], line.row[made]) for line in lines}
        subjects = {line.number: list_subject_marks(line.table, line.row) for line in lines}
        asked = {*marks.values(), *map(mark_cleared, marks.values()), *chain.from_iterable(subjects.values())}
        known = self._store.find_erased(self._tenant, asked)
        erased = {number for number, mark in marks.items() if mark in known}
        for line in lines:
            ends = [known[mark] for mark in subjects[line.number] if mark in known]
            if ends and datetime.fromisoformat(line.row[made]) <= max(ends):
                erased.add(line.number)
            elif mark_cleared(marks[line.number]) in known:
                self._found.blanked.add(key_of(line.table, line.row))
        return erased

    def _leave_out(self, line: Line) -> None:
        self._found.erased.add(_describe_place(line), ERASED_HERE)
        if line.table == "chat_messages":
            self._found.added[line.table] += 1
            self._found.blanked.add(key_of(line.table, line.row))
        elif line.table == "audit_log":
            self._found.log.erased.add(line.row["id"])
        else:
            self._found.left_out.add(key_of(line.table, line.row))

    def _admit(self, line: Line) -> bool:
        """Return False for a row that is left out because its parent or its agent is."""
        parents = {parent_of(line.table, line.row), owner_of(line.table, line.row)}
        if not self._found.left_out.isdisjoint(parents):
            self._found.left_out.add(key_of(line.table, line.row))
            return False
        if line.table == "secret_allowances":
            self._allowed.add(line.row["hash"])
        return True

    def _classify(self, line: Line, is_same: bool | None) -> None:
        key = key_of(line.table, line.row)
        if is_same is None:
            self._found.added[line.table] += 1
            self._found.core_count += is_unheld_core(line.table, line.row)
            if line.table == "agents" and line.row["system_prompt"].strip() and len(self._found.prompted) < MAX_LISTED:
                self._found.prompted.append(line.row["id"])
            self._flag(line)
        elif is_same:
            self._found.present[line.table] += 1
        else:
            self._found.left_out.add(key)
            self._found.clashes.add(_describe_place(line), "something else has this id here")

    def _flag(self, line: Line) -> None:
        """Note a new row that seems to hold a secret."""
        rule = self._find_rule(line)
        if not rule:
            return
        self._found.flagged.add(_describe_place(line), f"it seems to hold a secret: {rule}")
        if line.table == "memories":
            self._found.secrets[key_of(line.table, line.row)] = rule

    def _find_rule(self, line: Line) -> str:
        """Return the rule that finds a secret in a text of the row; empty if none does."""
        for column in TEXTS.get(line.table, ()):
            for text in [line.row[column]] if isinstance(line.row[column], str) else line.row[column]:
                for found in self._guard.findings(self._tenant, text):
                    return found.rule
        return ""

    def _take_events(self, batch: list[Line]) -> None:
        log, tenant = self._found.log, self._found.header.tenant
        for line in batch:
            event = parse_event(line.row, tenant)
            log.first = log.first or event.hash
            log.is_foreign = log.is_foreign or is_foreign(event.hash, self._audit_key)
            log.problem = log.problem or self._find_event_problem(event, log)
            log.last, log.previous_hash = max(event.id, log.last), event.hash
        comparisons = self._find_rows("audit_log", [line.row for line in batch])
        erased = self._find_erased([line for line, same in zip(batch, comparisons, strict=True) if not same])
        for line, is_same in zip(batch, comparisons, strict=True):
            if line.number in erased:
                self._leave_out(line)
            elif is_same and log.shared < line.row["id"]:
                log.shared = line.row["id"]
            elif not is_same and self._find_rule(line):
                self._suspects.append(line)
        # Provisional; the restore decides which of them to add.
        self._found.present["audit_log"] += len(batch)

    def _find_event_problem(self, event: AuditEvent, log: LogState) -> str:
        if is_foreign(event.hash, self._audit_key):
            return FOREIGN.format(event.id)
        key, previous_hash = self._audit_key, log.previous_hash
        problem = find_seal_problem(event, previous_hash, key=key, must_be_keyed=is_keyed(previous_hash))
        is_whole = event.id == log.last + 1 and not problem
        return "" if is_whole else f"The audit log of the file does not fit together at event {event.id}."


def is_unheld_core(table: str, row: Json) -> bool:
    """Return True for a core memory that no review holds back."""
    return table == "memories" and row["kind"] == Kind.CORE and row.get("held_at") is None


def parse_event(row: Json, tenant: str) -> AuditEvent:
    """Return the event of a row, for the given tenant."""
    return AuditEvent(
        id=row["id"],
        tenant=tenant,
        at=datetime.fromisoformat(row["at"]),
        action=row["action"],
        agent_id=row["agent_id"],
        message=row["message"],
        meta=row["meta"],
        previous_hash=row["previous_hash"],
        hash=row["hash"],
    )


def _describe_place(line: Line) -> str:
    names = "/".join(str(line.row.get(column)) for column in KEYS[line.table])
    return f"line {line.number} ({line.table} {names[:80]})"
