"""How SQLite's failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from recollect.errors import Conflict, Invalid, ReadOnly, RecollectError, SchemaMismatch, StoreBusy, StoreError
from recollect.store.engine import LACKING, UNSTORABLE

RETRY_AFTER_BUSY = 1.0
LOST = ("no such table", "no such column")


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours, the original kept as the cause."""
    try:
        yield
    except RecollectError:
        raise
    except (apsw.BusyError, apsw.LockedError) as error:
        message = "The database is busy: another process has been writing for too long. Try again."
        raise StoreBusy(message, retry_after=RETRY_AFTER_BUSY) from error
    except (OverflowError, UnicodeEncodeError, apsw.TooBigError) as error:
        raise Invalid(UNSTORABLE) from error
    except apsw.ConstraintError as error:
        raise Conflict(f"The database refused the write: {error}.") from error
    except apsw.FullError as error:
        raise StoreError("The disk is full; nothing was written. Free some space and try again.") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreError(f"The database file is damaged or not a recollect database ({error}).") from error
    except apsw.CantOpenError as error:
        raise StoreError("The database file cannot be opened; check the path and its permissions.") from error
    except apsw.ReadOnlyError as error:
        raise ReadOnly("The database file cannot be written to; check its permissions.") from error
    except apsw.IOError as error:
        message = f"The disk does not do what it is asked ({error}): it may be full, failing or gone."
        raise StoreError(message) from error
    except apsw.Error as error:
        if isinstance(error, apsw.SQLError) and str(error).startswith(LOST):
            raise SchemaMismatch(LACKING) from error
        raise StoreError(f"SQLite failed: {error}.") from error
