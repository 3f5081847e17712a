"""All exceptions of wellkept, as one tree.

    WellkeptError             code             HTTP
      Invalid                  invalid          400   fix the input; the message says how
        SecretRejected         secret_rejected  400   the text holds a credential
      Unauthorized             unauthorized     401   no key, or not a valid one
      Forbidden                forbidden        403   the key may not do this
      NotFound                 not_found        404   missing or not yours; the answer is the same
      Conflict                 conflict         409   someone wrote first; read again
      OverBudget               over_budget      422   the parts that cannot be cut do not fit
      RequestInProgress        idempotency_in_progress
                                                409   the same Idempotency-Key is in use; retry_after is set
      TimedOut                 timeout          503   it took too long; ask for less
        Cancelled              cancelled        503   the client disconnected
      ModelError               model            502   embedder or model failed; memory still works without it
        ModelRefused           model            502   it answers, but refuses this text
      StoreError               store            503   the driver's error is __cause__
        StoreBusy              store_busy       503   retry_after is set
          StoreTimeout         store_busy       503   a read took longer than its caller allows
        StoreAway              store            503   it cannot be reached; retry_after is set
        ReadOnly               store            503   it can be read but not written
          DiskFull             store            503   until space is freed
        SchemaMismatch         schema           500   the message names the command that fixes it

A message is a sentence for the person who can act on it. It never contains a secret or another user's text.
"""

from __future__ import annotations

HOW_TO_GO_ON = (
    "Leave it out; or store the text without it (setting secrets=redact, --secrets redact); or, if it is none, allow "
    "it (wellkept admin secrets allow, POST /api/secrets/allow)."
)
"""Advice for a person whose text was refused."""


class WellkeptError(Exception):
    """Base class: catch it to catch everything wellkept raises on purpose."""

    code = "error"
    item: int | None = None
    """Position of the refused item in a call that takes several, from 0."""
    request_id: str = ""
    """Id of the request in the server's log, for errors that a client received."""


class Invalid(WellkeptError):
    """The input cannot be accepted; the message says what to change."""

    code = "invalid"


class SecretRejected(Invalid):
    """The text appears to contain a credential, so nothing was stored.

    `sentence` says so in a few words, for a model; the message adds how a person can go on.
    """

    code = "secret_rejected"

    def __init__(self, sentence: str, *, rule: str = "") -> None:
        matched = f" It matches the rule {rule}." if rule else ""
        super().__init__(f"{sentence}.{matched} {HOW_TO_GO_ON}")
        self.sentence = sentence
        self.rule = rule


class Unauthorized(WellkeptError):
    """No valid key was given."""

    code = "unauthorized"


class Forbidden(WellkeptError):
    """The key is valid but does not allow this."""

    code = "forbidden"


class NotFound(WellkeptError):
    """The record does not exist or belongs to another owner; both answer alike."""

    code = "not_found"


class Conflict(WellkeptError):
    """Someone else wrote first."""

    code = "conflict"


class OverBudget(WellkeptError):
    """The parts of a prompt that may not be cut exceed the budget."""

    code = "over_budget"


class RequestInProgress(WellkeptError):
    """Another request with the same Idempotency-Key is running; retry after `retry_after` seconds."""

    code = "idempotency_in_progress"
    retry_after = 1.0

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key is being worked on; send it again in a moment.")


class TimedOut(WellkeptError):
    """The request exceeded its deadline."""

    code = "timeout"


class Cancelled(TimedOut):
    """The client no longer waits for the answer."""

    code = "cancelled"


class ModelError(WellkeptError):
    """An embedder or a language model failed."""

    code = "model"


class ModelRefused(ModelError):
    """An embedder or a language model refused this text; it may accept others."""


class StoreError(WellkeptError):
    """The database failed. If `retry_after` is set, retry the call after that many seconds."""

    code = "store"
    retry_after: float | None = None


class StoreBusy(StoreError):
    """The database is busy; retry the call after `retry_after` seconds."""

    code = "store_busy"

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreTimeout(StoreBusy):
    """A read took longer than its caller allows (see `wellkept.deadline.limit_reads`)."""


class StoreAway(StoreError):
    """The database cannot be reached, so nothing was done. Reconnecting is attempted continuously."""

    retry_after = 1.0


class StoreDamaged(StoreError):
    """The database, or a part of it, cannot be read because its content is damaged."""


class ReadOnly(StoreError):
    """The database can be read but not written."""


class DiskFull(ReadOnly):
    """The disk is full."""


class SchemaMismatch(StoreError):
    """The schema of the database does not match this version of wellkept."""

    code = "schema"


ERROR_DETAILS = ("item", "rule", "sentence")
ERROR_HEADER = "X-Wellkept-Error"
"""Header of an answer over HTTP with these attributes of its error, as JSON."""


def error_class(code: str) -> type[WellkeptError] | None:
    """Return the class that a code names; of several, the most general.

    >>> error_class("store"), error_class("tea")
    (<class 'wellkept.errors.StoreError'>, None)
    """
    classes = [WellkeptError]
    # Breadth first: a class comes after those it derives from.
    for each in classes:
        if each.code == code:
            return each
        classes += each.__subclasses__()
    return None
