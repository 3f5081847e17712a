"""Memory for AI agents: keep what matters, find it again in milliseconds, fit it into the next prompt.

from recollect import Recollect

atlas = Recollect().agent("atlas")
atlas.remember("Prefers tabs over spaces", tags=["preference"])
atlas.recall("which indentation?")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.errors import (
    Conflict,
    Forbidden,
    Invalid,
    ModelError,
    NotFound,
    OverBudget,
    RecollectError,
    SchemaMismatch,
    SecretRejected,
    StoreBusy,
    StoreError,
    Unauthorized,
)

if TYPE_CHECKING:
    from recollect.aio import AsyncRecollect
    from recollect.api import Recollect
    from recollect.capturing import capture_calls, captured
    from recollect.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AsyncRecollect",
    "Conflict",
    "Forbidden",
    "Invalid",
    "ModelError",
    "NotFound",
    "OverBudget",
    "Recollect",
    "RecollectError",
    "SchemaMismatch",
    "SecretRejected",
    "Settings",
    "StoreBusy",
    "StoreError",
    "Unauthorized",
    "capture_calls",
    "captured",
]

# Imported on first use: whoever wants only an exception, or only the async face, does not wait for the rest.
_HOMES = {
    "AsyncRecollect": "recollect.aio",
    "Recollect": "recollect.api",
    "Settings": "recollect.settings",
    "capture_calls": "recollect.capturing",
    "captured": "recollect.capturing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
