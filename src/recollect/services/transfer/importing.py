"""Import of a file of any supported format."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Invalid
from recollect.lazy import dataclass
from recollect.model import ImportReport
from recollect.ports import ArchiveFiles, ForeignFormats
from recollect.services.transfer.archive import is_export
from recollect.services.transfer.foreign import ForeignImport
from recollect.services.transfer.restore import FORMAT, Restore
from recollect.services.walk import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import."""

    format: str | None = None  # None: detected from the file
    agent: str | None = None  # owner of memories that name no agent; None: the agent of the settings
    is_dry_run: bool = False
    is_remembered: bool = False  # remember the turns of chats as episodes
    is_merged: bool = False  # leave out rows that clash, instead of refusing the whole file
    is_trusted: bool = False  # believe an export that is not signed
    with_erased: bool = False  # bring back what was erased here


class Import:
    """Service that detects the format of a file and imports it."""

    def __init__(
        self, files: ArchiveFiles, restore: Restore, foreign: ForeignImport, formats: ForeignFormats, *, agent: str
    ) -> None:
        self._files = files
        self._restore = restore
        self._foreign = foreign
        self._formats = formats
        self._agent = agent

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of the supported formats."""
        return (FORMAT, *self._formats.names)

    def __call__(
        self, tenant: str, path: Path, options: ImportOptions, progress: Progress | None = None
    ) -> ImportReport:
        """Import a file. Raises: Invalid when the file cannot be read or is invalid; Conflict."""
        if options.format == FORMAT or (options.format is None and self._is_export(path)):
            return self._restore(
                tenant,
                path,
                is_dry_run=options.is_dry_run,
                is_merged=options.is_merged,
                is_trusted=options.is_trusted,
                with_erased=options.with_erased,
                progress=progress,
            )
        reader = self._formats.recognise(path) if options.format is None else self._formats.named(options.format)
        try:
            return self._foreign(
                tenant,
                lambda: reader.read(path),
                format=reader.name,
                agent=options.agent or self._agent,
                is_dry_run=options.is_dry_run,
                is_remembered=options.is_remembered,
                with_erased=options.with_erased,
                progress=progress,
            )
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error

    def _is_export(self, path: Path) -> bool:
        if not path.exists():
            raise Invalid(f"There is no file {str(path)!r}.")
        return path.is_file() and is_export(self._files, path)
