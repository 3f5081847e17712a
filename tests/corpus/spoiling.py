"""The bad forms of a good request: every key, odd ids in its address, and odd values in each parameter and field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from tests.corpus.asking import REQUEST

Document = Mapping[str, Any]

BEFORE = ("nobody", "wrong", "other", "read")
"""Those who ask before the request is made in earnest, as what it is about may be gone afterwards."""

AFTER = ("bound", "write", "operator")

SECRET = "AKIAIOSFODNN7EXAMPLQ"
TEXTS: list[Any] = ["", " ", "a\x00b", "\ud800", "<a*20000>", SECRET, "nothing", 7, None, ["a"]]
TIMES: list[Any] = [
    "noon",
    "2026-01-31T12:00:00",
    "2026-02-31T12:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "2030-01-01T00:00:00Z",
    "",
]
NUMBERS: list[Any] = [-1, 0, 1.5, 10**6, 2**63, "1", True, None]
TRUTHS: list[Any] = ["true", 1, None, []]
LISTS: list[Any] = ["a", 7, None, {}, [7], [""], ["a"] * 30, ["<a*300>"], [{}]]
OBJECTS: list[Any] = ["a", 7, None, [], {"a": SECRET}, {"a": "<a*9000>"}, {"": 1}, {"a": 2**70}]
RAW_NUMBERS = ("NaN", "1e999")
IDS = ("nothing", "m-999", "a%20b", "%00", "%ED%A0%80", "<a*300>", "..%2F..", "%2A")
QUERIES = {
    "integer": ("ten", "-1", "0", "1.5", "501", "99999999999999999999", ""),
    "number": ("ten", "-1", "nan", "inf", ""),
    "boolean": ("maybe", "1", "TRUE", ""),
    "string": ("", "%20", "%00", "%ED%A0%80", "<a*300>", "nothing", "noon", "2026-01-31T12:00:00", "%25", "a.b"),
}


def operation_of(document: Document, method: str, path: str) -> tuple[str, Mapping[str, Any]]:
    """Return the route of an address, and what the OpenAPI document says of it (nothing of an unknown one)."""
    for template, operations in sorted(document["paths"].items(), key=lambda each: each[0].count("{")):
        if method.lower() in operations and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return template, operations[method.lower()]
    return path, {}


def keys_before(asked: str) -> Iterator[str]:
    return (f"{who} {asked.partition(' ')[2]}" for who in BEFORE)


def keys_after(asked: str) -> Iterator[str]:
    return (f"{who} {asked.partition(' ')[2]}" for who in AFTER)


def spoiled(document: Document, asked: str) -> Iterator[str]:
    """Return the bad forms of a request."""
    parts = REQUEST.fullmatch(asked)
    assert parts is not None, asked
    who, method, target, headers, body = parts.groups()
    path, _, query = target.partition("?")
    route, operation = operation_of(document, method, path)
    tail = f"{headers}" + (f" {body}" if body is not None else "")
    for each in _paths(route, path):
        yield f"{who} {method} {each}{'?' + query if query else ''}{tail}"
    for each in _queries(operation, query):
        yield f"{who} {method} {path}?{each}{tail}"
    for other in ("PUT", "PATCH", "DELETE", "POST"):
        if operation and other.lower() not in document["paths"].get(route, {}):
            yield f"{who} {other} {target}"
            break
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        if method != "GET" and body is None:
            yield f'{who} {method} {target} {{"nothing": 1}}'
        return
    for each in _bodies(document, schema, json.loads(body or "{}")):
        yield f"{who} {method} {target}{headers} {each}"
    yield f"{who} {method} {target}{headers}"
    yield f"{who} {method} {target} [Content-Type: text/plain] {body}"
    yield f"{who} {method} {target} [Content-Type: application/x-www-form-urlencoded] text=a"


def _paths(route: str, path: str) -> Iterator[str]:
    names, parts = route.split("/"), path.split("/")
    for place, name in enumerate(names):
        if name.startswith("{"):
            for id in IDS:
                yield "/".join([*parts[:place], id, *parts[place + 1 :]])


def _queries(operation: Mapping[str, Any], query: str) -> Iterator[str]:
    base = parse_qsl(query, keep_blank_values=True)
    start = f"{query}&" if query else ""
    yield f"{start}nothing=1"
    for each in operation.get("parameters", ()):
        if each["in"] != "query":
            continue
        name, kinds = each["name"], _kinds(each["schema"])
        others = "&".join(f"{key}={quote(value, safe='<>*.')}" for key, value in base if key != name)
        start = f"{others}&" if others else ""
        if others != query:
            yield others
        yield f"{start}{near(name)}=1"
        yield f"{start}{name}=1&{name}=2"
        for value in QUERIES[next((kind for kind in ("integer", "number", "boolean") if kind in kinds), "string")]:
            yield f"{start}{name}={value}"


def _bodies(document: Document, schema: Mapping[str, Any], good: Mapping[str, Any]) -> Iterator[str]:
    """Return what is no object at all, then bodies with one field that is wrong."""
    schema = resolved(document, schema)
    yield from ("[]", "null", "7", '"a"', "{", "{}", '{"a": 1', "\\xff", "[[[[[[[[[[")
    yield dumped({**good, "nothing": 1})
    for name in good:
        yield dumped({key: value for key, value in good.items() if key != name})
    for name, field in schema.get("properties", {}).items():
        near_name = near(name)
        yield dumped({**good, near_name: 1})
        first = dumped(good.get(name, "a"))
        others = "".join(f", {dumped(key)}: {dumped(value)}" for key, value in good.items() if key != name)
        yield f"{{{dumped(name)}: {first}, {dumped(name)}: {first}{others}}}"
        for value in values_of(document, field):
            yield dumped({**good, name: value})
        for raw in RAW_NUMBERS:
            yield f"{{{dumped(name)}: {raw}{others}}}"


def values_of(document: Document, field: Mapping[str, Any]) -> Iterator[Any]:
    """Return odd values for a field, and of a list of objects odd values for each field of these."""
    field = resolved(document, field)
    kinds = _kinds(field)
    found: list[Any] = []
    if "string" in kinds:
        found += TEXTS
        if "date-time" in json.dumps(field) or "time" in str(field.get("description", "")).lower().split():
            found += TIMES
    if kinds & {"integer", "number"}:
        found += NUMBERS
    if "boolean" in kinds:
        found += TRUTHS
    if "array" in kinds:
        found += LISTS
        items: Mapping[str, Any] = next((each["items"] for each in _choices(field) if "items" in each), {})
        inner = resolved(document, items)
        for name, each in inner.get("properties", {}).items():
            base = {"text": "a"} if "text" in inner["properties"] else {}
            found += [[{**base, name: value}] for value in values_of(document, each)]
            found.append([{**base, near(name): 1}])
    if "object" in kinds or not kinds:
        found += OBJECTS
    seen = set[str]()
    for value in found:
        if (text := dumped(value)) not in seen:
            seen.add(text)
            yield value


def resolved(document: Document, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema itself instead of a reference to it."""
    if "$ref" in schema:
        return resolved(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return {**schema, "anyOf": [resolved(document, each) for each in schema["anyOf"]]}
    return schema


def _choices(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return schema.get("anyOf", (schema,))


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    return {each["type"] for each in _choices(schema) if "type" in each}


def near(name: str) -> str:
    """Return a slip of a name."""
    return name[:-1] if len(name) > 3 else f"{name}s"


def dumped(value: Any) -> str:
    return json.dumps(value)
