"""Rows of an index in memory: parallel columns, and the filter of a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

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
    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns by name, without their spare capacity."""
        return {name: getattr(self, name)[: self.count] for name in _COLUMNS}

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in _COLUMNS)

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not hidden."""
        return self.expiries[: self.count] > HIDDEN

    def extend(self, *, groups: Sequence[str], **new: NDArray[np.generic]) -> IndexRows:
        """Return a copy with more rows, written into spare capacity if possible. The old value does not change."""
        names = tuple(dict.fromkeys(groups))
        number_of = {name: number for number, name in enumerate(names)}
        numbers = np.fromiter(map(number_of.__getitem__, groups), np.int16, len(groups))
        return self.extend_columns({"groups": numbers, **new}, names)

    def extend_columns(self, columns: Mapping[str, NDArray[np.generic]], group_names: Sequence[str]) -> IndexRows:
        """Do the same with columns, in which groups are indexes into `group_names`."""
        names = (*self.group_names, *(name for name in group_names if name not in self.group_names))
        numbers = np.array([names.index(name) for name in group_names], np.int16)
        added = {**columns, "groups": numbers[columns["groups"].astype(np.intp)]}
        grown = {name: _append(getattr(self, name), self.count, values) for name, values in added.items()}
        count = self.count + len(added["groups"])
        return IndexRows(count=count, group_names=names, **grown)  # type: ignore[arg-type]

    def reserve(self, count: int) -> IndexRows:
        """Return a copy with room for so many rows more."""
        room = {name: _append(getattr(self, name), self.count, getattr(self, name)[:0], count) for name in _COLUMNS}
        return IndexRows(count=self.count, group_names=self.group_names, **room)  # type: ignore[arg-type]

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


def _append(
    column: NDArray[np.generic], count: int, values: NDArray[np.generic], spare: int | None = None
) -> NDArray[np.generic]:
    """Write `values` after the first `count` entries of `column`, in place or in a copy with a quarter to spare."""
    if not len(column) and spare is None:
        return values
    needed = count + len(values)
    if needed + (spare or 0) > len(column):
        larger = np.empty((needed + (needed // 4 if spare is None else spare), *column.shape[1:]), column.dtype)
        larger[:count] = column[:count]
        column = larger
    column[count:needed] = values
    return column
