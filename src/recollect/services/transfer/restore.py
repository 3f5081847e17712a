"""Putting an export back, into an empty tenant or beside what is there.

The file is read twice. The first reading writes nothing and finds out what would become of every row, so a file that
is not whole changes nothing. The second adds rows in bounded transactions, each row only if its key is free: a run that
was interrupted is simply done again, and doing it once more changes nothing.

The audit log is put back as it is, hashes and all, if the tenant is the same and its log here is empty or a beginning
of the other. Otherwise its events are added to the log that is here, sealed anew, each telling which it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recollect.errors import Conflict
from recollect.model import ACTOR, AuditEvent, Imported, Json
from recollect.policy.transfer import CONTENTS, key_of
from recollect.ports import ArchiveFiles, Clock, ContentDraft, Store, Vector
from recollect.services.background.embedding import Embedding
from recollect.services.transfer.archive import ArchiveReader, Line
from recollect.services.transfer.check import BATCH, Check, Findings, event_of
from recollect.services.transfer.cleaning import Cleaning
from recollect.services.walk import Progress

FORMAT = "recollect"
PROGRESS_BYTES = 1024
EMBEDDED = ("memories", "kb_chunks")
CLASH = (
    "{count:,} rows of the file have ids that something else has here, the first at {place}. Import into an empty "
    "tenant, or choose to merge: what is here stays, and those rows are left out. Nothing was written."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogPlan:
    """What becomes of the file's events: those behind `after` are added, as they are or sealed anew."""

    after: int
    is_sealed_anew: bool


class Restore:
    """Reads exports."""

    def __init__(
        self, store: Store, embedding: Embedding, files: ArchiveFiles, now: Clock, *, secrets: str, audit_key: str
    ) -> None:
        self._audit_key = audit_key
        self._store = store
        self._embedding = embedding
        self._files = files
        self._now = now
        self._secrets = secrets

    def __call__(
        self, tenant: str, path: Path, *, is_dry_run: bool, is_merged: bool, progress: Progress | None
    ) -> Imported:
        """Raises: Invalid when the file is not whole; Conflict when it clashes with what is here."""
        size = self._files.size(path)
        total = size if is_dry_run else 2 * size

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done // PROGRESS_BYTES, -(-total // PROGRESS_BYTES))

        cleaning = Cleaning(self._store, self._now, mode=self._secrets)
        check = Check(self._store, self._files, cleaning, tenant, audit_key=self._audit_key)
        found = check(path, lambda read: report(read, total))
        plan = self._log_plan(tenant, found)
        if found.clash_count and not is_merged and not is_dry_run:
            raise Conflict(CLASH.format(count=found.clash_count, place=found.clashes[0].place))
        if not is_dry_run and found.added.total():
            run = _Run(self._store, self._embedding, self._now, tenant, cleaning, found, plan)
            run.read(ArchiveReader(self._files, path), lambda read: report(size + read, total))
        report(total, total)
        return _told(found, is_dry_run=is_dry_run)

    def _log_plan(self, tenant: str, found: Findings) -> _LogPlan:
        log = found.log
        is_beginning = log.shared == self._store.count_events(tenant)
        is_sealed_anew = found.header.tenant != tenant or not is_beginning or log.has_secret or log.is_foreign
        after = log.shared
        if is_sealed_anew and log.shared < log.last:
            after = max(after, self._store.last_imported(tenant, log.first))
        new = max(0, min(log.last - after, found.present["audit_log"]))
        found.present["audit_log"] -= new
        if new:
            found.added["audit_log"] = new
        return _LogPlan(after=after, is_sealed_anew=is_sealed_anew)


class _Run:
    """The second reading of a file."""

    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        now: Clock,
        tenant: str,
        cleaning: Cleaning,
        found: Findings,
        plan: _LogPlan,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._now = now
        self._tenant = tenant
        self._cleaning = cleaning
        self._found = found
        self._plan = plan
        self._is_begun = False
        self._is_waiting = False  # some of what was added has no vector yet
        self._text: ContentDraft | None = None
        self._text_hash = ""

    def read(self, archive: ArchiveReader, report: Callable[[int], None]) -> None:
        """Raises: Conflict when somebody wrote the same keys meanwhile."""
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
                    self._add([line])  # the first detail with this text: both are kept together
                else:
                    batch.append(line)
            if batch:
                self._add(batch)
        finally:
            self._close_text()
        self._record("import.done", "The import is done", {"added": dict(self._found.added)})
        if self._is_waiting:
            self._embedding.wake()

    def _feed(self, piece: Json) -> None:
        if piece["content_hash"] != self._text_hash:
            self._close_text()
            self._text, self._text_hash = self._store.begin_content(self._tenant), piece["content_hash"]
        if piece.get("text") is None:  # it was damaged where it comes from; its detail comes without
            self._close_text()
        elif self._text is not None:
            self._text.feed(piece["text"])

    def _close_text(self) -> None:
        if self._text is not None:
            self._text.close()
        self._text, self._text_hash = None, ""

    def _add(self, batch: list[Line]) -> None:
        table = batch[0].table
        rows = [row for line in batch if (row := self._admitted(line)) is not None]
        if table == "audit_log":
            self._add_events(rows)
        elif table == "shelves" and rows[0]["shelf"] == "audit":
            if not self._plan.is_sealed_anew and self._plan.after < self._found.log.last:
                self._import("shelves", rows[:1], ())
        elif rows or self._text is not None:
            vectors = self._embedding.of_texts([row["text"] for row in rows if table in EMBEDDED])
            self._is_waiting = self._is_waiting or any(vector is None for vector in vectors)
            self._import(table, rows, vectors)

    def _admitted(self, line: Line) -> Json | None:
        if line.table in ("audit_log", "shelves"):
            return line.row
        key = key_of(line.table, line.row)
        if key in self._found.left_out:
            return None
        return self._cleaning.clean(self._tenant, line.table, line.row) if key in self._found.dirty else line.row

    def _import(self, table: str, rows: list[Json], vectors: Sequence[Vector | None]) -> None:
        text = self._text
        if text is not None:
            text.seal()

        def work() -> None:
            if not self._is_begun and table != "shelves":
                self._record("import.begin", "An import was begun", {"sha256": self._found.sha256})
            self._store.import_rows(self._tenant, table, rows, now=self._now(), vectors=vectors, text=text)

        self._store.transaction(self._tenant, work)
        self._is_begun = self._is_begun or table != "shelves"
        self._close_text()

    def _add_events(self, rows: list[Json]) -> None:
        new = [row for row in rows if row["id"] > self._plan.after]
        if not new:
            return
        if not self._plan.is_sealed_anew:
            self._store.import_rows(self._tenant, "audit_log", new, now=self._now())
            return

        def work() -> None:
            for row in new:
                self._store.add_event(self._sealed_anew(row))

        self._store.transaction(self._tenant, work)

    def _sealed_anew(self, row: Json) -> AuditEvent:
        log, event = self._found.log, event_of(row, self._tenant)
        origin = {"log": log.first, "tenant": self._found.header.tenant, "id": event.id, "hash": event.hash}
        meta = {name: value for name, value in event.meta.items() if name != ACTOR}  # whoever imports it is the actor
        if event.actor:
            origin[ACTOR] = event.actor
        message = self._cleaning.redacted(self._tenant, event.message) if log.has_secret else event.message
        return replace(event, message=message, meta={**meta, "imported": origin})

    def _record(self, action: str, done: str, meta: Json) -> None:
        header, count = self._found.header, sum(self._found.added.values())
        message = f"{done}: {count:,} rows of an export of the tenant {header.tenant[:63]}."
        about = {"tenant": header.tenant[:63], "exported_at": header.exported_at[:40], **meta}
        self._store.add_event(
            AuditEvent(tenant=self._tenant, at=self._now(), action=action, message=message, meta=about)
        )


def _told(found: Findings, *, is_dry_run: bool) -> Imported:
    problems = [found.log.problem] if found.log.problem else []
    if found.cleaned.total():
        where = ", ".join(f"{count:,} in {table}" for table, count in found.cleaned.items() if count)
        problems.append(f"What seems to be a secret is taken out or flagged: {where}.")
    counts: list[Counter[str]] = [found.added, found.present]
    added, present = ({table: count for table, count in each.items() if count} for each in counts)
    return Imported(
        format=FORMAT,
        is_dry_run=is_dry_run,
        added=added,
        present=present,
        refused=(*found.refused, *found.clashes),
        refused_count=found.refused_count + found.clash_count,
        problems=tuple(problems),
    )
