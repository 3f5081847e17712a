"""Chat models for agents with tools: an OpenAI-compatible endpoint, called through pydantic-ai.

Importing this module takes a second or two, so it is imported when an agent first runs. Many compatible endpoints leave
out fields of the protocol; those not needed to understand an answer are filled in.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from anyio.to_thread import run_sync
from openai.types import chat
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from wellkept.errors import ModelError
from wellkept.extension import Model as CompletingModel
from wellkept.model import Json
from wellkept.providers.endpoint import DEFAULT_BASE_URL, Endpoint, EndpointRefusal, load_certificates
from wellkept.settings import Settings

NAME = "wellkept"
PROFILE = OpenAIModelProfile(openai_supports_strict_tool_definition=False)
"""Profile without strict tool definitions: many endpoints refuse options they do not know."""

DONE = b"[DONE]"
"""Last event of a complete stream."""
ENDING_BYTES = 64
"""Bytes of a stream's end to keep, enough to find `DONE`."""
MISSING_FIELDS = {"id": "", "object": "chat.completion", "created": 0}
"""Defaults for fields that endpoints leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedModel:
    """An opened model and its name, and the endpoint that explains its failures."""

    model: Model
    name: str
    endpoint: Endpoint | None = None  # None: passed in by a program

    def explain(self, error: Exception) -> ModelError:
        """Describe the failure in a sentence that says what to check. It contains neither key nor text."""
        subject = f"The model {self.name!r}" if self.endpoint is None else self.endpoint.named
        if isinstance(error, exceptions.ModelHTTPError) and self.endpoint is not None:
            return self.endpoint.explain(EndpointRefusal(error.status_code, None))
        if isinstance(error, exceptions.ModelTimeoutError | exceptions.ModelRequestTimeout | exceptions.RunTimedOut):
            return ModelError(f"{subject} did not answer in time.")
        if isinstance(error, exceptions.ModelConnectionError):
            return ModelError(f"{subject} cannot be reached, or closed the connection.")
        if isinstance(error, exceptions.UsageLimitExceeded):
            return ModelError(f"The model {self.name!r} kept calling tools and never answered.")
        if isinstance(error, exceptions.UnexpectedModelBehavior):
            return ModelError(f"{subject} should have answered with a message or with a tool to call.")
        return ModelError(f"{subject} failed ({type(error).__name__}).")


@asynccontextmanager
async def open_chat_model(settings: Settings, name: str) -> AsyncIterator[OpenedModel]:
    """Open the model of that name at the endpoint of the settings for the block, without calling it.

    Raises: Invalid when the address is malformed.
    """
    endpoint = Endpoint(
        "chat/completions", what="model endpoint", api_key=settings.openai_api_key, base_url=settings.openai_base_url
    )
    async with httpx2.AsyncClient(
        verify=load_certificates(), timeout=settings.openai_timeout, follow_redirects=False
    ) as client:
        provider = OpenAICompatibleProvider(
            NAME,
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            api_key=settings.openai_api_key.strip() or None,
            http_client=client,
            profile=PROFILE,
        )
        yield OpenedModel(model=_LenientModel(name, provider=provider), name=name, endpoint=endpoint)


def wrap_model(model: CompletingModel) -> OpenedModel:
    """Wrap a model that only completes conversations: it gets no tools and no images."""

    async def complete(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        text = await run_sync(model.complete, [_convert_part(part) for message in messages for part in message.parts])
        return ModelResponse(parts=[TextPart(content=text)])

    async def complete_at_once(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield str((await complete(messages, info)).text or "")

    return OpenedModel(model=FunctionModel(complete, stream_function=complete_at_once), name=model.name)


def _convert_part(part: Any) -> Json:
    """Convert a part of a prompt without tools, which the framework may have merged with others of the same role."""
    role = {SystemPromptPart: "system", TextPart: "assistant"}.get(type(part), "user")
    return {"role": role, "content": part.content}


class _LenientModel(OpenAIChatModel):
    """Model that accepts completions without unneeded fields, and a whole completion in place of a stream."""

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        return super()._validate_completion(_fill_in(response, self.model_name))

    async def _process_streamed_response(self, response: Any, *arguments: Any, **options: Any) -> Any:
        sent: httpx2.Response = response.response
        if _is_document(sent.headers):
            try:
                response = _SingleChunkStream(_make_chunk(json.loads(await sent.aread()), self.model_name))
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise exceptions.UnexpectedModelBehavior("neither a stream nor a completion") from error
        else:
            response = _CompleteStream(response, self.model_name)
        return await super()._process_streamed_response(response, *arguments, **options)


class _CompleteStream:
    """Stream that must end with a finish reason or the `DONE` event.

    A connection that merely closes has not finished: one cut in the middle may look no different.
    """

    def __init__(self, stream: Any, model: str) -> None:
        self._stream = stream
        self._model = model
        self._body = _TailStream(stream.response.stream)
        self._is_finished = False
        stream.response.stream = self._body

    def __aiter__(self) -> _CompleteStream:
        return self

    async def __anext__(self) -> chat.ChatCompletionChunk:
        try:
            chunk: chat.ChatCompletionChunk = await anext(self._stream)
        except StopAsyncIteration:
            if self._is_finished or DONE in self._body.ending:
                raise
            raise exceptions.ModelConnectionError(self._model, "broke off", phase="read", in_stream=True) from None
        self._is_finished = self._is_finished or any(choice.finish_reason for choice in chunk.choices or ())
        return chunk

    async def close(self) -> None:
        await self._stream.close()


class _TailStream(httpx2.AsyncByteStream):
    """Byte stream that passes its content unchanged and keeps the end of it."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self.ending = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self.ending = (self.ending + part)[-ENDING_BYTES:]
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class _SingleChunkStream:
    """A completion as a stream of one chunk."""

    def __init__(self, chunk: chat.ChatCompletionChunk) -> None:
        self._chunks = [chunk]

    def __aiter__(self) -> _SingleChunkStream:
        return self

    async def __anext__(self) -> chat.ChatCompletionChunk:
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop()

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _is_document(headers: Mapping[str, str]) -> bool:
    """Return True if an answer is one document, not a stream, by its type or because its length is known."""
    content_type = headers.get("content-type", "")
    return "json" in content_type or (not content_type and "content-length" in headers)


def _fill_in(response: chat.ChatCompletion, model: str) -> chat.ChatCompletion:
    for name, value in {**MISSING_FIELDS, "model": model}.items():
        if getattr(response, name, None) is None:
            setattr(response, name, value)
    for place, choice in enumerate(response.choices or ()):
        if getattr(choice, "index", None) is None:
            choice.index = place
    return response


def _make_chunk(whole: dict[str, Any], model: str) -> chat.ChatCompletionChunk:
    """Convert a whole completion to one chunk.

    Raises: LookupError, TypeError, AttributeError, ValueError when it is not a completion.
    """
    choice = whole["choices"][0]
    message = choice["message"]
    calls = [{**call, "index": place} for place, call in enumerate(message.get("tool_calls") or ())]
    delta = {"role": "assistant", "content": message.get("content"), "tool_calls": calls or None}
    return chat.ChatCompletionChunk.model_validate(
        {
            "id": whole.get("id") or "",
            "created": whole.get("created") or 0,
            "model": whole.get("model") or model,
            "object": "chat.completion.chunk",
            "usage": whole.get("usage"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}],
        }
    )
