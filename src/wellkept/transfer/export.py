"""Export of a whole tenant, or of one end user, to one file."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid
from wellkept.extension import Clock
from wellkept.history.noting import record_event
from wellkept.model import AuditEvent, ExportReport, Json
from wellkept.transfer.archive import ArchiveWriter
from wellkept.upkeep.walk import Progress

if TYPE_CHECKING:
    from wellkept.providers.archives import Archives
    from wellkept.store.sqlstore import SqlStore


class Export:
    """Service that writes exports."""

    def __init__(self, store: SqlStore, files: Archives, now: Clock, *, key: str = "") -> None:
        self._key = key
        self._store = store
        self._files = files
        self._now = now

    def __call__(
        self, tenant: str, to: Path | IO[bytes], progress: Progress | None = None, *, user: str | None = None
    ) -> ExportReport:
        """Write a consistent snapshot of a tenant, without its API keys, or of one user's records.

        Raises: Invalid when the file cannot be written.
        """
        if not isinstance(to, Path) and not hasattr(to, "write"):
            raise Invalid("Name a file to export to, or give one that is open for writing.")
        if isinstance(to, Path):
            with self._files.create(to) as file:
                exported = self._write(tenant, file, progress, user)
        else:
            exported = self._write(tenant, to, progress, user)
        count = sum(exported.counts.values())
        record_event(
            self._store,
            AuditEvent(
                tenant=tenant,
                at=self._now(),
                action="export.write",
                message=f"The tenant{'' if user is None else ', one user of it,'} was exported: {count:,} rows.",
                meta={"sha256": exported.sha256, "counts": dict(exported.counts)},
            ),
        )
        return exported

    def _write(self, tenant: str, file: IO[bytes], progress: Progress | None, user: str | None) -> ExportReport:
        archive, problems = ArchiveWriter(file, tenant, self._now(), key=self._key), list[str]()

        def take(table: str, row: Json) -> None:
            check_deadline()
            if "problem" in row:
                problems.append(f"{row['content_hash']}: {row['problem']}")
            archive.add(table, row)
            if progress is not None:
                progress(archive.counts.total(), 0)

        self._store.export_rows(tenant, take, user=user)
        checksum = archive.finish()
        return ExportReport(
            tenant=tenant,
            counts=dict(archive.counts),
            sha256=checksum,
            is_signed=bool(self._key),
            problems=tuple(problems),
        )
