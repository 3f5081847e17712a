"""Moving a tenant: everything it has to a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from recollect.caller import current_caller
from recollect.errors import Forbidden
from recollect.model import Exported, Imported
from recollect.services.transfer.check import Progress
from recollect.services.transfer.importing import ImportWishes
from recollect.tenant_memory.view import TenantView


class Transfer(TenantView):
    """The verbs that move a tenant."""

    def export(self, path: str | Path | IO[bytes], *, progress: Progress | None = None) -> Exported:
        """Write everything the tenant has, except keys, to a file that any engine can import; `.gz` and `.zst` at the
        end of its name compress it. It is written as of one moment, and has its name only when it is whole.

        Raises: Invalid when it cannot be written; Forbidden.
        """
        current_caller().check_whole_tenant()
        self._services.retrieved.flush(self.id)
        self._services.context_calls.flush(self.id)
        to = Path(path).expanduser() if isinstance(path, str | Path) else path
        return self._services.export(self.id, to, progress)

    def import_(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        agent: str | None = None,
        merge: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        """Take in a file: an export, or what another program remembered (`format`, if the file does not show it;
        `agent`, for memories that name none). An export comes in without loss; what is there already stays as it is, so
        importing twice changes nothing. Where ids clash all of it is refused, or with `merge` only what clashes.
        `dry_run` writes nothing and tells what would happen.

        Raises: Invalid when the file is not whole or makes no sense; Conflict when it clashes with what is here;
        Forbidden.
        """
        current_caller().check_whole_tenant()
        if current_caller().trust is not None:
            raise Forbidden("A file can hold memories of any origin; it takes a key without a limit on trust.")
        wishes = ImportWishes(format=format, agent=agent, is_dry_run=dry_run, is_merged=merge)
        return self._services.import_(self.id, Path(path).expanduser(), wishes, progress)

    def import_formats(self) -> tuple[str, ...]:
        """What `format` may be."""
        return self._services.import_.formats
