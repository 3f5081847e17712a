"""The agent's loop, by pydantic-ai: the model is asked, the tools it calls are run, until it answers.

The framework's own history of a run begins with the bare prompt; before each request, working memory takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
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

from recollect.api.recollect import AgentMemory
from recollect.capturing import capture_calls, captured
from recollect.errors import ModelError, RecollectError
from recollect.model import AgentAnswer, AgentQuestion, Delta, Image, Json, RunUsage, ToolUse
from recollect.policy.prompt.transcript_digest import clipped
from recollect.ports import Model as CompletingModel
from recollect.providers.chat_model import OpenedModel, given_model, opened_model
from recollect.runner.prompt import RunPrompt, ToolResult
from recollect.settings import Settings
from recollect.tools.spec import Tool as MemoryTool

MOVED = "This answer stands under [Tool Result] in front of the message."
EMPTY = "The model {name!r} answered with nothing."
EPISODE_CHARS = 1_000
"""Of what a tool said, as it is remembered: enough to know whether it worked."""

pydantic_ai.BANNER_ENABLED = False  # the terminal is not its to speak to


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """An answer, and what is to be remembered besides."""

    answer: AgentAnswer
    results: Sequence[str] = ()  # what tools that are not memory's own said


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What happened in a run."""

    own: frozenset[str]  # the tools of memory
    tools: list[ToolUse] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def add(self, part: ToolReturnPart) -> ToolUse:
        """Note that a tool was used."""
        content, said = part.content, part.model_response_str()
        is_refused = isinstance(content, dict) and (content.get("ok") is False or content.get("success") is False)
        use = ToolUse(name=part.tool_name, is_ok=part.outcome == "success" and not is_refused)
        self.tools.append(use)
        if part.tool_name not in self.own:
            verdict = "worked" if use.is_ok else "failed"
            self.results.append(clipped(f"The tool {part.tool_name} {verdict}: {said}", EPISODE_CHARS))
        return use


async def finished(
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
) -> Finished:
    """Run the agent to its answer.

    Raises: Invalid, OverBudget, ModelError.
    """
    opening = opened_model(settings, model) if isinstance(model, str) else nullcontext(given_model(model))
    async with opening as opened:
        await run_sync(prompt.begin, list(dict.fromkeys(tool.set for tool in tools)))
        seen = _Seen(own=frozenset(tool.name for tool in tools))
        agent = Agent(
            opened.model,
            tools=[*_memory_tools(memory, tools, session_id), *_functions(memory, functions, session_id)],
            capabilities=[_hooks(prompt, question.images, settings)],
            retries={"tools": 2, "output": 1},
        )
        limits = UsageLimits(request_limit=settings.agent_max_rounds)
        waits = ModelSettings(timeout=settings.openai_timeout, request_timeout=settings.openai_timeout)
        listen = _listener(seen, on_event)
        try:
            run = await agent.run(
                question.prompt,
                usage_limits=limits,
                model_settings=waits,
                timeout=settings.agent_timeout,
                event_stream_handler=listen if on_event is not None else None,
            )
        except (AgentRunError, UserError) as error:
            raise _explained(error, opened) from error
        if on_event is None:
            for part in _returned(run.new_messages()):
                seen.add(part)
        answer = AgentAnswer(
            response=_whole(run.output, opened.name),
            session_id=session_id,
            agent=memory.owner.agent,
            model=opened.name,
            usage=RunUsage(**{each.name: getattr(run.usage, each.name) for each in fields(RunUsage)}),
            call_id=prompt.call_id,
            recalled=prompt.recalled,
            tools=tuple(seen.tools),
            purposes=tuple(prompt.purposes),
        )
        return Finished(answer=answer, results=seen.results)


def _whole(output: str, model: str) -> str:
    """An answer that can be stored.

    Raises: ModelError.
    """
    response = output.replace("\x00", "").encode("utf-8", "replace").decode()
    if not response.strip():
        raise ModelError(EMPTY.format(name=model))
    return response


def _explained(error: Exception, opened: OpenedModel) -> RecollectError:
    """What the framework wrapped may be our own refusal, which says it best."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RecollectError):
            return cause
        cause = cause.__cause__
    return opened.explained(error)


def _memory_tools(memory: AgentMemory, tools: Sequence[MemoryTool], session_id: str) -> Iterator[Tool[Any]]:
    """The catalogue for the framework. Arguments are checked by the tools themselves, which say what to do better."""

    async def call(name: str, arguments: dict[str, Any]) -> Json:
        return await run_sync(memory.call_tool, name, arguments)

    kept = capture_calls(memory, call, session_id=session_id)
    for tool in tools:

        async def called(_name: str = tool.name, /, **arguments: Any) -> Any:
            return await kept(_name, arguments)

        yield Tool.from_schema(called, tool.name, tool.description, tool.schema())


def _functions(
    memory: AgentMemory, functions: Sequence[Callable[..., Any]], session_id: str
) -> Iterator[Callable[..., Any]]:
    yield from (captured(memory, session_id=session_id)(function) for function in functions)


def _hooks(prompt: RunPrompt, images: Sequence[Image], settings: Settings) -> Hooks[Any]:
    """What happens around each request and each tool."""
    hooks: Hooks[Any] = Hooks()

    async def before_request(ctx: RunContext[Any], request: ModelRequestContext) -> ModelRequestContext:
        said = request.messages[1:]  # the first is the bare prompt
        results = [ToolResult(name=part.tool_name, content=part.model_response_str()) for part in _returned(said)]
        made = await run_sync(prompt.made, [_as_chat(message) for message in said], results)
        waits = request.model_settings
        if ctx.usage.requests >= settings.agent_max_rounds - 1:  # the last chance for an answer
            waits = {**(waits or {}), "tool_choice": "none"}
        messages = [*_messages(made.messages, images), *_without(said, made.moved)]
        return replace(request, messages=messages, model_settings=waits)

    async def failed(ctx: RunContext[Any], *, call: ToolCallPart, error: Exception, **rest: Any) -> Any:
        if isinstance(error, pydantic_ai.ModelRetry):
            raise error
        return {"ok": False, "error": f"The tool {call.tool_name} failed ({type(error).__name__})."}

    hooks.on.before_model_request(before_request)
    hooks.on.tool_execute_error(failed)
    return hooks


def _listener(seen: _Seen, on_event: Any) -> Any:
    async def listen(ctx: RunContext[Any], events: Any) -> None:
        async for event in events:
            told = _told(event, seen)
            if told is not None:
                await on_event(told)

    return listen


def _told(event: AgentStreamEvent, seen: _Seen) -> Delta | ToolUse | None:
    """What of the framework's events is for whoever asked."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
        return Delta(text=event.part.content)
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta) and event.delta.content_delta:
        return Delta(text=event.delta.content_delta)
    if isinstance(event, FunctionToolResultEvent):
        return seen.add(event.part)
    return None


def _messages(chat: Sequence[Json], images: Sequence[Image]) -> Iterator[ModelMessage]:
    """Chat messages as the framework has them; the images belong to the last one."""
    *earlier, last = chat
    for message in earlier:
        content = message["content"]
        if message["role"] == "assistant":
            yield ModelResponse(parts=[TextPart(content=content)])
        else:
            part = SystemPromptPart if message["role"] == "system" else UserPromptPart
            yield ModelRequest(parts=[part(content=content)])
    asked: list[UserContent] = [BinaryContent(data=each.content, media_type=each.media_type) for each in images]
    yield ModelRequest(parts=[UserPromptPart(content=[last["content"], *asked] if asked else last["content"])])


def _returned(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def _without(messages: Sequence[ModelMessage], moved: int) -> list[ModelMessage]:
    """The same messages; of the oldest tool results only that they have moved."""
    shown: list[ModelMessage] = []
    for message in messages:
        parts: list[Any] = []
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and moved > 0:
                moved -= 1
                parts.append(ToolReturnPart(part.tool_name, MOVED, tool_call_id=part.tool_call_id))
            else:
                parts.append(part)
        shown.append(replace(message, parts=parts) if isinstance(message, ModelRequest) else message)
    return shown


def _as_chat(message: ModelMessage) -> Json:
    """What counts of a message, for counting its tokens."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    texts = [_text(part) for part in message.parts if not isinstance(part, ToolCallPart)]
    return {
        "role": "assistant" if isinstance(message, ModelResponse) else "tool",
        "content": "\n".join(texts),
        "tool_calls": [{"function": {"name": part.tool_name, "arguments": part.args_as_json_str()}} for part in calls],
    }


def _text(part: Any) -> str:
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else ""
