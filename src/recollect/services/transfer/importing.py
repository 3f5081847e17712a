"""Import of a file of any supported format."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Invalid
from recollect.model import ImportReport
from recollect.policy.names import check_owner
from recollect.ports import ArchiveFiles, ForeignFormats
from recollect.services.transfer.archive import is_export
from recollect.services.transfer.foreign import ForeignImport, ImportOptions
from recollect.services.transfer.restore import FORMAT, Restore
from recollect.services.walk import Progress


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
            return self._restore(tenant, path, options, progress)
        reader = self._formats.recognise(path) if options.format is None else self._formats.named(options.format)
        try:
            return self._foreign(check_owner(options.agent or self._agent, tenant), reader, path, options, progress)
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error

    def _is_export(self, path: Path) -> bool:
        if not path.exists():
            raise Invalid(f"There is no file {str(path)!r}.")
        return path.is_file() and is_export(self._files, path)
