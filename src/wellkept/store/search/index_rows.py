"""Rows of an index in memory: parallel columns, and the filter of a search."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellkept.model import Match
from wellkept.store.search.encoding import Floats, multiply

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
    """Columns with spare capacity: only the first `count` entries are valid, and those never change.

    Whole numbers take as few bytes as the largest of them needs, and ends of which none is a time two bytes.
    """

    count: int
    seqs: NDArray[np.signedinteger]
    versions: NDArray[np.signedinteger]
    groups: NDArray[np.signedinteger]  # indexes into group_names
    group_names: tuple[str, ...]
    expiries: NDArray[np.floating]
    lengths: Floats
    embedded: NDArray[np.bool_]
    matrix: NDArray[np.int8]  # vectors; see `store.search.encoding`
    scales: Floats
    sessions: NDArray[np.signedinteger]  # hash of the session; 0 if none
    speakers: NDArray[np.int8]
    since: NDArray[np.signedinteger]

    @classmethod
    def empty(cls, dimensions: int) -> IndexRows:
        return cls(
            count=0,
            seqs=np.empty(0, np.int8),
            versions=np.empty(0, np.int8),
            groups=np.empty(0, np.int8),
            group_names=(),
            expiries=np.empty(0, np.float16),
            lengths=np.empty(0, np.float32),
            embedded=np.empty(0, np.bool_),
            matrix=np.empty((0, dimensions), np.int8),
            scales=np.empty(0, np.float32),
            sessions=np.empty(0, np.int8),
            speakers=np.empty(0, np.int8),
            since=np.empty(0, np.int8),
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
        names = tuple(dict.fromkeys([*self.group_names, *groups]))
        number_of = {name: number for number, name in enumerate(names)}
        numbers = np.fromiter(map(number_of.__getitem__, groups), np.int16, len(groups))
        added = {"groups": numbers, **new}
        added |= {name: narrow_numbers(added[name]) for name in _NARROWED}
        grown = {name: _append(getattr(self, name), self.count, values) for name, values in added.items()}
        count = self.count + len(added["groups"])
        return IndexRows(count=count, group_names=names, **grown)  # type: ignore[arg-type]

    def keep_only(self, stays: NDArray[np.bool_]) -> IndexRows:
        kept = {name: getattr(self, name)[: self.count][stays] for name in _COLUMNS}
        return IndexRows(count=int(np.count_nonzero(stays)), group_names=self.group_names, **kept)

    def match_filter(self, row_filter: RowFilter) -> NDArray[np.bool_]:
        """Return a mask of the rows that pass the filter."""
        # Without times among the ends, two bytes hold them but not the time of a search.
        now = row_filter.now if self.expiries.dtype == np.float64 else 0.0
        allowed: NDArray[np.bool_] = self.expiries[: self.count] > now
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


_NARROWED = ("seqs", "versions", "groups", "expiries", "sessions", "since")
_COLUMNS = tuple(column.name for column in fields(IndexRows) if column.name not in ("count", "group_names"))


def narrow_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the smallest type that holds all of them exactly."""
    if not len(values):
        return values
    if values.dtype.kind == "f":
        return values if np.isfinite(values).any() else values.astype(np.float16)
    low, high = int(values.min()), int(values.max())
    for each in (np.int8, np.int16, np.int32):
        if np.iinfo(each).min <= low and high <= np.iinfo(each).max:
            return values.astype(each, copy=False)
    return values


def _append(column: NDArray[np.generic], count: int, values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Write `values` after the first `count` entries of `column`, in place or in a copy with a quarter to spare."""
    if not len(column):
        return values
    needed = count + len(values)
    dtype = np.promote_types(column.dtype, values.dtype)
    if needed > len(column) or dtype != column.dtype:
        room = max(len(column), needed + needed // 4)
        larger = np.empty((room, *column.shape[1:]), dtype)
        larger[:count] = column[:count]
        column = larger
    column[count:needed] = values
    return column
