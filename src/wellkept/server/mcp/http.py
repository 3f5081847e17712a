"""MCP over HTTP: `POST /mcp`, behind the same middlewares as every other route.

No session is kept: each request is self-contained, so any server of a group may answer it. The key determines the
tenant and the scope; the address names the agent and the sets of tools, `/mcp?agent=atlas&sets=memory,journal`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import jsonrpc_message_adapter
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from wellkept.access.rules_keys import is_allowed
from wellkept.api.wellkept import Wellkept
from wellkept.errors import Invalid, Unauthorized
from wellkept.model import KeyScope
from wellkept.server.http.auth import NO_KEY, Access
from wellkept.server.http.limits import MAX_BODY_BYTES
from wellkept.server.http.routing import replay
from wellkept.server.mcp.client import ClientContext, select_sets
from wellkept.server.mcp.protocol import Context, build_server_for
from wellkept.server.threads import SMALL_BODY

AGENT_HEADER = "X-Wellkept-Agent"
SESSION_HEADER = "X-Wellkept-Session"


class McpEndpoint:
    """The route. It answers while `running`; the server waits for running calls before that ends."""

    def __init__(self, wellkept: Wellkept) -> None:
        """Raises: Invalid when the settings name a set of tools that does not exist."""
        self._wellkept = wellkept
        self._sets = select_sets(wellkept.settings.tool_sets)
        self._server = build_server_for(_client_of)
        self._manager: StreamableHTTPSessionManager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the session manager."""
        self._manager = StreamableHTTPSessionManager(
            self._server, stateless=True, json_response=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: Invalid, Unauthorized, Forbidden; HTTPException for a body that is too long or too slow."""
        request = Request(scope, receive)
        scope["state"]["client"] = self._client(request)
        try:
            # Read here, so that errors are answered in the same shape as everywhere.
            body = await request.body()
        except ClientDisconnect:
            # There is no client left to answer.
            return
        if len(body) > SMALL_BODY:
            await scope["app"].state.reader.run(partial(_check_message, body))
        await self._manager.handle_request(scope, replay(body, receive), send)

    def _client(self, request: Request) -> ClientContext:
        access: Access | None = request.state.access
        if access is None:
            raise Unauthorized(NO_KEY)
        query = request.query_params
        default = access.caller.default_agent(self._wellkept.settings.agent)
        agent = query.get("agent") or request.headers.get(AGENT_HEADER) or default
        return ClientContext(
            memory=self._wellkept.tenant(access.tenant).agent(agent),
            sets=_parse_sets(query["sets"]) if "sets" in query else self._sets,
            may_write=is_allowed(access.scope, KeyScope.WRITE),
            session_id=query.get("session") or request.headers.get(SESSION_HEADER),
        )


def _parse_sets(sets: str) -> Sequence[str]:
    """Raises: Invalid."""
    return select_sets([name.strip() for name in sets.split(",") if name.strip()])


def _client_of(context: Context) -> ClientContext:
    request: Any = context.request
    client: ClientContext = request.scope["state"]["client"]
    return client


def _check_message(body: bytes) -> None:
    """Refuse an invalid message briefly; the SDK would repeat all of it in its explanation. Raises: Invalid."""
    try:
        jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
    except ValueError:
        raise Invalid("The body is not a JSON-RPC message; send one JSON object with jsonrpc and method.") from None
