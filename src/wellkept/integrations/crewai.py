"""Storage back end for CrewAI's `Memory`.

CrewAI asks a storage with the vector of a question alone. `embed` therefore passes the text through inside the vector,
and wellkept ranks the records itself, by words and meaning. Needs the package `crewai`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import update_wrapper
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo

from wellkept.errors import Invalid
from wellkept.integrations.plans import OwnItems, run_plan
from wellkept.model import Item, Json, Origin

NAMESPACE = "crewai"
MARK = 1_000.0
MARKS = 256


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors that hold the texts themselves, for `Memory(embedder=embed)`.

    CrewAI drops texts of a batch with like vectors. The signs in front, the bits of a hash, make vectors of different
    texts point in different directions.
    """
    vectors = []
    for text in texts:
        data = text.encode("utf-8", "replace")
        bits = int.from_bytes(hashlib.sha256(data).digest())
        vectors.append([MARK if bits >> bit & 1 else -MARK for bit in range(MARKS)] + [float(byte) for byte in data])
    return vectors


def _find_text(vector: Sequence[float]) -> str:
    """Return the text in a vector. Raises: Invalid."""
    if len(vector) <= MARKS or any(abs(each) != MARK for each in vector[:MARKS]):
        raise Invalid("This vector is not from wellkept; create the memory with Memory(storage=…, embedder=embed).")
    return bytes(int(each) for each in vector[MARKS:]).decode()


def _run_in_thread(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(self: WellkeptStorage, *args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, self, *args, **options)

    return update_wrapper(call, method)


class WellkeptStorage:
    """Storage of CrewAI's records as items of an agent's memory, or of that of one of its users (`for_user`)."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._items = OwnItems(memory)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records. Raises: Invalid, SecretRejected."""
        drafts: list[Json] = [
            {
                "namespace": _locate(record.scope),
                "key": record.id,
                "value": {**record.model_dump(mode="json"), "utc": _format_time(record.created_at)},
                "index": ["content"],
                "origin": Origin.AGENT,
            }
            for record in records
        ]
        run_plan(self._memory, self._items.put(drafts))

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the best records for a question, each with its score. Raises: Invalid."""
        where, query = _make_conditions(categories, metadata_filter), _find_text(query_embedding)
        search = self._items.search(_locate(scope_prefix), query, where=where, limit=limit)
        found = ((_make(each), each.score or 0.0) for each in run_plan(self._memory, search))
        return [(record, score) for record, score in found if score >= min_score]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet all conditions; return their number."""
        where = _make_conditions(categories, metadata_filter)
        if older_than is not None:
            where.append({"<": ["value.utc", _format_time(older_than)]})
        found = self._list(scope_prefix, where)
        gone = [each for each in found if record_ids is None or each.key in record_ids]
        run_plan(self._memory, self._items.delete(gone))
        return len(gone)

    asave, asearch, adelete = _run_in_thread(save), _run_in_thread(search), _run_in_thread(delete)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        former = self._list(where=[{"=": ["key", record.id]}])
        self.save([record])
        moved = [each for each in former if each.namespace != _locate(record.scope)]
        run_plan(self._memory, self._items.delete(moved))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record, if there is one."""
        return next(map(_make, self._list(where=[{"=": ["key", record_id]}])), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """List records, newest first."""
        return [_make(each) for each in self._list(scope_prefix)[offset : offset + limit]]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Describe the records of a scope and all below it."""
        times = [record.created_at for record in map(_make, self._list(scope))]
        return ScopeInfo(
            path=scope.rstrip("/") or "/",
            record_count=len(times),
            categories=list(self.list_categories(scope)),
            oldest_record=times[-1] if times else None,
            newest_record=times[0] if times else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """List the scopes directly below one."""
        depth = len(_locate(parent)) + 1
        return sorted(
            {"/" + "/".join(each.namespace[1:depth]) for each in self._list(parent) if each.namespace[depth - 1 :]}
        )

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of each category."""
        names = Counter(name for each in self._list(scope_prefix) for name in each.value["categories"])
        return dict(sorted(names.items()))

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope and all below it."""
        return len(self._list(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope and all below it."""
        self.delete(scope_prefix)

    def _list(self, scope: str | None = None, where: Sequence[Json] = ()) -> list[Item]:
        found = run_plan(self._memory, self._items.list(_locate(scope), where=where))
        return sorted(found, key=lambda each: each.value["utc"], reverse=True)


def _make(item: Item) -> MemoryRecord:
    return MemoryRecord.model_validate(item.value)


def _locate(scope: str | None) -> tuple[str, ...]:
    return (NAMESPACE, *(name for name in (scope or "").split("/") if name))


def _make_conditions(categories: Sequence[str] | None, metadata: dict[str, Any] | None) -> list[Json]:
    """Return the filter for records of one of these categories with all of this metadata."""
    quoted = {name.replace("'", "''"): value for name, value in (metadata or {}).items()}
    equal = ({"=": [f"value.metadata.'{name}'", value]} for name, value in quoted.items())
    return [*([{"in": ["value.categories", list(categories)]}] if categories else []), *equal]


def _format_time(time: datetime) -> str:
    """Return a time as text that is in order; CrewAI's times without a zone are UTC."""
    return (time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time).isoformat(timespec="microseconds")
