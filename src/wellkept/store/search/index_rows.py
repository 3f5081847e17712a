"""Rows of an index in memory: parallel columns, and the filter of a search.

Columns of an index in memory for filters: the values of a field of all rows.

A filter names few fields, but with other values each time. So a column is read once, when a filter first names its
field, and compared as an array. Later only the rows that were added to the index are read. A row never changes: an edit
hides it and adds another one. Rows keep their places as long as the index is not compacted.
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellkept.memory.rules_filters import (
    EQUAL,
    EXISTS,
    JSON_FIELDS,
    ORDERINGS,
    STATE,
    And,
    Comparison,
    Condition,
    Not,
    Or,
    Scalar,
    list_json_values,
)
from wellkept.model import Match, State
from wellkept.store.engine import IndexQuery, Row
from wellkept.store.search.encoding import Floats, multiply
from wellkept.store.tables.rows import TAG_BORDER, moment

NEVER = np.inf
HIDDEN = -np.inf
"""Time before all others. A row that expires then is hidden; a search at that time finds all other rows."""


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

    def match_filter(self, query: IndexQuery) -> NDArray[np.bool_]:
        """Return a mask of the rows that pass the filter."""
        # Without times among the ends, two bytes hold them but not the time of a search.
        now = query.now if self.expiries.dtype == np.float64 else 0.0
        allowed: NDArray[np.bool_] = self.expiries[: self.count] > now
        if query.until is not None:
            allowed &= self.since[: self.count] <= query.until
        if query.groups:
            numbers = [number for number, name in enumerate(self.group_names) if name in query.groups]
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


MAX_COLUMNS = 32
"""Columns that an index keeps, more than one filter can name; the least recently read are dropped."""

MAX_COLUMN_BYTES = 32 * 1024 * 1024
"""Size above which a column is not kept but read for each search. Metadata may hold long texts."""

PAIR_BYTES = 8 + 4 + 1
"""Size of a row, a value's place and its kind."""

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
OTHER = object()
"""Value of a list or an object: it exists, but equals nothing."""

Mask = NDArray[np.bool_]
LoadField = Callable[[Comparison, Sequence[int]], Iterable[Row]]
"""Function that reads number, version in the index and value of a field of some memories."""


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """Values of one field, as pairs of a row and a value: none for a row without one, several for tags and lists."""

    count: int = 0  # number of rows it covers
    rows: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    values: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))
    kinds: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))  # of the values
    nbytes: int = 0

    def extend(self, count: int, pairs: Iterable[tuple[int, object]]) -> FieldColumn:
        """Return a column that covers `count` rows, with more pairs of a row and a value."""
        rows, kinds, values = list[int](), list[int](), list[object]()
        # Equal texts are kept once.
        known = dict[tuple[int, object], object]()
        for row, value in pairs:
            kind = _find_kind(value)
            rows.append(row)
            kinds.append(kind)
            values.append(known.setdefault((kind, value), value))
        added = np.empty(len(values), np.object_)
        added[:] = values
        return FieldColumn(
            count,
            np.append(self.rows, np.array(rows, np.int32)),
            np.append(self.values, added),
            np.append(self.kinds, np.array(kinds, np.int8)),
            self.nbytes + PAIR_BYTES * len(values) + sum(map(sys.getsizeof, known.values())),
        )

    def match(self, op: str, value: Scalar) -> Mask:
        """Return a mask of the rows whose values pass a comparison."""
        mask = np.zeros(self.count, np.bool_)
        if op == EXISTS:
            mask[self.rows] = True
            return mask
        compared = _count_microseconds(value) if isinstance(value, datetime) else value
        # A number is neither more nor less than a text, and 1 is not true.
        is_alike = self.kinds == _find_kind(compared)
        compare = operator.eq if op == EQUAL else ORDERINGS[op]
        passes = np.asarray(compare(self.values[is_alike], compared), np.bool_)
        mask[self.rows[is_alike][passes]] = True
        return mask


class FieldColumns:
    """Columns of one index. Threads may match at the same time; then a column may be read twice."""

    def __init__(self) -> None:
        self.held: Mapping[tuple[str, tuple[str, ...]], FieldColumn] = {}

    def match(self, condition: Condition, rows: IndexRows, load: LoadField) -> Mask:
        """Return a mask of the rows that meet a condition."""
        match condition:
            case And(parts) | Or(parts):
                join = np.logical_and if isinstance(condition, And) else np.logical_or
                masks: list[Mask] = [self.match(part, rows, load) for part in parts]
                return np.asarray(join.reduce(masks), np.bool_)
            case Not(part):
                return ~self.match(part, rows, load)
        if condition.field == STATE:
            # A search finds only live memories.
            return np.full(rows.count, condition.op == EXISTS or condition.value == State.LIVE)
        return self._current(condition, rows, load).match(condition.op, condition.value)[: rows.count]

    def _current(self, comparison: Comparison, rows: IndexRows, load: LoadField) -> FieldColumn:
        """Return the column of a field, with the rows that were added since it was read."""
        key = (comparison.field, comparison.path)
        column = self.held.get(key, FieldColumn())
        if column.count >= rows.count:
            return column
        new = np.flatnonzero(rows.is_kept[column.count :]) + column.count
        found = {row[0]: row[1:] for row in load(comparison, rows.seqs[new].tolist())}
        pairs, is_current = list[tuple[int, object]](), True
        for at, seq, version in zip(new.tolist(), rows.seqs[new].tolist(), rows.versions[new].tolist(), strict=True):
            found_version, value = found.get(seq, (None, None))
            is_current = is_current and found_version == version
            pairs += [(at, each) for each in _list_values(comparison.field, value)]
        column = column.extend(rows.count, pairs)
        if is_current and column.nbytes <= MAX_COLUMN_BYTES:
            # Otherwise the index is ahead of this transaction or behind it, and another one reads these rows again.
            others = [(name, each) for name, each in self.held.items() if name != key]
            self.held = dict([*others[-MAX_COLUMNS + 1 :], (key, column)])
        return column


def _list_values(field: str, stored: object) -> Iterator[object]:
    """Yield the values of a field as the database returns it."""
    if stored is None or stored == "":
        return
    if field in JSON_FIELDS:
        for value in list_json_values(json.loads(str(stored))):
            yield OTHER if isinstance(value, list | dict) else value
    elif field == "tags":
        yield from filter(None, str(stored).split(TAG_BORDER))
    elif field.endswith("_at"):
        assert isinstance(stored, str | datetime)
        yield _count_microseconds(moment(stored))
    else:
        yield stored


def _find_kind(value: object) -> int:
    """Return a number for values that can be compared with each other."""
    return 2 if isinstance(value, bool) else 1 if isinstance(value, int | float) else 3 if isinstance(value, str) else 0


def _count_microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND
