"""MCP over HTTP: `POST /mcp`, behind the same doors as every other route.

No session is kept: each request says all there is to know, so any server of a group may answer it. The key names the
tenant and what may be done; the address names the agent and the sets of tools, `/mcp?agent=atlas&sets=notes,recall`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import jsonrpc_message_adapter
from pydantic_core import from_json
from sse_starlette.sse import AppStatus
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from recollect.api.recollect import Recollect
from recollect.errors import Invalid, Unauthorized
from recollect.model import KeyScope
from recollect.policy.keys import allows
from recollect.server.access import NO_KEY, Access
from recollect.server.guard import MAX_BODY_BYTES
from recollect.server.mcp.offer import Offer, existing_sets
from recollect.server.mcp.protocol import Context, server_for
from recollect.server.threads import SMALL_BODY

PATH = "/mcp"
AGENT_HEADER = "X-Recollect-Agent"
JSON, STREAM = "application/json", "text/event-stream"


class McpEndpoint:
    """The route. It answers while `running`; calls at work when that ends have been waited for by the server."""

    def __init__(self, recollect: Recollect) -> None:
        """Raises: Invalid when the settings name a set of tools that does not exist."""
        self._recollect = recollect
        self._sets = existing_sets(recollect.settings.tool_sets)
        self._server = server_for(_noted_offer)
        self._managers: dict[str, StreamableHTTPSessionManager] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be ready to answer."""
        AppStatus.enable_automatic_graceful_drain = False  # it would break off streams whose answer is still to come
        async with AsyncExitStack() as stack:
            for form in (JSON, STREAM):
                manager = StreamableHTTPSessionManager(
                    self._server,
                    stateless=True,
                    json_response=form == JSON,
                    max_request_body_size=MAX_BODY_BYTES,
                )
                await stack.enter_async_context(manager.run())
                self._managers[form] = manager
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: Invalid, Unauthorized, Forbidden; HTTPException for a body that is too long or too slow."""
        request = Request(scope, receive)
        scope["state"]["offer"] = self._offer(request)
        try:
            body = await request.body()  # here, where what is wrong with it is answered as everywhere else
        except ClientDisconnect:
            return  # nobody is left to answer
        if len(body) > SMALL_BODY:
            await scope["app"].state.reader.run(partial(_check_message, body))
        form = preferred(request.headers.get("accept", ""))
        await self._managers[form].handle_request(scope, _again(body, receive), send)

    def _offer(self, request: Request) -> Offer:
        access: Access | None = request.state.access
        if access is None:
            raise Unauthorized(NO_KEY)
        query = request.query_params
        default = access.caller.default_agent(self._recollect.settings.agent)
        agent = query.get("agent") or request.headers.get(AGENT_HEADER) or default
        return Offer(
            memory=self._recollect.tenant(access.tenant).agent(agent),
            sets=_named(query["sets"]) if "sets" in query else self._sets,
            may_write=allows(access.scope, KeyScope.WRITE),
        )


def preferred(accept: str) -> str:
    """The form of an answer: JSON, unless the client likes a stream of events better.

    >>> preferred("application/json, text/event-stream"), preferred("text/event-stream, application/json;q=0.9")
    ('application/json', 'text/event-stream')
    """
    liked = [(-_quality(each), place, each) for place, each in enumerate(accept.lower().split(","))]
    for _, _, each in sorted(liked):
        name = each.partition(";")[0].strip()
        if name in (JSON, STREAM):
            return name
    return JSON


def _quality(accepted: str) -> float:
    _, _, said = accepted.partition("q=")
    try:
        return min(max(float(said.strip()), 0.0), 1.0) if said else 1.0
    except ValueError:
        return 1.0


def _named(sets: str) -> Sequence[str]:
    """Raises: Invalid."""
    return existing_sets([name.strip() for name in sets.split(",") if name.strip()])


def _noted_offer(context: Context) -> Offer:
    request: Any = context.request
    offer: Offer = request.scope["state"]["offer"]
    return offer


def _check_message(body: bytes) -> None:
    """Refuse what is no message in a few words. The protocol's library writes all of it into a long explanation.

    Raises: Invalid.
    """
    try:
        jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
    except ValueError:
        raise Invalid("The body is not a JSON-RPC message; send one JSON object with jsonrpc and method.") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """The body, which has been read already, and then whatever else comes."""
    is_told = False

    async def receive_again() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
