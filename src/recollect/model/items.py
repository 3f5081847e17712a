"""Items: values of the caller under a namespace and a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """JSON value of the caller under a namespace and a key."""

    id: str  # of the memory that holds it, such as "m-7"; a new one after each deletion
    namespace: tuple[str, ...]  # path of names, such as ("users", "7")
    key: str
    value: Any = field(hash=False)
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None  # None: never
    version: int = 1  # incremented by every other value
    user: str | None = None  # end user it belongs to
    score: float | None = None  # relevance to the query of a search, 0 to 1
