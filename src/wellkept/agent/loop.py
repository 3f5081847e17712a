"""The agent loop on pydantic-ai: call the model and run the tools it asks for until it answers.

The framework's history of a run starts with the bare prompt; before each request, working memory replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import pydantic_ai
from anyio.to_thread import run_sync
from pydantic_ai import Agent, BinaryContent, RunContext, Tool, UsageLimits
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings

from wellkept.agent.prompt import RUN_SECONDS, RunPrompt, ToolResult
from wellkept.api.wellkept import AgentMemory
from wellkept.details.capturing import capture_calls, captured
from wellkept.errors import ModelError, WellkeptError
from wellkept.extension import Model as CompletingModel
from wellkept.language.text import clean_text
from wellkept.model import AgentAnswer, AgentQuestion, Delta, Image, Json, RunUsage, ToolUse
from wellkept.prompt.rules_summaries import clip_middle
from wellkept.providers.chat_model import OpenedModel, open_chat_model, wrap_model
from wellkept.settings import Settings
from wellkept.tools.spec import Tool as MemoryTool

MAX_ROUNDS = 8
"""Model calls for one answer; each round of tools takes one."""

MOVED = "This answer is under [Tool Result] in front of the message."
EMPTY = "The model {name!r} returned an empty answer."
STORING_TOOL = "store_memory"
EPISODE_CHARS = 1_000
"""Characters of a tool's result that are remembered: enough to know if it worked."""

# The framework must not print to the terminal.
pydantic_ai.BANNER_ENABLED = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """An answer, and the tool results to remember."""

    answer: AgentAnswer
    results: Sequence[str] = ()  # of tools other than wellkept's


@dataclass(slots=True, kw_only=True)
class _RunLog:
    """Tools used in a run and their results."""

    own: frozenset[str]  # names of wellkept's tools
    tools: list[ToolUse] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def add(self, part: ToolReturnPart) -> ToolUse:
        """Record the use of a tool."""
        content, output = part.content, part.model_response_str()
        is_refused = isinstance(content, dict) and (content.get("ok") is False or content.get("success") is False)
        use = ToolUse(name=part.tool_name, is_ok=part.outcome == "success" and not is_refused)
        self.tools.append(use)
        if part.tool_name not in self.own:
            verdict = "worked" if use.is_ok else "failed"
            self.results.append(clip_middle(f"The tool {part.tool_name} {verdict}: {output}", EPISODE_CHARS))
        return use


async def run_agent(
    *,
    prompt: RunPrompt,
    memory: AgentMemory,
    tools: Sequence[MemoryTool],
    functions: Sequence[Callable[..., Any]],
    question: AgentQuestion,
    session_id: str,
    settings: Settings,
    model: str | CompletingModel,
    on_event: Any,
) -> FinishedRun:
    """Run the agent until it answers.

    Raises: Invalid, OverBudget, ModelError.
    """
    opening = open_chat_model(settings, model) if isinstance(model, str) else nullcontext(wrap_model(model))
    async with opening as opened:
        await run_sync(prompt.begin, list(dict.fromkeys(tool.set for tool in tools)))
        log = _RunLog(own=frozenset(tool.name for tool in tools))
        capture = captured(memory, session_id=session_id)
        agent = Agent(
            opened.model,
            tools=[*_wrap_memory_tools(memory, tools, session_id), *map(capture, functions)],
            capabilities=[_build_hooks(prompt, question.images, settings)],
            retries={"tools": 2, "output": 1},
        )
        limits = UsageLimits(request_limit=MAX_ROUNDS)
        model_settings = ModelSettings(timeout=settings.openai_timeout, request_timeout=settings.openai_timeout)
        listen = _listener(log, on_event)
        try:
            run = await agent.run(
                question.prompt,
                usage_limits=limits,
                model_settings=model_settings,
                timeout=RUN_SECONDS,
                event_stream_handler=listen if on_event is not None else None,
            )
        except (AgentRunError, UserError) as error:
            raise _explain(error, opened) from error
        if on_event is None:
            for part in _tool_returns(run.new_messages()):
                log.add(part)
        answer = AgentAnswer(
            response=_check_output(run.output, opened.name),
            session_id=session_id,
            agent=memory.owner.agent,
            model=opened.name,
            usage=RunUsage(**{each.name: getattr(run.usage, each.name) for each in fields(RunUsage)}),
            call_id=prompt.call_id,
            recalled=prompt.recalled,
            tools=tuple(log.tools),
            purposes=tuple(prompt.purposes),
        )
        return FinishedRun(answer=answer, results=log.results)


def _check_output(output: str, model: str) -> str:
    """Return the answer as text that can be stored.

    Raises: ModelError.
    """
    response = clean_text(output)
    if not response.strip():
        raise ModelError(EMPTY.format(name=model))
    return response


def _explain(error: Exception, opened: OpenedModel) -> WellkeptError:
    """Return wellkept's own error if the framework wrapped one, else a description of the failure."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WellkeptError):
            return cause
        cause = cause.__cause__
    return opened.explain(error)


def _wrap_memory_tools(memory: AgentMemory, tools: Sequence[MemoryTool], session_id: str) -> Iterator[Tool[Any]]:
    """Wrap wellkept's tools for the framework. They check their arguments themselves, with better messages."""

    sets = {tool.set for tool in tools}

    async def call(name: str, arguments: dict[str, Any]) -> Json:
        return await run_sync(partial(memory.call_tool, name, arguments, session_id=session_id, sets=sets))

    call_captured = capture_calls(memory, call, session_id=session_id)
    for tool in tools:

        async def called(_name: str = tool.name, /, **arguments: Any) -> Any:
            return await call_captured(_name, arguments)

        yield Tool.from_schema(called, tool.name, tool.description, tool.schema())


def _build_hooks(prompt: RunPrompt, images: Sequence[Image], settings: Settings) -> Hooks[Any]:
    """Build the hooks that run before each request and after a failed tool."""
    hooks: Hooks[Any] = Hooks()

    async def before_request(ctx: RunContext[Any], request: ModelRequestContext) -> ModelRequestContext:
        # The first message is the bare prompt.
        history = await run_sync(_shorten_calls, request.messages[1:], prompt)
        results = [
            ToolResult(name=part.tool_name, content=part.model_response_str()) for part in _tool_returns(history)
        ]
        built = await run_sync(prompt.build, [_convert_for_counting(message) for message in history], results)
        model_settings = request.model_settings
        # In the last round the model must answer.
        if ctx.usage.requests >= MAX_ROUNDS - 1:
            model_settings = {**(model_settings or {}), "tool_choice": "none"}
        messages = [*_convert_messages(built.messages, images), *_mark_moved(history, built.moved)]
        return replace(request, messages=messages, model_settings=model_settings)

    async def failed(ctx: RunContext[Any], *, call: ToolCallPart, error: Exception, **rest: Any) -> Any:
        if isinstance(error, pydantic_ai.ModelRetry):
            raise error
        return {"ok": False, "error": f"The tool {call.tool_name} failed ({type(error).__name__})."}

    hooks.on.before_model_request(before_request)
    hooks.on.tool_execute_error(failed)
    return hooks


def _listener(log: _RunLog, on_event: Any) -> Any:
    async def listen(ctx: RunContext[Any], events: Any) -> None:
        async for event in events:
            converted = _convert_event(event, log)
            if converted is not None:
                await on_event(converted)

    return listen


def _convert_event(event: AgentStreamEvent, log: _RunLog) -> Delta | ToolUse | None:
    """Convert an event of the framework to one for the caller; None if it is of no interest."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
        return Delta(text=event.part.content)
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta) and event.delta.content_delta:
        return Delta(text=event.delta.content_delta)
    if isinstance(event, FunctionToolResultEvent):
        return log.add(event.part)
    return None


def _convert_messages(chat: Sequence[Json], images: Sequence[Image]) -> Iterator[ModelMessage]:
    """Convert chat messages to the framework's; the images belong to the last one."""
    *earlier, last = chat
    for message in earlier:
        content = message["content"]
        if message["role"] == "assistant":
            yield ModelResponse(parts=[TextPart(content=content)])
        else:
            part = SystemPromptPart if message["role"] == "system" else UserPromptPart
            yield ModelRequest(parts=[part(content=content)])
    attachments: list[UserContent] = [BinaryContent(data=each.content, media_type=each.media_type) for each in images]
    yield ModelRequest(
        parts=[UserPromptPart(content=[last["content"], *attachments] if attachments else last["content"])]
    )


def _tool_returns(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def _shorten_calls(messages: Sequence[ModelMessage], prompt: RunPrompt) -> list[ModelMessage]:
    """Return the messages with long arguments of tool calls behind references."""
    # `store_memory` has stored its argument already and answers with the reference.
    stored = {
        part.tool_call_id: str(part.content["reference"])
        for part in _tool_returns(messages)
        if part.tool_name == STORING_TOOL and isinstance(part.content, dict) and part.content.get("reference")
    }

    def shorten(part: Any) -> Any:
        if not isinstance(part, ToolCallPart):
            return part
        arguments = part.args_as_dict()
        short = prompt.shorten_arguments(part.tool_name, arguments, stored.get(part.tool_call_id, ""))
        return part if short == arguments else replace(part, args=short)

    return [
        replace(message, parts=[shorten(part) for part in message.parts])
        if isinstance(message, ModelResponse)
        else message
        for message in messages
    ]


def _mark_moved(messages: Sequence[ModelMessage], moved: int) -> list[ModelMessage]:
    """Return the messages with the oldest `moved` tool results replaced by a note that they moved."""
    result: list[ModelMessage] = []
    for message in messages:
        parts: list[Any] = []
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and moved > 0:
                moved -= 1
                parts.append(ToolReturnPart(part.tool_name, MOVED, tool_call_id=part.tool_call_id))
            else:
                parts.append(part)
        result.append(replace(message, parts=parts) if isinstance(message, ModelRequest) else message)
    return result


def _convert_for_counting(message: ModelMessage) -> Json:
    """Convert a message to a chat message, for counting its tokens."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    texts = [_get_text(part) for part in message.parts if not isinstance(part, ToolCallPart)]
    return {
        "role": "assistant" if isinstance(message, ModelResponse) else "tool",
        "content": "\n".join(texts),
        "tool_calls": [{"function": {"name": part.tool_name, "arguments": part.args_as_json_str()}} for part in calls],
    }


def _get_text(part: Any) -> str:
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else ""
