"""The route `POST /mcp` of the server, with or without the extra `mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from starlette.types import Receive, Scope, Send

from wellkept.api.wellkept import Wellkept
from wellkept.program import advise_install
from wellkept.server.http.errors import error_response
from wellkept.server.http.routing import READ, Route

PATH = "/mcp"
ROUTE = Route("POST", PATH, READ)
"""READ is enough to connect; tools that write require more."""

NOT_INSTALLED = f"This server has no MCP endpoint: on its machine, {advise_install('mcp')}"


class McpRoute(Protocol):
    """ASGI application that answers while `running`."""

    def running(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class MissingMcpRoute:
    """McpRoute of a server without the extra: it answers 501 with what to install."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await error_response(501, NOT_INSTALLED)(scope, receive, send)


def has_mcp() -> bool:
    """Return True if the packages of the extra `mcp` are installed."""
    return find_spec("mcp") is not None


def create_endpoint(wellkept: Wellkept) -> McpRoute:
    """Return the endpoint for `/mcp`.

    Raises: Invalid when the settings name a set of tools that does not exist.
    """
    if not has_mcp():
        return MissingMcpRoute()
    endpoint: McpRoute = import_module("wellkept.server.mcp.http").McpEndpoint(wellkept)
    return endpoint
