"""Columns of an index in memory for filters: the values of a field of all rows.

A filter names few fields, but with other values each time. So a column is read once, when a filter first names its
field, and compared as an array. Later only the rows that were added to the index are read. A row never changes: an edit
hides it and adds another one. Rows keep their places as long as the index is not compacted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from wellkept.memory.rules_conditions import (
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
from wellkept.model import State
from wellkept.store.engine import Row
from wellkept.store.search.index_rows import IndexRows
from wellkept.store.tables.rows import TAG_BORDER, moment

MAX_COLUMNS = 32
"""Columns that an index keeps, more than one filter can name; the least recently read are dropped."""

MAX_COLUMN_BYTES = 32 * 1024 * 1024
"""Size above which a column is not kept but read for each search. Metadata may hold long texts."""

FIRST_LARGE = 2**53
"""Numbers from here on are kept as they are, because a float has no place for all of their digits."""

ENTRY_BYTES = 100
"""Approximate size of an entry in a dictionary of texts, without the text."""

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
OTHER = object()
"""Value of a list or an object: it exists, but equals nothing."""

Mask = NDArray[np.bool_]
LoadField = Callable[[Comparison, Sequence[int]], Iterable[Row]]
"""Function that reads number, version in the index and value of a field of some memories."""

_NO_ROWS, _NO_NUMBERS = np.empty(0, np.int32), np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """Values of one field, as pairs of a row and a value: none for a row without one, several for tags and lists."""

    count: int = 0  # number of rows it covers
    rows: NDArray[np.int32] = field(default_factory=_NO_ROWS.copy)
    codes: NDArray[np.int32] = field(default_factory=_NO_ROWS.copy)  # values of `names`
    names: Mapping[object, int] = field(default_factory=dict)  # codes of all but small numbers
    number_rows: NDArray[np.int32] = field(default_factory=_NO_ROWS.copy)
    numbers: NDArray[np.float64] = field(default_factory=_NO_NUMBERS.copy)  # times in microseconds
    name_bytes: int = 0
    sorted_names: dict[bool, tuple[NDArray[np.int32], NDArray[np.object_]]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        arrays = (self.rows, self.codes, self.number_rows, self.numbers)
        return self.name_bytes + sum(int(each.nbytes) for each in arrays)

    def extend(self, count: int, pairs: Iterable[tuple[int, object]]) -> FieldColumn:
        """Return a column that covers `count` rows, with more pairs of a row and a value."""
        names, name_bytes = dict(self.names), self.name_bytes
        rows, codes, number_rows, numbers = list[int](), list[int](), list[int](), list[float]()
        for row, value in pairs:
            if _is_number(value) and abs(value) < FIRST_LARGE:
                number_rows.append(row)
                numbers.append(float(value))
                continue
            if value not in names:
                names[value] = len(names)
                name_bytes += ENTRY_BYTES + sys.getsizeof(value)
            rows.append(row)
            codes.append(names[value])
        return FieldColumn(
            count=count,
            rows=np.append(self.rows, np.array(rows, np.int32)),
            codes=np.append(self.codes, np.array(codes, np.int32)),
            names=names,
            number_rows=np.append(self.number_rows, np.array(number_rows, np.int32)),
            numbers=np.append(self.numbers, np.array(numbers, np.float64)),
            name_bytes=name_bytes,
        )

    def match(self, op: str, value: Scalar) -> Mask:
        """Return a mask of the rows whose values pass a comparison."""
        mask = np.zeros(self.count, np.bool_)
        if op == EXISTS:
            mask[self.rows] = mask[self.number_rows] = True
            return mask
        compared = _count_microseconds(value) if isinstance(value, datetime) else value
        is_number = _is_number(compared)
        if is_number:
            passes = self.numbers == compared if op == EQUAL else ORDERINGS[op](self.numbers, compared)
            mask[self.number_rows[passes]] = True
        if op != EQUAL:
            codes, values = self._sort_out(is_number)
            passes = np.zeros(len(self.names), np.bool_)
            passes[codes] = ORDERINGS[op](values, compared)
            mask[self.rows[passes[self.codes]]] = True
        elif not _is_number(compared) or abs(compared) >= FIRST_LARGE:
            # In a dictionary, 1 would be true.
            mask[self.rows[self.codes == self.names.get(compared, -1)]] = True
        return mask

    def _sort_out(self, is_number: bool) -> tuple[NDArray[np.int32], NDArray[np.object_]]:
        """Return the texts or the large numbers among the names, and their codes; they are kept."""
        if is_number not in self.sorted_names:
            is_wanted = _is_number if is_number else _is_text
            named = {code: name for name, code in self.names.items() if is_wanted(name)}
            found = np.array(list(named), np.int32), np.array(list(named.values()), np.object_)
            self.sorted_names[is_number] = found
        return self.sorted_names[is_number]


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


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _count_microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND
