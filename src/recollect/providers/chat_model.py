"""The model behind an agent that uses tools: an OpenAI-compatible endpoint, spoken to by pydantic-ai.

Importing this module takes a second or two, so it is imported when an agent first runs. Endpoints that call themselves
compatible leave out this and that; what is not needed to understand an answer is filled in.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
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

from recollect.errors import ModelError
from recollect.model import Json
from recollect.ports import Model as CompletingModel
from recollect.providers.endpoint import DEFAULT_BASE_URL, Endpoint, Refused
from recollect.settings import Settings

NAME = "recollect"
PROFILE = OpenAIModelProfile(openai_supports_strict_tool_definition=False)
"""Many endpoints refuse what they do not know."""

DONE = b"[DONE]"
ENDING_BYTES = 64
FILLED_IN = {"id": "", "object": "chat.completion", "created": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedModel:
    """A model ready to be asked, and who explains its failures."""

    model: Model
    name: str
    endpoint: Endpoint | None = None  # None: it is no endpoint's, but was given by a program

    def explained(self, error: Exception) -> ModelError:
        """The failure as a sentence that says what to check. It holds neither key nor text."""
        named = f"The model {self.name!r}" if self.endpoint is None else self.endpoint.named
        if isinstance(error, exceptions.ModelHTTPError) and self.endpoint is not None:
            return self.endpoint.explained(Refused(error.status_code, None))
        if isinstance(error, exceptions.ModelTimeoutError | exceptions.ModelRequestTimeout | exceptions.RunTimedOut):
            return ModelError(f"{named} did not answer in time.")
        if isinstance(error, exceptions.ModelConnectionError):
            return ModelError(f"{named} cannot be reached, or hung up.")
        if isinstance(error, exceptions.UsageLimitExceeded):
            return ModelError(f"The model {self.name!r} kept calling tools and never came to an answer.")
        if isinstance(error, exceptions.UnexpectedModelBehavior):
            return ModelError(f"{named} should have answered with a message or with a tool to call.")
        return ModelError(f"{named} failed ({type(error).__name__}).")


@asynccontextmanager
async def opened_model(settings: Settings, name: str) -> AsyncIterator[OpenedModel]:
    """The model of that name at the endpoint of the settings, for as long as the block lasts. It is asked nothing yet.

    Raises: Invalid when the address cannot be one.
    """
    endpoint = Endpoint(
        "chat/completions",
        what="model endpoint",
        api_key=settings.openai_api_key,
        base_url=settings.openai_base_url,
    )
    async with httpx2.AsyncClient(verify=_trust(), timeout=settings.openai_timeout, follow_redirects=False) as client:
        provider = OpenAICompatibleProvider(
            NAME,
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            api_key=settings.openai_api_key.strip() or None,
            http_client=client,
            profile=PROFILE,
        )
        yield OpenedModel(model=_LenientModel(name, provider=provider), name=name, endpoint=endpoint)


def given_model(model: CompletingModel) -> OpenedModel:
    """A model that only completes conversations: it is offered no tools and sees no images."""

    async def complete(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        text = await run_sync(model.complete, [_as_chat(part) for message in messages for part in message.parts])
        return ModelResponse(parts=[TextPart(content=text)])

    async def complete_at_once(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield str((await complete(messages, info)).text or "")

    return OpenedModel(model=FunctionModel(complete, stream_function=complete_at_once), name=model.name)


def _as_chat(part: Any) -> Json:
    """A part of a prompt without tools, which the framework may have put together with others of the same side."""
    role = {SystemPromptPart: "system", TextPart: "assistant"}.get(type(part), "user")
    return {"role": role, "content": part.content}


@cache
def _trust() -> ssl.SSLContext:
    """Whom to trust. Reading the certificates takes longer than all the rest of opening a client, so once is enough."""
    return httpx2.create_ssl_context()


class _LenientModel(OpenAIChatModel):
    """Takes a completion that lacks what nobody needs, and a whole one where a stream was asked for."""

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        return super()._validate_completion(_filled_in(response, self.model_name))

    async def _process_streamed_response(self, response: Any, *arguments: Any, **options: Any) -> Any:
        sent: httpx2.Response = response.response
        if _is_whole(sent.headers):
            try:
                response = _OneChunk(_as_chunk(json.loads(await sent.aread()), self.model_name))
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise exceptions.UnexpectedModelBehavior("neither a stream nor a completion") from error
        else:
            response = _ToItsEnd(response, self.model_name)
        return await super()._process_streamed_response(response, *arguments, **options)


class _ToItsEnd:
    """A stream that says when it is at its end: by a reason, or at least by the last line of such streams. Whoever
    merely hangs up has not finished, and a connection that was closed in the middle may look no different."""

    def __init__(self, stream: Any, model: str) -> None:
        self._stream = stream
        self._model = model
        self._body = _Body(stream.response.stream)
        self._is_finished = False
        stream.response.stream = self._body

    def __aiter__(self) -> _ToItsEnd:
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


class _Body(httpx2.AsyncByteStream):
    """What is received, unchanged, and the last of it."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self.ending = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self.ending = (self.ending + part)[-ENDING_BYTES:]
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class _OneChunk:
    """A completion as if it had been streamed in one piece."""

    def __init__(self, chunk: chat.ChatCompletionChunk) -> None:
        self._chunks = [chunk]

    def __aiter__(self) -> _OneChunk:
        return self

    async def __anext__(self) -> chat.ChatCompletionChunk:
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop()

    async def close(self) -> None:
        """There is nothing to close."""


def _is_whole(headers: Mapping[str, str]) -> bool:
    """Whether an answer is one document and no stream: it says so, or at least knows how long it is."""
    said = headers.get("content-type", "")
    return "json" in said or (not said and "content-length" in headers)


def _filled_in(response: chat.ChatCompletion, model: str) -> chat.ChatCompletion:
    for name, value in {**FILLED_IN, "model": model}.items():
        if getattr(response, name, None) is None:
            setattr(response, name, value)
    for place, choice in enumerate(response.choices or ()):
        if getattr(choice, "index", None) is None:
            choice.index = place
    return response


def _as_chunk(whole: dict[str, Any], model: str) -> chat.ChatCompletionChunk:
    """Raises: LookupError, TypeError, AttributeError, ValueError when it is no completion."""
    choice = whole["choices"][0]
    said = choice["message"]
    calls = [{**call, "index": place} for place, call in enumerate(said.get("tool_calls") or ())]
    delta = {"role": "assistant", "content": said.get("content"), "tool_calls": calls or None}
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
