"""Errors, all in one shape: `{"ok": false, "error": "<a sentence>", "code": "<a stable word>"}`.

Errors of the library get the HTTP status of their `code`. Refusals of the framework (an invalid body, an unknown path)
are put into the same shape.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from wellkept.errors import (
    ERROR_DETAILS,
    ERROR_HEADER,
    Cancelled,
    RequestInProgress,
    StoreError,
    WellkeptError,
    error_class,
)

log = logging.getLogger("wellkept.server")

STATUS: Mapping[str, int] = {
    "error": 500,
    "invalid": 400,
    "secret_rejected": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "idempotency_in_progress": 409,
    "over_budget": 422,
    "timeout": 503,
    "cancelled": 503,
    "model": 502,
    "store": 503,
    "store_busy": 503,
    "schema": 500,
}
"""HTTP status of each `WellkeptError.code`."""

CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}
"""Header of every answer 401."""

HTTP_CODES: Mapping[int, str] = {
    400: "invalid",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "unprocessable",
    429: "rate_limited",
    500: "internal",
    503: "overloaded",
}
"""Code of a refusal that has only an HTTP status."""

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "tuple_type": "a valid list",
    "dict_type": "a JSON object",
}
"""Descriptions of types, by pydantic's error type."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MAX_PROBLEMS = 3
EXPECTED = (WellkeptError, RequestValidationError, HTTPException, ClientDisconnect)
NOT_JSON = "The body cannot be read; send valid JSON in UTF-8."


def error_response(
    status: int,
    sentence: str,
    code: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    also: Mapping[str, object] | None = None,
) -> JSONResponse:
    """Return the answer for an error; lone surrogates in the sentence become escapes."""
    sentence = sentence.encode(errors="backslashreplace").decode()
    content = {"ok": False, "error": sentence, "code": code or HTTP_CODES.get(status, "error"), **(also or {})}
    return JSONResponse(content, status, headers=dict(headers or {}))


def add_error_handlers(app: FastAPI) -> None:
    """Make `app` answer every expected error in our shape."""

    async def handle(request: Request, error: Exception) -> JSONResponse:
        return answer_error(request, error)

    for each in EXPECTED:
        app.add_exception_handler(each, handle)


def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Return the answer for an error of `EXPECTED`."""
    if isinstance(error, WellkeptError):
        return refusal(request, error)
    if isinstance(error, RequestValidationError):
        return _validation_refusal(error)
    if isinstance(error, HTTPException):
        return _http_refusal(request, error)
    # The client is gone: the metrics count it, and no traceback fills the log.
    return error_response(400, "The client left before its request was whole.")


def refusal(request: Request, error: WellkeptError) -> JSONResponse:
    """Return the answer for an error of the library, and log it if it is the server's fault."""
    status = STATUS.get(error.code, 500)
    # A client that left is not a failure.
    if status >= 500 and not isinstance(error, Cancelled):
        log.error("%s %s failed (%s): %s", request.method, request.url.path, request.state.request_id, error)
    headers = CHALLENGE if status == 401 else {}
    if isinstance(error, StoreError | RequestInProgress) and error.retry_after is not None:
        headers = {"Retry-After": str(math.ceil(error.retry_after))}
    return error_response(status, str(error), error.code, headers={**headers, **_describe_error(error)})


def _describe_error(error: WellkeptError) -> Mapping[str, str]:
    """Return the header for clients that rebuild the exception: its class if the code names another, its attributes."""
    kind = type(error)
    named: dict[str, object] = {} if kind is error_class(error.code) else {"type": kind.__name__}
    named |= {name: value for name in ERROR_DETAILS if (value := getattr(error, name, None)) not in (None, "")}
    return {ERROR_HEADER: json.dumps(named)} if named else {}


def _validation_refusal(error: RequestValidationError) -> JSONResponse:
    """Return the answer for an invalid body or invalid parameters, with the first few problems."""
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        place, reason = problems[0]["loc"][-1], problems[0]["ctx"]["error"]
        return error_response(400, f"The body is not valid JSON (at character {place}: {reason}).")
    return error_response(422, describe_problems(problems))


def describe_problems(problems: Sequence[Any]) -> str:
    """Describe the first problems that pydantic found, as `located` returns them."""
    return " ".join(dict.fromkeys(_describe_problem(each) for each in problems[:MAX_PROBLEMS]))


def located(error: ValidationError, *, place: str = "body") -> list[Any]:
    """Return the first problems with their place (body or query), as the framework reports them."""
    problems: list[Any] = error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
    for each in problems:
        if each["type"] == "json_invalid":
            each["loc"] = ("body", 0)
        else:
            each["loc"] = (place, *each["loc"])
    return problems


def _describe_problem(problem: Mapping[str, Any]) -> str:
    """Describe one problem that pydantic found."""
    kind, (where, *path) = problem["type"], problem["loc"]
    field = _format_path(path)
    if kind == "unknown_field":
        return str(problem["msg"])
    if not path:
        return "The body must be a JSON object, sent with the header Content-Type: application/json."
    if kind == "missing":
        return f"The {'field' if where == 'body' else 'parameter'} {field} is required."
    if kind == "string_unicode":
        return f"{field} holds half a surrogate pair; send whole ones."
    if kind in TYPES:
        return f"{field} should be {TYPES[kind]}."
    reason = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"{field} {reason[:1].lower()}{reason[1:].rstrip('.')}."


def _format_path(path: Sequence[object]) -> str:
    """Format the location of a field as it is written in code.

    >>> _format_path(["tags", 0]), _format_path(["limit"])
    ('tags[0]', 'limit')
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _http_refusal(request: Request, error: HTTPException) -> JSONResponse:
    """Return the answer for an error with only an HTTP status."""
    method, path = request.method[:20], request.url.path[:200]
    if error.status_code == 404:
        return error_response(404, f"There is nothing at {method} {path}; the routes are listed at /docs.")
    if error.status_code == 405:
        allowed = request.app.state.routes.methods(request.url.path)
        sentence = f"{method} is not possible at {path}; use {' or '.join(allowed)}."
        return error_response(405, sentence, headers={"Allow": ", ".join(allowed)})
    if error.status_code == 400:
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            return error_response(400, f"The form cannot be read. {error.detail}")
        return error_response(400, NOT_JSON)
    return error_response(error.status_code, str(error.detail), headers=error.headers)
