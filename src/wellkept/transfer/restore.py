"""Restore an export, into an empty tenant or one with data.

The file is read twice. The first pass writes nothing and decides what to do with every row, so an incomplete file
changes nothing. The second pass adds rows in bounded transactions, each only if its key is free. An interrupted run can
be repeated, and repeating a finished one changes nothing.

The audit log is restored unchanged, with its hashes, if the tenant is the same and its stored log is empty or a prefix
of the file's. Otherwise its events are appended to the stored log and sealed again, each with a reference to the
original event.

A file is trusted if it is signed with the `export_key` that is set here, or if the caller says so. Of any other file,
core memories are held for review and memories that seem to hold a secret are flagged. Nothing else is ever changed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wellkept.errors import Conflict, Invalid
from wellkept.extension import Progress
from wellkept.history.rules_history import OWN_AREAS
from wellkept.importers import formats
from wellkept.language.names import check_owner
from wellkept.memory.rules_trust import LOW_TRUST
from wellkept.model import ACTOR, AuditEvent, ImportReport, Json
from wellkept.providers.archives import get_size
from wellkept.secrets.check import FLAG
from wellkept.store.tables.details import ContentDraft
from wellkept.transfer.archive import OTHER_KEY, ArchiveReader, Line, is_export
from wellkept.transfer.check import BATCH, ArchiveFindings, CheckArchive, Place, is_unheld_core, parse_event
from wellkept.transfer.foreign import ForeignImport, ImportOptions
from wellkept.transfer.rules import CONTENTS, key_of
from wellkept.upkeep.rules_erasure import ERASED, ERASED_ACTION, blank_row

FORMAT = "wellkept"
PROGRESS_BYTES = 1024
CLASH = (
    "{count:,} rows of the file have ids that are already in use, the first at {place}. Import into an empty tenant, "
    "or choose to merge, which keeps the stored rows and leaves those of the file out. Nothing was written."
)
CHANGED = "The file was replaced while it was imported, so what came in was not checked. Import it again."
PROMPTED = "The file is not trusted and brings agents with a system prompt; read it before you use them: {agents}."
HELD = (
    "{count:,} core memories wait for review, because the file is {reason}. Approve them, or import files you trust as "
    "trusted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogPlan:
    """Plan for the file's events: those after `after` are added, unchanged or sealed again."""

    after: int
    is_resealed: bool


class Restore:
    """Service that restores exports."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __call__(self, tenant: str, path: Path, options: ImportOptions, progress: Progress | None) -> ImportReport:
        """Restore an export.

        Raises: Invalid when the file is incomplete or wrongly signed; Conflict when it clashes with stored rows.
        """
        size, is_dry_run = get_size(path), options.is_dry_run
        total = size if is_dry_run else 2 * size

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done // PROGRESS_BYTES, -(-total // PROGRESS_BYTES))

        check = CheckArchive(self._place, tenant, path, with_erased=options.with_erased)
        found = check(lambda read: report(read, total))
        is_trusted = options.is_trusted or found.is_signed
        if self._place.export_key and found.signature and not is_trusted:
            raise Invalid(OTHER_KEY)
        plan = self._plan_log(tenant, found)
        if found.clashes.count and not options.is_merged and not is_dry_run:
            raise Conflict(CLASH.format(count=found.clashes.count, place=found.clashes.first[0].place))
        if not is_dry_run and found.added.total():
            run = _Run(self._place, tenant, found, plan, is_trusted=is_trusted)
            run.read(ArchiveReader(path), lambda read: report(size + read, total))
        report(total, total)
        return _make_result(found, is_dry_run=is_dry_run, is_trusted=is_trusted)

    def _plan_log(self, tenant: str, found: ArchiveFindings) -> _LogPlan:
        log = found.log
        is_beginning = log.shared == self._place.store.count_events(tenant)
        is_resealed = found.header.tenant != tenant or not is_beginning or log.is_foreign or bool(log.erased)
        after = log.shared
        if is_resealed and log.shared < log.last:
            after = max(after, self._place.store.last_imported(tenant, log.first))
        new = max(0, min(log.last - after, found.present["audit_log"]))
        found.present["audit_log"] -= new
        if new:
            found.added["audit_log"] = new
        return _LogPlan(after=after, is_resealed=is_resealed)


class _Run:
    """Second pass over a file."""

    def __init__(self, place: Place, tenant: str, found: ArchiveFindings, plan: _LogPlan, *, is_trusted: bool) -> None:
        self._store, self._embedding, self._now = place.store, place.embedding, place.now
        self._tenant = tenant
        self._found = found
        self._plan = plan
        self._is_trusted = is_trusted
        self._is_started = False
        self._text: ContentDraft | None = None
        self._text_hash = ""
        # Texts of details that were left out; later details may refer to the same.
        self._unused: set[str] = set()

    def read(self, archive: ArchiveReader, report: Callable[[int], None]) -> None:
        """Add the rows of the file. Raises: Conflict when the same keys were written in the meantime."""
        batch: list[Line] = []
        try:
            for line in archive:
                if batch and (len(batch) == BATCH or batch[0].table != line.table):
                    self._add(batch)
                    batch = []
                    report(line.read)
                if line.table == CONTENTS:
                    self._feed(line.row)
                    report(line.read)
                elif self._text is not None:
                    # The first detail with this text is stored in the same transaction.
                    self._add([line])
                else:
                    batch.append(line)
            if batch:
                self._add(batch)
        finally:
            self._close_text()
            dropped = [self._store.drop_content(self._tenant, content_hash) for content_hash in self._unused]
            if any(dropped):
                # A text that is left out may have been erased before, so its bytes must not stay behind.
                self._store.scrub()
        if archive.sha256 != self._found.sha256:
            raise Conflict(CHANGED)
        self._record("import.done", "The import is done", {"added": dict(self._found.added)})
        self._embedding.wake()

    def _feed(self, piece: Json) -> None:
        if piece["content_hash"] != self._text_hash:
            self._close_text()
            self._text, self._text_hash = ContentDraft(), piece["content_hash"]
        # The text was damaged in the exported store; its detail is restored without it.
        if piece.get("text") is None:
            self._close_text()
        elif self._text is not None:
            self._text.feed(piece["text"])

    def _close_text(self) -> None:
        if self._text is not None:
            self._text.close()
        self._text, self._text_hash = None, ""

    def _add(self, batch: list[Line]) -> None:
        table = batch[0].table
        rows = [row for line in batch if (row := self._admit(line)) is not None]
        if table == "audit_log":
            self._add_events(rows)
        elif table == "shelves" and rows[0]["shelf"] == "audit":
            if not self._plan.is_resealed and self._plan.after < self._found.log.last:
                self._import("shelves", rows[:1])
        elif rows or self._text is not None:
            self._import(table, rows)

    def _admit(self, line: Line) -> Json | None:
        if line.table in ("audit_log", "shelves"):
            return line.row
        key = key_of(line.table, line.row)
        if key in self._found.left_out:
            if line.table == "details":
                self._unused.add(line.row["content_hash"])
            return None
        if key in self._found.blanked:
            return blank_row(line.table, line.row)
        return line.row if self._is_trusted else self._mark(line.table, line.row, self._found.secrets.get(key))

    def _mark(self, table: str, row: Json, secret: str | None) -> Json:
        """Hold a core memory of a file that is not trusted, and flag one that seems to hold a secret."""
        flags = [row.get("flag"), secret and f"{FLAG}: {secret}"]
        if is_unheld_core(table, row):
            flags.insert(1, LOW_TRUST)
            row = row | {"held_at": self._now().isoformat()}
        return row | {"flag": "; ".join(filter(None, flags))} if any(flags[1:]) else row

    def _import(self, table: str, rows: list[Json]) -> None:
        text = self._text
        if text is not None:
            text.seal()

        def work() -> None:
            if not self._is_started and table != "shelves":
                self._record(
                    "import.begin",
                    "An import was begun",
                    {"sha256": self._found.sha256, "is_trusted": self._is_trusted},
                )
            self._store.import_rows(self._tenant, table, rows, now=self._now(), text=text)

        self._store.transaction(self._tenant, work)
        self._is_started = self._is_started or table != "shelves"
        self._close_text()

    def _add_events(self, rows: list[Json]) -> None:
        new = [row for row in rows if row["id"] > self._plan.after]
        if not new:
            return
        if not self._plan.is_resealed:
            self._store.import_rows(self._tenant, "audit_log", new, now=self._now())
            return

        def work() -> None:
            for row in new:
                self._store.add_event(self._reseal(row), is_sealed=True)

        self._store.transaction(self._tenant, work)

    def _reseal(self, row: Json) -> AuditEvent:
        log, event = self._found.log, parse_event(row, self._tenant)
        origin = {"log": log.first, "tenant": self._found.header.tenant, "id": event.id, "hash": event.hash}
        if event.id in log.erased:
            # Its agent, its actor and the action of a program may be what was erased.
            action = event.action if event.action.partition(".")[0] in OWN_AREAS else ERASED_ACTION
            return replace(event, message=ERASED, action=action, agent_id=None, meta={"imported": origin})
        # The importing caller becomes the actor; the original one is kept in `origin`.
        meta = {name: value for name, value in event.meta.items() if name != ACTOR}
        if event.actor:
            origin[ACTOR] = event.actor
        return replace(event, meta={**meta, "imported": origin})

    def _record(self, action: str, done: str, meta: Json) -> None:
        header, count = self._found.header, sum(self._found.added.values())
        message = f"{done}: {count:,} rows of an export of the tenant {header.tenant[:63]}."
        about = {"tenant": header.tenant[:63], "exported_at": header.exported_at[:40], **meta}
        self._store.add_event(
            AuditEvent(tenant=self._tenant, at=self._now(), action=action, message=message, meta=about)
        )


def _make_result(found: ArchiveFindings, *, is_dry_run: bool, is_trusted: bool) -> ImportReport:
    problems = [found.log.problem] if found.log.problem else []
    if found.core_count and not is_trusted:
        reason = "signed, but export_key is not set here" if found.signature else "not signed"
        problems.append(HELD.format(count=found.core_count, reason=reason))
    if found.prompted and not is_trusted:
        problems.append(PROMPTED.format(agents=", ".join(found.prompted)))
    counts: list[Counter[str]] = [found.added, found.present]
    added, present = ({table: count for table, count in each.items() if count} for each in counts)
    return ImportReport(
        format=FORMAT,
        is_dry_run=is_dry_run,
        added=added,
        present=present,
        refused=(*found.clashes.first, *found.erased.first),
        refused_count=found.clashes.count + found.erased.count,
        flagged=tuple(found.flagged.first),
        flagged_count=found.flagged.count,
        problems=tuple(problems),
    )


class Import:
    """Service that detects the format of a file and imports it."""

    def __init__(self, restore: Restore, foreign: ForeignImport, *, agent: str) -> None:
        self._restore = restore
        self._foreign = foreign
        self._agent = agent

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of the supported formats."""
        return (FORMAT, *formats.get_names())

    def __call__(
        self, tenant: str, path: Path, options: ImportOptions, progress: Progress | None = None
    ) -> ImportReport:
        """Import a file. Raises: Invalid when the file cannot be read or is invalid; Conflict."""
        if options.format == FORMAT or (options.format is None and self._is_export(path)):
            return self._restore(tenant, path, options, progress)
        reader = formats.recognise(path) if options.format is None else formats.find_format(options.format)
        try:
            return self._foreign(check_owner(options.agent or self._agent, tenant), reader, path, options, progress)
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error

    def _is_export(self, path: Path) -> bool:
        # Unlike the methods of a path, these raise no error.
        if not os.path.exists(path):
            raise Invalid(f"There is no file {str(path)!r}.")
        return os.path.isfile(path) and is_export(path)
