"""Conversion of the driver's errors to ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from wellkept.deadline import READ_TIMED_OUT, is_read_overdue, read_seconds_left
from wellkept.errors import (
    Conflict,
    DiskFull,
    Invalid,
    ReadOnly,
    SchemaMismatch,
    StoreAway,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreTimeout,
    WellkeptError,
)
from wellkept.store.engine import SCHEMA_INCOMPLETE, UNSTORABLE

RETRY_AFTER_BUSY = 1.0
RETRY_AFTER_AWAY = 1.0
AWAY = "The PostgreSQL server cannot be reached or went away; check its address and log, or try again in a moment."
OTHER_AUDIT_KEY = "The audit log of this tenant is keyed. Set audit_key to its original key to write."
NODE_AWAY = "The node of the database cluster that holds this tenant cannot be reached; see the database's log."


def is_from_node(error: psycopg.Error) -> bool:
    """Return True if the coordinator of a cluster cannot connect to the node that holds the rows."""
    return (error.sqlstate or "").startswith("08")


def is_shutdown(error: psycopg.Error) -> bool:
    """Return True if the server ends the connection, which is not marked as broken before the socket is closed."""
    return isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow)


def build_outage(message: str) -> StoreError:
    """Return an error after which a retry reaches the server as soon as it is back."""
    error = StoreError(message)
    error.retry_after = RETRY_AFTER_AWAY
    return error


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert the driver's errors to ours, with the original as the cause."""
    try:
        yield
    except WellkeptError:
        raise
    except (PoolTimeout, errors.QueryCanceled) as error:
        if read_seconds_left() is not None:
            raise StoreTimeout(READ_TIMED_OUT) from error
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except (errors.SerializationFailure, errors.TooManyConnections) as error:
        raise StoreBusy("The database is busy. Try again.", retry_after=RETRY_AFTER_BUSY) from error
    except errors.DiskFull as error:
        raise DiskFull("The database's disk is full; nothing was written. Free some space and try again.") from error
    except errors.ReadOnlySqlTransaction as error:
        raise ReadOnly("The PostgreSQL server is read-only: it is a standby, or configured that way.") from error
    except (OverflowError, UnicodeEncodeError, errors.NumericValueOutOfRange, errors.ProgramLimitExceeded) as error:
        raise Invalid(UNSTORABLE) from error
    except errors.NotNullViolation as error:
        # The name of the table is that of a shard on a cluster.
        if (error.diag.table_name or "").startswith("audit_waiting"):
            raise ReadOnly(OTHER_AUDIT_KEY) from error
        raise Conflict(f"The database refused the write ({error.diag.column_name}).") from error
    except errors.IntegrityError as error:
        # Omit the driver's message, which quotes the row.
        raise Conflict(f"The database refused the write ({error.diag.constraint_name}).") from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreDamaged(f"The PostgreSQL database is damaged ({error.sqlstate}); its log says where.") from error
    except (errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise SchemaMismatch(SCHEMA_INCOMPLETE) from error
    except psycopg.OperationalError as error:
        if is_read_overdue():
            raise StoreTimeout(READ_TIMED_OUT) from error
        if is_from_node(error):
            raise StoreAway(NODE_AWAY) from error
        raise build_outage(AWAY) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL failed ({error.sqlstate}: {type(error).__name__}).") from error


@contextmanager
def translate_admin_errors() -> Iterator[None]:
    """Convert the errors of statements that change the schema or roles, with the server's message and hint.

    Ordinary statements hide them, because they may quote a row.
    """
    with translate_errors():
        try:
            yield
        except (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled, errors.DiskFull):
            raise
        except psycopg.Error as error:
            said = describe_failure(error)
            if not said:
                raise
            raise StoreError(said) from error


def describe_failure(error: psycopg.Error) -> str:
    """Return the server's message and hint as a sentence; empty if it has none, or one that may quote a value."""
    state, message, hint = error.sqlstate or "", error.diag.message_primary, error.diag.message_hint
    # Class 22 is about values; one of them reports wrong arguments of functions.
    if not message or (state.startswith("22") and not isinstance(error, errors.InvalidParameterValue)):
        return ""
    return f"PostgreSQL refused ({state}): {message.rstrip('.')}." + (f" Hint: {hint}" if hint else "")
