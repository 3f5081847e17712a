"""Filters: their parser, their syntax tree, the fields of each record, and their evaluation in Python.

A filter is text or JSON: `tags = food and (metadata.stars >= 4 or not exists metadata.stars)`. Both make the same tree
of `Comparison`, `And`, `Or` and `Not`. `!=` is a negated `=`, and `in` several `=` joined by `or`. A comparison is
typed: a text never equals a number. It is false for a missing value, and true for a list if it is for one of its
elements. An error names the place of the mistake.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from math import isfinite
from typing import Annotated, Any, NoReturn, TypeAlias, TypedDict

from wellkept.errors import Invalid
from wellkept.language.text import check_text, fold
from wellkept.memory.rules_kinds import check_choice, check_moment, check_name
from wellkept.model import Kind, Origin, OriginName, Scope, ScopeName, State

Scalar: TypeAlias = str | int | float | bool | datetime | None
METADATA = "metadata"
FACT = "fact"
JSON_FIELDS = frozenset({METADATA, FACT})
"""Fields with keys of their own."""
STATE = "state"
EQUAL, EXISTS = "=", "exists"
ORDERINGS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FieldType(Enum):
    """Type of the values of a field."""

    TEXT = "text"
    TAGS = "tags"
    NUMBER = "number"
    TIME = "time"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class FilterField:
    """Field that a filter may name."""

    type: FieldType
    choices: tuple[str, ...] = ()  # its values, if there are only a few


Fields: TypeAlias = Mapping[str, FilterField]
_TEXT, _NUMBER, _TIME = (FilterField(each) for each in (FieldType.TEXT, FieldType.NUMBER, FieldType.TIME))
_METADATA = FilterField(FieldType.JSON)

MEMORY_FIELDS: Fields = {
    "kind": FilterField(FieldType.TEXT, tuple(Kind)),
    "tags": FilterField(FieldType.TAGS),
    "scope": FilterField(FieldType.TEXT, tuple(Scope)),
    "session_id": _TEXT,
    "user": _TEXT,
    "origin": FilterField(FieldType.TEXT, tuple(Origin)),
    "category": _TEXT,
    "importance": _NUMBER,
    "created_at": _TIME,
    "expires_at": _TIME,
    STATE: FilterField(FieldType.TEXT, tuple(State)),
    "namespace": _TEXT,
    "item_key": _TEXT,
    METADATA: _METADATA,
    FACT: _METADATA,
}
DOCUMENT_FIELDS: Fields = {
    "title": _TEXT,
    "category": _TEXT,
    "source": _TEXT,
    "created_at": _TIME,
    "updated_at": _TIME,
    METADATA: _METADATA,
}
EVENT_FIELDS: Fields = {"action": _TEXT, "agent": _TEXT, "actor": _TEXT, "at": _TIME}
SESSION_FIELDS: Fields = {"user": _TEXT, "created_at": _TIME, "updated_at": _TIME, METADATA: _METADATA}
ALIASES: Mapping[str, str] = {
    "tag": "tags",
    "created": "created_at",
    "expires": "expires_at",
    "updated": "updated_at",
    "session": "session_id",
    "user_id": "user",
    "key": "item_key",
    "value": METADATA,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a field with a value; `exists` has none."""

    field: str
    op: str
    value: Scalar = None
    path: tuple[str, ...] = ()  # keys below `metadata`


@dataclass(frozen=True, slots=True)
class And:
    """Conditions that must all hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Conditions of which one must hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Condition that must not hold."""

    part: Condition


Condition: TypeAlias = Comparison | And | Or | Not


def join_conditions(*conditions: Condition | None) -> Condition | None:
    """Return a condition that holds if all of the given ones do; None stands for no condition."""
    parts = tuple(each for each in conditions if each is not None)
    return parts[0] if len(parts) == 1 else And(parts) if parts else None


def list_comparisons(condition: Condition | None) -> Iterator[Comparison]:
    """Yield all comparisons of a condition."""
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, Not):
        yield from list_comparisons(condition.part)
    elif condition is not None:
        for part in condition.parts:
            yield from list_comparisons(part)


def names_field(condition: Condition | None, field: str) -> bool:
    """Return True if a condition compares the field."""
    return any(each.field == field for each in list_comparisons(condition))


def is_matching(condition: Condition | None, record: Any, now: datetime) -> bool:
    """Return True if a record, such as a memory, meets the condition at `now`."""
    match condition:
        case None:
            return True
        case And(parts):
            return all(is_matching(part, record, now) for part in parts)
        case Or(parts):
            return any(is_matching(part, record, now) for part in parts)
        case Not(part):
            return not is_matching(part, record, now)
    return any(is_passing(found, condition.op, condition.value) for found in _list_values(condition, record, now))


def _list_values(comparison: Comparison, record: Any, now: datetime) -> Iterator[object]:
    """Yield the values of the compared field of a record: none if it is missing, several for tags and lists."""
    if comparison.field == METADATA:
        yield from list_json_values(find_at(record.metadata, comparison.path))
    elif comparison.field == FACT:
        if record.fact is not None:
            yield from list_json_values(find_at(asdict(record.fact), comparison.path))
    elif comparison.field == "tags":
        yield from map(fold, record.tags)
    elif comparison.field == STATE:
        yield record.state(now).value
    elif (value := getattr(record, comparison.field)) is not None:
        yield value


MISSING = object()


def find_at(value: object, path: tuple[str, ...]) -> object:
    """Return the value at a path of keys, or `MISSING`."""
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = value[key]
    return value


def list_json_values(value: object) -> Iterator[object]:
    """Yield a value itself and, of a list, its elements; nothing if it is missing."""
    if value is not MISSING:
        yield value
    if isinstance(value, list):
        yield from value


def is_passing(found: object, op: str, value: Scalar) -> bool:
    """Return True if a value of a record passes a comparison with `value`."""
    if op == EXISTS:
        return True
    if found is None or value is None or isinstance(found, bool) or isinstance(value, bool):
        return op == EQUAL and found is value
    for types in (str, (int, float), datetime):
        if isinstance(found, types) and isinstance(value, types):
            return bool(found == value if op == EQUAL else ORDERINGS[op](found, value))
    return False


Where: TypeAlias = Annotated[
    str | Mapping[str, Any] | Condition | None, 'a filter such as "tags = food" (docs/filters.md)'
]
"""Filter as text or JSON, as docs/filters.md describes it; None and "" filter nothing."""

MAX_CHARS = 8_000
MAX_DEPTH = 32
MAX_COMPARISONS = 200
MAX_KEYS = 16
"""Different keys of metadata in one filter: each has to be read from every record."""

MAX_NUMBER = 2**63
MAX_NAMED_CHARS = 24
"""Longest word that an error quotes: a longer one is no typo, and errors end up in logs."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign><=|>=|!=|=|<|>|\(|\)|,)
    |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<field>(?:metadata|value|fact)(?:\.(?:[^\s.()=<>!,'"]+|'(?:[^']|'')*'|"(?:[^"]|"")*"))+(?=[\s()=<>!,]|$))
    |(?P<word>[^\s()=<>!,'"]+))""",
    re.VERBOSE | re.IGNORECASE,
)
_KEY = re.compile(r"""\.(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^.'"]+))""")
_NUMERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS: Mapping[str, Scalar] = {"true": True, "false": False, "null": None}
_KEYWORDS = frozenset({"and", "or", "not", "in", EXISTS})
_SIGNS = (EQUAL, "!=", *ORDERINGS)
_OPERATORS = ", ".join((*_SIGNS, "in", EXISTS, "and", "or", "not"))


def parse_filter(filter: object, fields: Fields = MEMORY_FIELDS) -> Condition | None:
    """Parse a filter: a text, the JSON form as a text or a mapping, or a condition. None and "" filter nothing.

    Raises: Invalid, with the place of the mistake.
    """
    condition = _parse(render_filter(filter) if isinstance(filter, Comparison | And | Or | Not) else filter, fields)
    comparisons = list(list_comparisons(condition))
    if len(comparisons) > MAX_COMPARISONS:
        raise Invalid(f"A filter compares at most {MAX_COMPARISONS} values; this one has more.")
    if len({each.path for each in comparisons if each.path}) > MAX_KEYS:
        raise Invalid(f"A filter names at most {MAX_KEYS} keys of metadata; this one names more.")
    return condition


def _parse(filter: object, fields: Fields) -> Condition | None:
    if filter is None:
        return None
    if isinstance(filter, str):
        text = check_text(filter, what="filter")
        if len(text) > MAX_CHARS:
            raise Invalid(f"A filter has at most {MAX_CHARS:,} characters; this one has {len(text):,}.")
        if not text.strip():
            return None
        if not text.lstrip().startswith("{"):
            return _TextParser(text, fields).parse()
        try:
            filter = json.loads(text)
        except (ValueError, RecursionError) as error:
            place = error.pos + 1 if isinstance(error, json.JSONDecodeError) else 1
            _refuse(f"character {place}", "it begins like JSON but is none")
    if isinstance(filter, Mapping):
        return _parse_json(filter, fields)
    raise Invalid("A filter is a text such as `tags = food`, or a JSON object.")


def _refuse(place: str, problem: str) -> NoReturn:
    raise Invalid(f"The filter is wrong at {place}: {problem}.") from None


def render_filter(condition: Condition) -> dict[str, Any]:
    """Return the JSON form of a condition; `parse_filter` reads it."""
    match condition:
        case And(parts):
            return {"and": [render_filter(part) for part in parts]}
        case Or(parts):
            return {"or": [render_filter(part) for part in parts]}
        case Not(part):
            return {"not": render_filter(part)}
    field = condition.field + "".join(f".{_quote(key)}" for key in condition.path)
    if condition.op == EXISTS:
        return {EXISTS: field}
    value = condition.value
    return {condition.op: [field, value.isoformat() if isinstance(value, datetime) else value]}


def _quote(key: str) -> str:
    return key if re.fullmatch(r"\w+", key) else '"' + key.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # sign, quoted, field, word or end
    text: str
    place: int  # of its first character, counted from 1

    @property
    def keyword(self) -> str:
        word = self.text.lower()
        return word if self.kind == "word" and word in _KEYWORDS else ""

    @property
    def name(self) -> str:
        """Words for an error."""
        if self.kind == "end":
            return "the end"
        return f"`{self.text}`" if len(self.text) <= MAX_NAMED_CHARS else "this"


def _split(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            what = "this quotation mark is never closed" if text[at] in "'\"" else f"unexpected `{text[at]}`"
            _refuse(f"character {at + 1}", what)
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1)
        at = match.end()
    yield _Token("end", "", len(text) + 1)


Field: TypeAlias = tuple[str, tuple[str, ...]]
"""Name of a field and, of metadata, the path of keys."""


def _find_field(text: str, fields: Fields, place: str) -> Field:
    text = check_text(text, what="filter")
    given, dot, _ = text.partition(".")
    name = ALIASES.get(given.lower(), given.lower())
    if name not in fields:
        named = f"`{text}`" if len(text) <= MAX_NAMED_CHARS else "such"
        known = ", ".join(f"{each}.<key>" if each in JSON_FIELDS else each for each in fields)
        _refuse(place, f"there is no field {named}; the fields are {known}")
    if name not in JSON_FIELDS:
        if dot:
            _refuse(place, f"only metadata has keys, not {name}")
        return name, ()
    path, at = list[str](), len(given)
    while match := _KEY.match(text, at):
        single, double, plain = match.groups()
        path.append(plain or (single or "").replace("''", "'") or (double or "").replace('""', '"'))
        at = match.end()
    if not path or at < len(text):
        example = "fact.subject or fact.attribute" if name == FACT else "metadata.city or metadata.'two words'"
        _refuse(place, f"name a key of the {name}, such as {example}")
    return name, tuple(path)


def _compare(field: Field, op: str, value: object, fields: Fields, place: str) -> Condition:
    """Return a checked comparison. A text made of a bare word is a `_Word`."""
    name, path = field
    if isinstance(value, str):
        check_text(value, what="filter")
    if op == EXISTS:
        return Comparison(name, op, path=path)
    type = fields[name].type
    if type in (FieldType.TEXT, FieldType.TAGS) and op in ORDERINGS:
        _refuse(place, f"`{op}` compares numbers, times and metadata; use `=`, `!=` or `in` with {name}")
    checked = _check_value(name, fields[name], value, place)
    if op in ORDERINGS and (checked is None or isinstance(checked, bool)):
        _refuse(place, f"`{op}` needs a number, a text or a time")
    comparison = Comparison(name, EQUAL if op == "!=" else op, checked, path)
    return Not(comparison) if op == "!=" else comparison


def _check_value(name: str, field: FilterField, value: object, place: str) -> Scalar:
    if field.type is FieldType.TIME:
        return _parse_time(value, place)
    if field.type in (FieldType.JSON, FieldType.NUMBER):
        scalar = _check_json(value.read() if isinstance(value, _Word) else value, place)
        if field.type is FieldType.NUMBER and (isinstance(scalar, bool) or not isinstance(scalar, int | float)):
            _refuse(place, f"{name} is a number")
        return scalar
    if not isinstance(value, str):
        _refuse(place, f"{name} is a text; to find records without one, use `not exists {name}`")
    if field.choices and value not in field.choices:
        _refuse(place, f"{name} is one of {', '.join(field.choices)}")
    return fold(value.strip()) if field.type is FieldType.TAGS else str(value)


def _join_any(parts: Sequence[Condition]) -> Condition:
    return Or(tuple(parts)) if len(parts) > 1 else parts[0]


class _Word(str):
    """Value without quotation marks, which may be a number, true, false or null."""

    __slots__ = ()

    def read(self) -> object:
        if self.lower() in _LITERALS:
            return _LITERALS[self.lower()]
        return json.loads(self) if _NUMERAL.fullmatch(self) else str(self)


def _check_json(value: object, place: str) -> Scalar:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, int) and abs(value) < MAX_NUMBER:
        return value
    _refuse(place, "a value is a text, true, false, null or a number of 64 bits")


def _parse_time(value: object, place: str) -> datetime:
    if isinstance(value, datetime):
        moment = value
    else:
        try:
            moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        except ValueError:
            _refuse(place, "a time is written like 2026-10-01 or 2026-10-01T12:00:00Z")
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    # Keep a year to spare at both ends, for time zones.
    if not 1 < moment.year < 9999:
        _refuse(place, "a time lies within the years 2 to 9998")
    return moment.astimezone(UTC)


class _TextParser:
    """Recursive descent: `or` binds weaker than `and`, `and` weaker than `not`."""

    def __init__(self, text: str, fields: Fields) -> None:
        self._tokens = list(_split(text))
        self._at = 0
        self._fields = fields

    def parse(self) -> Condition:
        condition = self._parse_any(0)
        if self._next.kind != "end":
            self._fail(f"expected `and`, `or` or the end instead of {self._next.name}")
        return condition

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _takes(self, text: str) -> bool:
        """Take the next token if it is this keyword or sign."""
        is_next = self._next.keyword == text or (self._next.kind == "sign" and self._next.text == text)
        self._at += is_next
        return is_next

    def _fail(self, problem: str, token: _Token | None = None) -> NoReturn:
        _refuse(f"character {(token or self._next).place}", problem)

    def _parse_any(self, depth: int) -> Condition:
        parts = [self._parse_all(depth)]
        while self._takes("or"):
            parts.append(self._parse_all(depth))
        return _join_any(parts)

    def _parse_all(self, depth: int) -> Condition:
        parts = [self._parse_one(depth)]
        while self._takes("and"):
            parts.append(self._parse_one(depth))
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def _parse_one(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            self._fail(f"a filter is nested at most {MAX_DEPTH} deep; this one is deeper")
        if self._takes("not"):
            return Not(self._parse_one(depth + 1))
        if self._takes("("):
            condition = self._parse_any(depth + 1)
            if not self._takes(")"):
                self._fail(f"expected `and`, `or` or `)` instead of {self._next.name}")
            return condition
        if self._takes(EXISTS):
            return self._compare(self._parse_field(), EXISTS)
        return self._parse_comparison()

    def _parse_field(self) -> Field:
        token = self._next
        if token.kind not in ("word", "field") or token.keyword:
            self._fail(f"expected a field such as `tags` instead of {token.name}")
        field = _find_field(token.text, self._fields, f"character {token.place}")
        self._take()
        return field

    def _parse_comparison(self) -> Condition:
        field = self._parse_field()
        if self._takes(EXISTS):
            return self._compare(field, EXISTS)
        is_negated = self._takes("not")
        if self._takes("in"):
            found = self._parse_list(field)
            return Not(found) if is_negated else found
        sign = self._next
        if is_negated or sign.kind != "sign" or sign.text not in _SIGNS:
            self._fail(f"expected one of {', '.join(_SIGNS)}, in, exists instead of {sign.name}")
        self._take()
        return self._compare(field, sign.text, after=sign)

    def _parse_list(self, field: Field) -> Condition:
        if not self._takes("("):
            self._fail(f"expected `(` after `in` instead of {self._next.name}")
        parts = [self._compare(field, EQUAL)]
        while self._takes(","):
            parts.append(self._compare(field, EQUAL))
        if not self._takes(")"):
            self._fail(f"expected `,` or `)` instead of {self._next.name}")
        return _join_any(parts)

    def _compare(self, field: Field, op: str, *, after: _Token | None = None) -> Condition:
        token, value = self._next, None
        if op != EXISTS:
            if token.kind in ("sign", "end") or token.keyword:
                behind = "" if after is None else f" after `{after.text}`"
                self._fail(f"expected a value{behind} instead of {token.name}")
            self._take()
            mark = token.text[0]
            value = token.text[1:-1].replace(mark * 2, mark) if token.kind == "quoted" else _Word(token.text)
        return _compare(field, op, value, self._fields, f"character {token.place}")


def _parse_json(value: object, fields: Fields, place: str = "", depth: int = 0) -> Condition:
    """Parse the JSON form: `{"and": [{"=": ["tags", "food"]}, {"exists": "metadata.city"}]}`."""
    here = place or "the top"
    if depth > MAX_DEPTH:
        _refuse(here, f"a filter is nested at most {MAX_DEPTH} deep; this one is deeper")
    if not isinstance(value, Mapping) or len(value) != 1:
        _refuse(here, f"expected an object with one of {_OPERATORS}")
    ((op, given),) = value.items()
    inner = f"{place}.{op}" if place else str(op)
    if op == "not":
        return Not(_parse_json(given, fields, inner, depth + 1))
    if op in ("and", "or"):
        if not isinstance(given, list) or not given:
            _refuse(here, f"`{op}` needs a list of conditions")
        parts = tuple(_parse_json(part, fields, f"{inner}[{i}]", depth + 1) for i, part in enumerate(given))
        return And(parts) if op == "and" and len(parts) > 1 else _join_any(parts)
    if op == EXISTS:
        given = [given, None] if isinstance(given, str) else [*given, None] if isinstance(given, list) else given
    elif op not in (*_SIGNS, "in"):
        _refuse(here, f"there is no operator {str(op)[:MAX_NAMED_CHARS]!r}; use {_OPERATORS}")
    if not isinstance(given, list) or len(given) != 2 or not isinstance(given[0], str):
        needs = "a field" if op == EXISTS else "a field and a value"
        _refuse(here, f'`{op}` needs {needs}, such as ["metadata.city", "Oslo"]')
    field = _find_field(given[0], fields, here)
    if op != "in":
        return _compare(field, op, given[1], fields, here)
    if not isinstance(given[1], list) or not given[1]:
        _refuse(here, '`in` needs a field and a list of values, such as ["tags", ["food", "drink"]]')
    return _join_any([_compare(field, EQUAL, each, fields, here) for each in given[1]])


NOT_ITEMS = Not(Comparison("kind", EQUAL, Kind.ITEM.value))


class KnowledgeOptions(TypedDict, total=False):
    """Options of a search for passages."""

    categories: Collection[str]  # empty: all
    where: Where  # only passages of documents that pass this filter
    limit: int
    min_relevance: float | None  # least score of each passage


class MemoryFilters(TypedDict, total=False):
    """Filters of memories; a memory has to pass all of them."""

    where: Where
    tag: str  # a whole tag, ignoring case
    session_id: str | None
    scope: ScopeName | None
    origin: OriginName | None
    since: datetime | None  # written then or later
    until: datetime | None  # written before then


def check_filters(
    *,
    where: Where = None,
    tag: str = "",
    session_id: str | None = None,
    scope: str | None = None,
    origin: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Condition | None:
    """Return the condition that a memory meets if it passes all filters. Raises: Invalid."""
    folded = fold(tag.strip())
    named: list[tuple[str, str, Scalar]] = [
        ("tags", EQUAL, folded or None),
        ("session_id", EQUAL, check_name(session_id, "session_id")),
        ("scope", EQUAL, _check_choice(Scope, scope)),
        ("origin", EQUAL, _check_choice(Origin, origin)),
        ("created_at", ">=", None if since is None else check_moment(since, "since")),
        ("created_at", "<", None if until is None else check_moment(until, "until")),
    ]
    return join_conditions(parse_filter(where), *(Comparison(*each) for each in named if each[2] is not None))


def leave_out_items(where: Condition | None, kind: Kind | None) -> Condition | None:
    """Return the condition with which a listing leaves items out, unless it asks for a kind."""
    is_of_kind = kind is not None or names_field(where, "kind")
    return where if is_of_kind else join_conditions(NOT_ITEMS, where)


def _check_choice(choices: type[StrEnum], value: str | None) -> str | None:
    return None if value is None else check_choice(choices, value, next(iter(choices))).value
