"""`/docs`: a reference of every route, rendered from the OpenAPI document.

The framework's own page loads scripts from the internet, which may not be reachable; this one is self-contained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, PackageLoader

from recollect.model import Json
from recollect.server.http.routing import PUBLIC, Router

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"

PLACES: Mapping[str, str] = {
    "rest": "/api",
    "reference": "/docs",
    "openapi": "/openapi.json",
    "mcp": "/mcp",
    "console": "/admin",
    "health": "/health",
}

router = Router(include_in_schema=False, is_json=False)
_PAGES = Environment(loader=PackageLoader("recollect.server"), autoescape=True, trim_blocks=True, lstrip_blocks=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDoc:
    """One parameter, or one field of a body."""

    name: str
    place: str  # path, query, body or answer
    type: str
    is_required: bool
    default: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One route."""

    id: str
    group: str
    method: str
    path: str
    description: str
    fields: Sequence[FieldDoc]
    status: str
    answer: Sequence[FieldDoc]


class ReferencePage:
    """The page and its document, made once: both are public and each takes half a second."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    @cached_property
    def page(self) -> str:
        """HTML."""
        document = self._app.openapi()
        return _PAGES.get_template("reference.html").render(about=document["info"], operations=[*operations(document)])

    @cached_property
    def document(self) -> bytes:
        """JSON."""
        return json.dumps(self._app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()


@router.get("/docs", scope=PUBLIC)
def get_docs(request: Request) -> HTMLResponse:
    """Return every route on one page."""
    page = request.app.state.reference.page
    return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


@router.get("/openapi.json", scope=PUBLIC)
def get_document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(request.app.state.reference.document, media_type="application/json")


@router.get("/", scope=PUBLIC)
@router.get("/api", scope=PUBLIC)
async def get_root(request: Request) -> Response:
    """Return the service description; browsers are sent to the console."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/admin", 303)
    return JSONResponse({"name": request.app.title, **PLACES})


def operations(document: Json) -> Iterator[Operation]:
    """Yield the routes of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            status, answer = next(iter(operation["responses"].items()))
            yield Operation(
                id=operation["operationId"],
                group=next(iter(operation.get("tags", [])), ""),
                method=method.upper(),
                path=path,
                description=operation.get("description", operation["summary"]),
                fields=[*_parameters(document, operation), *_body(document, operation.get("requestBody", {}))],
                status=status,
                answer=[*_body(document, answer, place="answer")],
            )


def _parameters(document: Json, operation: Json) -> Iterator[FieldDoc]:
    for each in operation.get("parameters", []):
        schema = {"description": each.get("description", ""), **each["schema"]}
        yield _field(document, each["name"], each["in"], schema, is_required=each.get("required", False))


def _body(document: Json, described: Json, *, place: str = "body") -> Iterator[FieldDoc]:
    schema = described.get("content", {}).get("application/json", {}).get("schema", {})
    yield from _properties(document, schema, place)


def _properties(document: Json, schema: Json, place: str, prefix: str = "") -> Iterator[FieldDoc]:
    """Yield the fields of an object, each followed by its own fields."""
    schema = _resolved(document, schema)
    for name, each in schema.get("properties", {}).items():
        is_required = name in schema.get("required", [])
        yield _field(document, f"{prefix}{name}", place, each, is_required=is_required)
        is_list = each.get("type") == "array"
        yield from _properties(document, each["items"] if is_list else each, place, f"{prefix}{name}{'[]' * is_list}.")


def _field(document: Json, name: str, place: str, schema: Json, *, is_required: bool) -> FieldDoc:
    return FieldDoc(
        name=name,
        place=place,
        type=_type(document, schema),
        is_required=is_required,
        default="" if schema.get("default") in (None, "", []) else json.dumps(schema["default"]),
        description=schema.get("description", ""),
    )


def _type(document: Json, schema: Json) -> str:
    """
    >>> _type({}, {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    'list of string or null'
    """
    schema = _resolved(document, schema)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_type(document, each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(document, schema['items'])}"
    return f"{schema.get('type', '')} {_bounds(schema)}".strip()


def _bounds(schema: Mapping[str, Any]) -> str:
    if schema.get("format"):
        return f"({schema['format']})"
    if "maxLength" in schema:
        return f"(at most {schema['maxLength']:,} characters)"
    return f"({schema['minimum']} to {schema['maximum']})" if "maximum" in schema else ""


def _resolved(document: Json, schema: Json) -> Json:
    """Return the schema a reference points to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema
