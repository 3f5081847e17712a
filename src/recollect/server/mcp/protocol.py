"""What is answered to a client, whatever the transport.

The tools are those of `tools.catalog`, described there once. A refusal is a normal result that tells the model what to
do; the protocol's errors are for what a model cannot mend: a name that was never offered, a store that is out of reach.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
)
from pydantic import ValidationError

from recollect import __version__
from recollect.api.recollect import AgentMemory
from recollect.errors import Invalid, NotFound, RecollectError, TimedOut
from recollect.model import Json
from recollect.server.mcp import completions, prompts, resources
from recollect.server.mcp.offer import Offer
from recollect.tools import catalog
from recollect.tools.spec import for_mcp

NAME = "recollect"
THREADS = 32
"""Calls at work at once for one client over its own streams; more wait their turn."""

GREETINGS = ("initialize", "server/discover")
"""The requests whose answers hold the instructions."""

LISTED = {tool.name: Tool.model_validate(for_mcp(tool)) for tool in catalog.TOOLS.values()}
"""The tools as the protocol wants them."""

BROKEN = "Something went wrong here; the server's log has it."

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
log = logging.getLogger("recollect.server")


def build_server(memory: AgentMemory, sets: Iterable[str] | None = None) -> Server[Any]:
    """A server that offers the tools of these sets (None: all) on one agent's memory to whoever it is connected to.

    Raises: Invalid.
    """
    offer = Offer(memory=memory, sets=tuple(catalog.SETS if sets is None else sets))
    catalog.in_sets(offer.sets)
    threads = anyio.CapacityLimiter(THREADS)  # of our own, so that slow calls never keep the streams from moving
    return server_for(lambda _: offer, threads=threads)


def server_for(offer_of: Callable[[Context], Offer], *, threads: anyio.CapacityLimiter | None = None) -> Server[Any]:
    """A server that asks for each request what is offered to whoever sent it, and works in these threads."""
    ask = partial(_asked, threads=threads)

    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[LISTED[tool.name] for tool in offer_of(context).tools])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        offer = offer_of(context)
        refusal = _refusal(offer, params.name)
        if refusal is not None:
            return _result(refusal)
        return _result(await ask(partial(catalog.call, offer.memory, params.name, params.arguments or {})))

    async def list_resources(context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        cursor = None if params is None else params.cursor
        return await ask(partial(resources.listed, offer_of(context), cursor))

    async def list_templates(context: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return resources.templates(offer_of(context))

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await ask(partial(resources.read, offer_of(context), params.uri))

    async def list_prompts(context: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return prompts.listed(offer_of(context))

    async def get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return await ask(partial(prompts.get, offer_of(context), params.name, params.arguments or {}))

    async def complete(context: Context, params: CompleteRequestParams) -> CompleteResult:
        return await ask(partial(completions.complete, offer_of(context), params))

    async def attend(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await _contained(ctx, call_next)
        if ctx.method in GREETINGS and isinstance(result, dict):
            return {**result, "instructions": offer_of(ctx).instructions}
        return result

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title="Recollect",
        get_tool_input_schema=lambda name: LISTED[name].input_schema if name in LISTED else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.middleware.append(attend)
    return server


def _refusal(offer: Offer, name: str) -> Json | None:
    """Why a tool that is known cannot be called here, in words for the model.

    Raises: MCPError for a tool that is not.
    """
    known = {tool.name: tool for tool in offer.known_tools}
    if name not in known:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:60]!r}; the tools are {', '.join(known)}.")
    if offer.may_write or known[name].is_read_only:
        return None
    sentence = f"{name} changes the memory, and the key of this connection may only read it. Go on without."
    return {"ok": False, "error": sentence}


def _result(answer: Json) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)


async def _asked(work: Callable[[], T], *, threads: anyio.CapacityLimiter | None) -> T:
    """What `work` answers, in a worker thread, which is seen through even if the client gives up waiting.

    Raises: MCPError.
    """
    try:
        return await anyio.to_thread.run_sync(work, limiter=threads)
    except (Invalid, NotFound, TimedOut) as refusal:
        raise MCPError(INVALID_PARAMS, str(refusal)) from refusal
    except RecollectError as failure:
        raise MCPError(INTERNAL_ERROR, f"Memory is not available right now: {failure}") from failure


async def _contained(context: Context, call_next: CallNext) -> HandlerResult:
    """What nobody foresaw goes to the log, and not to the client: it may hold somebody's text.

    Raises: MCPError, ValidationError.
    """
    try:
        return await call_next(context)
    except (MCPError, ValidationError):
        raise
    except Exception as error:  # the last one before the SDK, which would send its text
        log.exception("%s broke", context.method)
        raise MCPError(INTERNAL_ERROR, BROKEN) from error
