"""Memory for AI agents: keep what matters, find it again in milliseconds, fit it into the next prompt.

from wellkept import Wellkept

atlas = Wellkept().agent("atlas")
atlas.remember("Prefers tabs over spaces", tags=["preference"])
atlas.recall("which indentation?")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wellkept.errors import (
    Conflict,
    DiskFull,
    Forbidden,
    Invalid,
    ModelError,
    NotFound,
    OverBudget,
    ReadOnly,
    SchemaMismatch,
    SecretRejected,
    StoreAway,
    StoreBusy,
    StoreError,
    Unauthorized,
    WellkeptError,
)

if TYPE_CHECKING:
    from wellkept.api.aio import AsyncWellkept
    from wellkept.api.wellkept import Wellkept
    from wellkept.caller import acting_as
    from wellkept.client.client import AsyncClient, Client
    from wellkept.details.capturing import captured
    from wellkept.model import Hit, Memory
    from wellkept.settings import Settings

__version__ = "0.3.0"

__all__ = [
    "AsyncClient",
    "AsyncWellkept",
    "Client",
    "Conflict",
    "DiskFull",
    "Forbidden",
    "Hit",
    "Invalid",
    "Memory",
    "ModelError",
    "NotFound",
    "OverBudget",
    "ReadOnly",
    "SchemaMismatch",
    "SecretRejected",
    "Settings",
    "StoreAway",
    "StoreBusy",
    "StoreError",
    "Unauthorized",
    "Wellkept",
    "WellkeptError",
    "acting_as",
    "captured",
]

# Imported on first use, so that importing only an exception or only the async API stays fast.
_MODULES = {
    "AsyncClient": "wellkept.client.client",
    "AsyncWellkept": "wellkept.api.aio",
    "Client": "wellkept.client.client",
    "Hit": "wellkept.model",
    "Memory": "wellkept.model",
    "Wellkept": "wellkept.api.wellkept",
    "Settings": "wellkept.settings",
    "acting_as": "wellkept.caller",
    "captured": "wellkept.details.capturing",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    if name not in _MODULES:
        raise AttributeError(f"module 'wellkept' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
