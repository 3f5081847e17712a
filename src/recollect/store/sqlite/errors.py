"""Translation of SQLite's errors, and checks of the disk."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from recollect.deadline import READ_TIMED_OUT
from recollect.errors import (
    Conflict,
    DiskFull,
    Invalid,
    ReadOnly,
    RecollectError,
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreTimeout,
)
from recollect.store.engine import SCHEMA_INCOMPLETE, UNSTORABLE

RETRY_AFTER_BUSY = 1.0
UNWRITTEN = frozenset(
    {
        apsw.SQLITE_IOERR_WRITE,
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
        apsw.SQLITE_IOERR_TRUNCATE,
        apsw.SQLITE_IOERR_SHMSIZE,
    }
)
"""Result codes of failed writes (full or failing disk, quota). The database can still be read."""

LITTLE_FREE = 8 * 1024 * 1024
"""Free bytes below which writes may fail: the write-ahead log alone may take half of this before a checkpoint."""

LOST = re.compile("no such (table|column)|table .* has no column")
"""Messages that report a missing part of the schema."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the driver's errors to ours, with the original as the cause."""
    try:
        yield
    except RecollectError:
        raise
    except apsw.InterruptError as error:
        raise StoreTimeout(READ_TIMED_OUT) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        message = "The database is busy: another process has been writing for too long. Try again."
        raise StoreBusy(message, retry_after=RETRY_AFTER_BUSY) from error
    except (OverflowError, UnicodeEncodeError, apsw.TooBigError) as error:
        raise Invalid(UNSTORABLE) from error
    except apsw.ConstraintError as error:
        raise Conflict(f"The database refused the write: {error}.") from error
    except apsw.FullError as error:
        raise DiskFull("The disk is full; nothing was written. Free some space and try again.") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreError(f"The database file is damaged or not a recollect database ({error}).") from error
    except apsw.CantOpenError as error:
        raise StoreError("The database file cannot be opened; check the path and its permissions.") from error
    except apsw.ReadOnlyError as error:
        raise ReadOnly("The database file cannot be written to; check its permissions.") from error
    except apsw.IOError as error:
        message = f"Disk I/O failed ({error}): the disk may be full, failing or gone."
        raise (ReadOnly if getattr(error, "extendedresult", 0) in UNWRITTEN else StoreError)(message) from error
    except apsw.Error as error:
        if isinstance(error, apsw.SQLError) and LOST.match(str(error)):
            raise SchemaMismatch(SCHEMA_INCOMPLETE) from error
        raise StoreError(f"SQLite failed: {error}.") from error


def find_disk_problems(folder: Path) -> Sequence[str]:
    """Return the problems that will prevent writes to the database in this folder, as sentences."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return (f"The database's folder cannot be read: {error.strerror}.",)
    return ("The disk is nearly full: writes may fail at any time. Free some space.",) if free < LITTLE_FREE else ()
