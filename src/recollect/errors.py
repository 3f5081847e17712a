"""Everything recollect raises, as one tree.

    RecollectError             code             HTTP
      Invalid                  invalid          400   fix the input; the message says how
        SecretRejected         secret_rejected  400   the text holds a credential
      Unauthorized             unauthorized     401   no key, or not a valid one
      Forbidden                forbidden        403   the key may not do this
      NotFound                 not_found        404   missing or not yours, never told apart
      Conflict                 conflict         409   someone wrote first; read again
      OverBudget               over_budget      422   what may not be cut does not fit
      RequestInProgress        idempotency_in_progress
                                                409   the same Idempotency-Key is in use; retry_after is set
      TimedOut                 timeout          503   it took too long; ask for less
        Cancelled              cancelled        503   the client has gone, and nobody reads this
      ModelError               model            502   embedder or model failed; memory still works without it
        ModelRefused           model            502   it answers, but not to this text
      StoreError               store            503   the driver's error is __cause__
        StoreBusy              store_busy       503   retry_after is set
          StoreTimeout         store_busy       503   a read took longer than its caller allows
        StoreAway              store            503   it cannot be reached; retry_after is set
        ReadOnly               store            503   it can be read, but not written
          DiskFull             store            503   until somebody frees some space
        SchemaMismatch         schema           500   the message says which command mends it

A message is a sentence for the person who can act on it. It never holds a secret or somebody else's text.
"""

from __future__ import annotations


class RecollectError(Exception):
    """The root: catch this to catch everything recollect raises on purpose."""

    code = "error"


class Invalid(RecollectError):
    """The input cannot be accepted as it is."""

    code = "invalid"


class SecretRejected(Invalid):
    """The text appears to contain a credential, so nothing was stored."""

    code = "secret_rejected"


class Unauthorized(RecollectError):
    """No valid key was given."""

    code = "unauthorized"


class Forbidden(RecollectError):
    """The key is valid but does not allow this."""

    code = "forbidden"


class NotFound(RecollectError):
    """There is no such thing, or it belongs to somebody else: the two answer alike."""

    code = "not_found"


class Conflict(RecollectError):
    """Someone else wrote first."""

    code = "conflict"


class OverBudget(RecollectError):
    """What may never be cut does not fit the budget."""

    code = "over_budget"


class RequestInProgress(RecollectError):
    """Another request with the same Idempotency-Key is at work; the same call may be answered after `retry_after`."""

    code = "idempotency_in_progress"
    retry_after = 1.0

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key is being worked on; send it again in a moment.")


class TimedOut(RecollectError):
    """The request took longer than it may."""

    code = "timeout"


class Cancelled(TimedOut):
    """Nobody waits for the answer any more."""

    code = "cancelled"


class ModelError(RecollectError):
    """An embedder or a language model failed."""

    code = "model"


class ModelRefused(ModelError):
    """An embedder or a language model refused this text; others it may take."""


class StoreError(RecollectError):
    """The database failed. Where `retry_after` is set, the same call may succeed after so many seconds."""

    code = "store"
    retry_after: float | None = None


class StoreBusy(StoreError):
    """The database is busy; the same call may succeed after `retry_after` seconds."""

    code = "store_busy"

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreTimeout(StoreBusy):
    """A read took longer than its caller allows (see `recollect.deadline.limit_reads`)."""


class StoreAway(StoreError):
    """The database cannot be reached, so nothing was done; it is asked again every moment."""

    retry_after = 1.0


class ReadOnly(StoreError):
    """The database lets itself be read, but not written."""


class DiskFull(ReadOnly):
    """There is no room left to write to."""


class SchemaMismatch(StoreError):
    """The database and this program do not belong together."""

    code = "schema"
