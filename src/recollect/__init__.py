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
    DiskFull,
    Forbidden,
    Invalid,
    ModelError,
    NotFound,
    OverBudget,
    ReadOnly,
    RecollectError,
    SchemaMismatch,
    SecretRejected,
    StoreAway,
    StoreBusy,
    StoreError,
    Unauthorized,
)

if TYPE_CHECKING:
    from recollect.api.agent import AgentMemory
    from recollect.api.aio import AsyncAgentMemory, AsyncRecollect, AsyncTenantMemory
    from recollect.api.recollect import Recollect, TenantMemory
    from recollect.caller import acting_as
    from recollect.capturing import capture_calls, captured
    from recollect.client.client import AsyncClient, Client
    from recollect.model import Hit, Kind, Memory, WorkingMemory
    from recollect.settings import Settings

__version__ = "0.2.0"

__all__ = [
    "AgentMemory",
    "AsyncAgentMemory",
    "AsyncClient",
    "AsyncRecollect",
    "AsyncTenantMemory",
    "Client",
    "Conflict",
    "DiskFull",
    "Forbidden",
    "Hit",
    "Invalid",
    "Kind",
    "Memory",
    "ModelError",
    "NotFound",
    "OverBudget",
    "ReadOnly",
    "Recollect",
    "RecollectError",
    "SchemaMismatch",
    "SecretRejected",
    "Settings",
    "StoreAway",
    "StoreBusy",
    "StoreError",
    "TenantMemory",
    "Unauthorized",
    "WorkingMemory",
    "acting_as",
    "capture_calls",
    "captured",
]

# Imported on first use, so that importing only an exception or only the async API stays fast.
_MODULES = {
    "AgentMemory": "recollect.api.agent",
    "AsyncAgentMemory": "recollect.api.aio",
    "AsyncClient": "recollect.client.client",
    "AsyncRecollect": "recollect.api.aio",
    "AsyncTenantMemory": "recollect.api.aio",
    "Client": "recollect.client.client",
    "Hit": "recollect.model",
    "Kind": "recollect.model",
    "Memory": "recollect.model",
    "Recollect": "recollect.api.recollect",
    "Settings": "recollect.settings",
    "TenantMemory": "recollect.api.recollect",
    "WorkingMemory": "recollect.model",
    "acting_as": "recollect.caller",
    "capture_calls": "recollect.capturing",
    "captured": "recollect.capturing",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    if name not in _MODULES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
