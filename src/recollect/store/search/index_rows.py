"""Rows of an index in memory: parallel columns, and the filter of a search."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from recollect.model import Match
from recollect.store.search.encoding import Floats, multiply

NEVER = np.inf
ALWAYS = HIDDEN = -np.inf
"""Time before all others. A row that expires then is hidden; as the time of a search it finds all other rows."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filter of rows: in one of the groups (if any), started by `until` and not expired at `now`."""

    groups: Collection[str]
    now: float
    until: float | None = None


@dataclass(frozen=True, slots=True)
class IndexRows:
    """Columns with spare capacity: only the first `count` entries are valid, and those never change."""

    count: int
    seqs: NDArray[np.int64]
    versions: NDArray[np.int64]
    groups: NDArray[np.int16]  # indexes into group_names
    group_names: tuple[str, ...]
    expiries: NDArray[np.float64]
    lengths: Floats
    embedded: NDArray[np.bool_]
    matrix: NDArray[np.int8]  # vectors; see `store.search.encoding`
    scales: Floats
    sessions: NDArray[np.int64]  # hash of the session; 0 if none
    speakers: NDArray[np.int8]
    since: NDArray[np.int64]

    @classmethod
    def empty(cls, dimensions: int) -> IndexRows:
        return cls(
            count=0,
            seqs=np.empty(0, np.int64),
            versions=np.empty(0, np.int64),
            groups=np.empty(0, np.int16),
            group_names=(),
            expiries=np.empty(0, np.float64),
            lengths=np.empty(0, np.float32),
            embedded=np.empty(0, np.bool_),
            matrix=np.empty((0, dimensions), np.int8),
            scales=np.empty(0, np.float32),
            sessions=np.empty(0, np.int64),
            speakers=np.empty(0, np.int8),
            since=np.empty(0, np.int64),
        )

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in _COLUMNS)

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not hidden."""
        return self.expiries[: self.count] > HIDDEN

    def extend(self, *, groups: Sequence[str], **new: NDArray[np.generic]) -> IndexRows:
        """Return a copy with more rows, written into spare capacity if possible. The old value does not change."""
        names = (*self.group_names, *(name for name in dict.fromkeys(groups) if name not in self.group_names))
        number_of = {name: number for number, name in enumerate(names)}
        numbers = np.fromiter(map(number_of.__getitem__, groups), np.int16, len(groups))
        count = self.count + len(groups)
        columns: dict[str, NDArray[np.generic]] = {"groups": numbers, **new}
        grown = {name: _append(getattr(self, name), self.count, values) for name, values in columns.items()}
        return IndexRows(count=count, group_names=names, **grown)  # type: ignore[arg-type]

    def keep_only(self, stays: NDArray[np.bool_]) -> IndexRows:
        kept = {name: getattr(self, name)[: self.count][stays] for name in _COLUMNS}
        return IndexRows(count=int(np.count_nonzero(stays)), group_names=self.group_names, **kept)

    def match_filter(self, row_filter: RowFilter) -> NDArray[np.bool_]:
        """Return a mask of the rows that pass the filter."""
        allowed: NDArray[np.bool_] = self.expiries[: self.count] > row_filter.now
        if row_filter.until is not None:
            allowed &= self.since[: self.count] <= row_filter.until
        if row_filter.groups:
            numbers = [number for number, name in enumerate(self.group_names) if name in row_filter.groups]
            if len(numbers) < len(self.group_names):
                allowed &= np.isin(self.groups[: self.count], numbers)
        return allowed

    def multiply(self, vector: Floats) -> Floats:
        """Return the product of each row's vector with `vector`; 0 for a row without one."""
        return multiply(self.matrix[: self.count], self.scales[: self.count], vector)

    def best(self, scores: Floats, limit: int, *, above: float) -> list[Match]:
        """Return the `limit` best rows, newest first among equals."""
        candidates = np.flatnonzero(scores > above)
        if limit < len(candidates):
            edge = np.partition(scores[candidates], -limit)[-limit]
            candidates = candidates[scores[candidates] >= edge]
        order = candidates[np.lexsort((-self.seqs[candidates], -scores[candidates]))[:limit]]
        return list(map(Match, self.seqs[order].tolist(), scores[order].tolist()))


_COLUMNS = tuple(column.name for column in fields(IndexRows) if column.name not in ("count", "group_names"))


def _append(column: NDArray[np.generic], count: int, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Write `values` after the first `count` entries of `column`, in place or in a copy with a quarter to spare."""
    if not count:
        return values
    needed = count + len(values)
    if needed > len(column):
        larger = np.empty((needed + needed // 4, *column.shape[1:]), column.dtype)
        larger[:count] = column[:count]
        column = larger
    column[count:needed] = values
    return column
