"""`/docs`: a reference of every route with search and try-out, shown by the vendored OpenAPI Explorer.

Everything comes from this server. The viewer's script runs under a policy that allows no other script, no inline script
and no connection elsewhere; only its styles are inline.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute

from wellkept.server.http.routing import PUBLIC, Router

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


class ReferencePage:
    """The page, its script and its document, made once: all are public."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    @cached_property
    def page(self) -> str:
        """HTML."""
        return (VIEWER / "index.html").read_text(encoding="utf-8")

    @cached_property
    def script(self) -> tuple[bytes, str]:
        """JavaScript of the viewer, and its ETag."""
        script = (VIEWER / "openapi-explorer.js").read_bytes()
        return script, f'"{hashlib.sha256(script).hexdigest()[:16]}"'

    @cached_property
    def document(self) -> bytes:
        """JSON."""
        return json.dumps(self._app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()


@router.get("/docs", scope=PUBLIC)
def get_docs(request: Request) -> HTMLResponse:
    """Return the page of the reference."""
    page = request.app.state.reference.page
    return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


@router.get("/docs/viewer.js", scope=PUBLIC)
def get_viewer(request: Request) -> Response:
    """Return the script of the page; 304 if the client has it."""
    script, tag = request.app.state.reference.script
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(script, media_type="text/javascript", headers=headers)


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
