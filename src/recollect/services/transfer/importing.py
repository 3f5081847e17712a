"""The one way a file comes in, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recollect.errors import Invalid
from recollect.model import Imported
from recollect.ports import ArchiveFiles, ForeignFormats
from recollect.services.transfer.archive import is_export
from recollect.services.transfer.foreign import ForeignImport
from recollect.services.transfer.restore import FORMAT, Restore
from recollect.services.walk import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWishes:
    """How a file is to be imported."""

    format: str | None = None  # None: what the file looks like
    agent: str | None = None  # whose the memories are that name no agent; None: the one of the settings
    is_dry_run: bool = False
    is_merged: bool = False  # what clashes with what is here is left out, instead of refusing all of it


class Import:
    """Finds out what a file is, and hands it on."""

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
        """What can be imported, by name."""
        return (FORMAT, *self._formats.names)

    def __call__(self, tenant: str, path: Path, wishes: ImportWishes, progress: Progress | None = None) -> Imported:
        """Raises: Invalid when the file cannot be read or makes no sense; Conflict."""
        if wishes.format == FORMAT or (wishes.format is None and self._is_own(path)):
            return self._restore(
                tenant, path, is_dry_run=wishes.is_dry_run, is_merged=wishes.is_merged, progress=progress
            )
        reader = self._formats.recognise(path) if wishes.format is None else self._formats.named(wishes.format)
        try:
            return self._foreign(
                tenant,
                lambda: reader.read(path),
                format=reader.name,
                agent=wishes.agent or self._agent,
                is_dry_run=wishes.is_dry_run,
                progress=progress,
            )
        except OSError as error:
            raise Invalid(f"{path}: cannot be read ({error.strerror}).") from error

    def _is_own(self, path: Path) -> bool:
        if not path.exists():
            raise Invalid(f"There is no file {str(path)!r}.")
        return path.is_file() and is_export(self._files, path)
