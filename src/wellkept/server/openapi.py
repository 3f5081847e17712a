"""The OpenAPI document: what the framework derives from the routes, completed by scopes, errors, tags and examples.

`examples.json` holds requests in an order in which they can be sent, with the answers; tests send them. The document
shows the first of each route, and `tools/reference.py` writes all of them to docs/reference/rest.md.

`/docs` shows it with search and try-out, by the vendored OpenAPI Explorer. Everything comes from this server. The
script of the viewer runs under a policy that allows no other script, no inline script and no connection elsewhere; only
its styles are inline.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute

from wellkept.model import Json, KeyScope
from wellkept.server.http.idempotency import PARAMETER
from wellkept.server.http.routing import PUBLIC, Router

EXAMPLES = Path(__file__).with_name("examples.json")
JSON_TYPE = "application/json"
SERVERS = [{"url": "/", "description": "This server"}]
SCHEME: Json = {"type": "http", "scheme": "bearer", "description": "A key created with wellkept admin keys create."}

TAGS: Mapping[str, str] = {
    "health": "State of the server, and metrics for Prometheus.",
    "agents": "Agents and their settings. An agent is created by its first memory.",
    "memories": "Notes, core memories, journal entries and episodes: store, list, search, recall and explain them.",
    "items": "JSON values by namespace and key, searched like memories.",
    "conversations": "Sessions and their turns.",
    "details": "Long texts that prompts refer to by key.",
    "working memory": "The prompt of the next model call, within a token budget, and what earlier prompts showed.",
    "audit": "The tenant's audit log, whose events are chained by hashes.",
    "upkeep": "Maintenance of the store, and secrets in what is stored.",
    "erasure": "Erase a person, a text or an agent everywhere, with a receipt.",
    "knowledge": "Documents that all agents of a tenant may search, the whiteboard, and skills.",
    "keys": "API keys of the tenant.",
    "workflows": "Workflows and their steps.",
    "changes": "What add, turns and consolidation did to several memories or propose: applied, rejected, undone.",
    "reference agent": "Run an agent with memory and tools.",
    "transfer": "Export and import of a tenant.",
}

ERRORS: Mapping[int, tuple[str, str, str]] = {
    400: ("A value is not acceptable, or seems to hold a secret.", "invalid", "Content cannot be blank"),
    401: ("No valid key.", "unauthorized", "This key is unknown, revoked or expired."),
    403: ("The key does not allow this.", "forbidden", "This key is limited to the agents atlas."),
    404: ("Missing, or not yours.", "not_found", "There is no memory m-7."),
    409: ("Someone wrote first, or it exists already.", "conflict", "There is an agent atlas already."),
    413: ("The body is over the limit.", "too_large", "A body has at most 8 MiB."),
    422: ("A field or parameter has the wrong type.", "unprocessable", "limit should be a whole number."),
    429: ("Too many requests; see `Retry-After`.", "rate_limited", "Too many requests; try again in 1 s."),
    503: ("The store or the server is busy; see `Retry-After`.", "store_busy", "The database is busy; try again."),
}
"""By status: its meaning, the code of an example, and its sentence."""

OTHER_ERROR: Json = {
    "description": "The request was refused or failed; the sentence says why.",
    "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
}


def complete_document(app: FastAPI, scopes: Mapping[str, KeyScope | None], *, no_auth: bool) -> None:
    """Let `app.openapi` return the completed document."""
    written, lock = app.openapi, Lock()

    def openapi() -> Json:
        # Otherwise a second thread could return the document before it is complete.
        with lock:
            if app.openapi_schema is None:
                _complete(written(), scopes, no_auth=no_auth)
            return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: Json, scopes: Mapping[str, KeyScope | None], *, no_auth: bool) -> None:
    components = document["components"]
    components["responses"] = {f"Error{status}": _describe_error(status) for status in ERRORS}
    if not no_auth:
        components["securitySchemes"] = {"key": SCHEME}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            if method == "post":
                operation.setdefault("parameters", []).append(PARAMETER)
            scope = scopes.get(name, KeyScope.ADMIN)
            operation["x-scope"] = "none" if scope is None else scope.value
            if scope is None:
                needed = "Needs no key."
            elif no_auth:
                needed = f"Needs no key here. Scope on a server with keys: `{scope.value}`."
            else:
                needed = f"Scope of the key: `{scope.value}`."
            operation["description"] = f"{operation.get('description', operation['summary'])}\n\n{needed}"
            if not no_auth:
                operation["security"] = [] if scope is None else [{"key": []}]
            for status in _list_errors(method, path, operation, has_key=scope is not None and not no_auth):
                operation["responses"].setdefault(str(status), {"$ref": f"#/components/responses/Error{status}"})
            # Also where the answer itself is not JSON.
            operation["responses"]["default"] = OTHER_ERROR
            _add_example(operation, name)


def _list_errors(method: str, path: str, operation: Json, *, has_key: bool) -> Iterator[int]:
    """Yield the statuses of the errors that a route can answer with."""
    yield 400
    if has_key:
        yield from (401, 403)
    if "{" in path:
        yield 404
    if method != "get":
        yield 409
    if "requestBody" in operation:
        yield 413
    if operation.get("parameters") or "requestBody" in operation:
        yield 422
    yield from (429, 503)


def _describe_error(status: int) -> Json:
    description, code, sentence = ERRORS[status]
    example = {"ok": False, "error": sentence, "code": code}
    schema = {"$ref": "#/components/schemas/ErrorBody"}
    return {"description": f"{description}", "content": {JSON_TYPE: {"schema": schema, "example": example}}}


def _add_example(operation: Json, route: str) -> None:
    """Add the first example of the route, and of its answer, where these are JSON."""
    example: Json = next((each for each in load_examples() if each["route"] == route), {})
    answer: Json = next(iter(operation["responses"].values()))
    for part, content in (("body", operation.get("requestBody", {})), ("answer", answer)):
        media = content.get("content", {}).get(JSON_TYPE)
        if media is not None and part in example:
            media["example"] = example[part]


@cache
def load_examples() -> Sequence[Json]:
    """Return requests and their answers, in an order in which they can be sent."""
    examples: Sequence[Json] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
VIEWER = Path(__file__).with_name("viewer")
CACHE_CONTROL = "public, max-age=86400"

PLACES: Mapping[str, str] = {
    "rest": "/api",
    "reference": "/docs",
    "openapi": "/openapi.json",
    "mcp": "/mcp",
    "console": "/admin",
    "health": "/health",
}

router = Router(include_in_schema=False, route_class=APIRoute)


@cache
def _read_viewer(name: str) -> tuple[bytes, str]:
    """Return a file of the viewer, and its ETag."""
    content = (VIEWER / name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'


@router.get("/docs", scope=PUBLIC)
def get_docs() -> HTMLResponse:
    """Return the page of the reference."""
    return HTMLResponse(_read_viewer("index.html")[0], headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


@router.get("/docs/viewer.js", scope=PUBLIC)
def get_viewer(request: Request) -> Response:
    """Return the script of the page; 304 if the client has it."""
    script, tag = _read_viewer("openapi-explorer.js")
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(script, media_type="text/javascript", headers=headers)


@router.get("/openapi.json", scope=PUBLIC)
def get_document(request: Request) -> Response:
    """Return the OpenAPI document."""
    app = request.app
    if not hasattr(app.state, "document"):
        app.state.document = JSONResponse(app.openapi()).body
    return Response(app.state.document, media_type="application/json")


@router.get("/", scope=PUBLIC)
@router.get("/api", scope=PUBLIC)
async def get_root(request: Request) -> Response:
    """Return the service description; browsers are sent to the console."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/admin", 303)
    return JSONResponse({"name": request.app.title, **PLACES})
