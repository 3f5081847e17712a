"""The MCP server, independent of the transport.

Tools come from `tools.catalog`. A refusal is a normal result with advice for the model, marked `isError`; protocol
errors are for what a model cannot fix: an unknown name, a store that is unavailable. Prompts recall for
`recall.rules_ranking`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from wellkept import __version__
from wellkept.api.wellkept import AgentMemory
from wellkept.errors import Invalid, NotFound, TimedOut, WellkeptError
from wellkept.model import Json
from wellkept.prompt.rules_escaping import wrap_block
from wellkept.recall.rules_ranking import PURPOSES, Purpose
from wellkept.server.mcp import resources
from wellkept.server.mcp.client import NAME, TITLE, ClientContext
from wellkept.tools import catalog
from wellkept.tools.spec import for_mcp
from wellkept.tools.verbs import shorten

THREADS = 32
"""Concurrent calls of a client over stdio; more of them wait."""

GREETINGS = ("initialize", "server/discover")
"""Requests with the instructions in their answer."""

BROKEN = "Something went wrong here; the server's log has it."
T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
log = logging.getLogger("wellkept.server")
PROMPT_SETS = frozenset({"memory", "recall"})
QUESTION = "question"
NOTHING_RECALLED = "Nothing is remembered about this."


def build_server(memory: AgentMemory, sets: Iterable[str] | None = None) -> Server[Any]:
    """Return a server with the tools of these sets on one agent's memory; None: the set `memory`.

    Raises: Invalid.
    """
    offered = dict.fromkeys(tool.set for tool in catalog.select_tools(sets))
    client = ClientContext(memory=memory, sets=tuple(offered))
    # A separate limiter, so that slow calls never block the streams.
    threads = anyio.CapacityLimiter(THREADS)
    return build_server_for(lambda _: client, threads=threads)


def build_server_for(
    client_of: Callable[[Context], ClientContext], *, threads: anyio.CapacityLimiter | None = None
) -> Server[Any]:
    """Return a server that gets the context of each request from `client_of`, and works in these threads."""
    ask = partial(_run, threads=threads)

    async def list_tools(context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(for_mcp(tool)) for tool in client_of(context).tools]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = client_of(context)
        refusal = _refusal(client, params.name)
        if refusal is not None:
            return _result(refusal)
        return _result(await ask(_call_tool, client, params.name, params.arguments or {}))

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = None if params is None else params.cursor
        return await ask(resources.list_resources, client_of(context), cursor)

    async def list_templates(
        context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.list_templates(client_of(context))

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await ask(resources.read, client_of(context), params.uri)

    async def list_prompts(context: Context, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return _list_prompts(client_of(context))

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await ask(_get_prompt, client_of(context), params.name, params.arguments or {})

    async def attend(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await _hide_errors(ctx, call_next)
        if ctx.method in GREETINGS and isinstance(result, dict):
            return {**result, "instructions": client_of(ctx).instructions}
        return result

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title=TITLE,
        get_tool_input_schema=lambda name: catalog.TOOLS[name].schema() if name in catalog.TOOLS else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.middleware.append(attend)
    return server


def _refusal(client: ClientContext, name: str) -> Json | None:
    """Return the refusal of a known tool that this client may not call, in words for the model.

    Raises: MCPError for an unknown tool.
    """
    known = {tool.name: tool for tool in client.known_tools}
    if name not in known:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name[:60]!r}; the tools are {', '.join(known)}.")
    if client.may_write or known[name].is_read_only:
        return None
    sentence = f"{name} changes the memory, but the key of this connection may only read it. Continue without it."
    return {"ok": False, "error": sentence}


def _call_tool(client: ClientContext, name: str, arguments: Json) -> Json:
    return catalog.call(client.memory, name, arguments, session_id=client.session_id, sets=client.sets)


def _result(answer: Json) -> types.CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=answer,
        is_error=catalog.is_refusal(answer),
    )


async def _run(
    work: Callable[..., T], client: ClientContext, *args: object, threads: anyio.CapacityLimiter | None
) -> T:
    """Run `work` in a worker thread, to its end even if the client cancels, for the reader of the conversation.

    Raises: MCPError.
    """
    try:
        return await anyio.to_thread.run_sync(lambda: work(client.for_reader(), *args), limiter=threads)
    except (Invalid, NotFound, TimedOut) as refusal:
        raise MCPError(types.INVALID_PARAMS, str(refusal)) from refusal
    except WellkeptError as failure:
        raise MCPError(types.INTERNAL_ERROR, f"Memory is not available right now: {failure}") from failure


async def _hide_errors(context: Context, call_next: CallNext) -> HandlerResult:
    """Log unexpected errors instead of sending them to the client: they may contain stored text.

    Raises: MCPError, ValidationError.
    """
    try:
        return await call_next(context)
    except (MCPError, ValidationError):
        raise
    # The SDK would send the text of the error.
    except Exception as error:
        log.exception("%s broke", context.method)
        raise MCPError(types.INTERNAL_ERROR, BROKEN) from error


def _list_prompts(client: ClientContext) -> types.ListPromptsResult:
    """List one prompt for each purpose; they recall, so they belong to the sets that do."""
    return types.ListPromptsResult(prompts=[_describe_prompt(each) for each in _find_purposes(client).values()])


def _find_purposes(client: ClientContext) -> Mapping[str, Purpose]:
    return {} if PROMPT_SETS.isdisjoint(client.sets) else PURPOSES


def _get_prompt(client: ClientContext, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return what is recalled for a purpose, followed by the question, as one message.

    Raises: Invalid; StoreError when nothing could answer.
    """
    known = _find_purposes(client)
    if name not in known:
        raise Invalid(f"Unknown prompt: {name[:60]!r}; the prompts are {', '.join(known) or 'none'}.")
    unknown = arguments.keys() - {QUESTION}
    if unknown or not arguments.get(QUESTION, "").strip():
        raise Invalid(f"The prompt {name} takes one argument, {QUESTION!r}: what you are about to do or decide.")
    purpose, question = known[name], arguments[QUESTION].strip()
    block = client.memory.prompts.recall_block(question, purpose=name)
    recalled = f"## {purpose.heading}\n{NOTHING_RECALLED}" if block is None else wrap_block(shorten(block), "purpose")
    text = types.TextContent(type="text", text=f"{recalled}\n\n{question}")
    return types.GetPromptResult(description=purpose.heading, messages=[types.PromptMessage(role="user", content=text)])


def _describe_prompt(purpose: Purpose) -> types.Prompt:
    question = types.PromptArgument(name=QUESTION, description="What you are about to do or decide.", required=True)
    return types.Prompt(
        name=purpose.name,
        title=purpose.heading,
        description=f"{purpose.heading}: what is remembered about a question, and the question.",
        arguments=[question],
    )
