"""Running an agent: `/agent/run`, and `/agent/vision` with images.

Images are base64 in the JSON or files of a form (`multipart/form-data`), on the same route. A client that hangs up
cancels the run. A run that fails before anything was sent is refused like any other request; once a stream has started,
its last event reports the failure.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from anyio import create_task_group
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, Strict, ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wellkept.agent import AgentRunner
from wellkept.api.wellkept import TenantMemory, Wellkept
from wellkept.caller import current_caller
from wellkept.errors import Invalid, WellkeptError
from wellkept.model import AgentAnswer, AgentQuestion, Delta, Image, RecalledItem, RunEvent, RunUsage
from wellkept.prompt.rules_images import KINDS, MAX_IMAGE_BYTES, MAX_IMAGES, check_image, decode_image
from wellkept.prompt.transcripts import MAX_MESSAGE_CHARS
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.errors import located
from wellkept.server.http.routing import WRITE, Router
from wellkept.server.rest.shapes import (
    FILE_FIELD,
    FLAG_FIELD,
    TEXT_FIELD,
    RecordBody,
    RequestBody,
    check_form,
    describe_form,
    describes,
    is_form,
)


class RunBody(RequestBody):
    """A prompt for an agent."""

    agent: Annotated[str | None, Field(description="The agent; null: the one of the settings.", examples=["atlas"])] = (
        None
    )
    session_id: Annotated[
        str | None, Field(description="The conversation it belongs to; null starts a new one.", examples=["s-1"])
    ] = None
    prompt: Annotated[
        str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_MESSAGE_CHARS}, examples=["Which indentation?"])
    ]
    stream: Annotated[bool, Strict(), Field(description="Answer with server-sent events.")] = False


class VisionBody(RunBody):
    """A prompt for an agent, with images."""

    images: Annotated[
        list[str],
        Field(
            description=f"{KINDS} files of at most {MAX_IMAGE_BYTES // 1024 // 1024} MiB, in base64 or as data: URLs.",
            json_schema_extra={"minItems": 1, "maxItems": MAX_IMAGES},
        ),
    ]


@describes(RunUsage)
class UsageBody(RecordBody):
    """Cost of an answer."""


@describes(RecalledItem)
class RecalledBody(RecordBody):
    """A memory that the model was shown at its first call."""


class ToolUseBody(BaseModel):
    """A tool the agent used."""

    name: str
    ok: Annotated[bool, Field(description="True if the call succeeded.")]


@describes(AgentAnswer)
class AnswerBody(RecordBody):
    """The answer of an agent. The turn is on disk."""

    tools: list[ToolUseBody]


EVENT_STREAM = "text/event-stream"
HEADERS = {
    "Content-Type": f"{EVENT_STREAM}; charset=utf-8",
    "Cache-Control": "no-store",
    # Proxies must not collect the events.
    "X-Accel-Buffering": "no",
}
log = logging.getLogger("wellkept.server")


class RunResponse(Response):
    """Runs an agent and answers with JSON or server-sent events."""

    def __init__(self, runner: AgentRunner, question: AgentQuestion, *, is_stream: bool) -> None:
        super().__init__()
        self._runner = runner
        self._question = question
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure: WellkeptError | None = None
        async with create_task_group() as tasks:

            async def wait_for_hanging_up() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_hanging_up)
            try:
                await (self._stream(send) if self._is_stream else self._answer(scope, receive, send))
            except WellkeptError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            # Outside of the group, which would wrap it.
            raise failure

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._runner.run(self._question)
        await JSONResponse(_render(answer))(scope, receive, send)

    async def _stream(self, send: Send) -> None:
        events = _Events(send)
        try:
            answer = await self._runner.run(self._question, events.send_event)
        except WellkeptError as error:
            if not events.has_started:
                raise
            log.error("A streamed answer failed: %s", error)
            await events.send("error", {"ok": False, "error": str(error), "code": error.code})
        else:
            await events.send("done", _render(answer))
        await events.end()


def _render(answer: AgentAnswer) -> dict[str, Any]:
    tools = [ToolUseBody(name=each.name, ok=each.is_ok) for each in answer.tools]
    return AnswerBody.of(answer, tools=tools).model_dump(mode="json")


class _Events:
    """Server-sent events; the answer starts with the first of them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False

    async def send_event(self, event: RunEvent) -> None:
        if isinstance(event, Delta):
            await self.send("delta", {"text": event.text})
        else:
            await self.send("tool", {"name": event.name, "ok": event.is_ok})

    async def send(self, name: str, data: dict[str, Any]) -> None:
        if not self.has_started:
            self.has_started = True
            headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        line = f"event: {name}\ndata: {json.dumps(data)}\n\n"
        await self._send({"type": "http.response.body", "body": line.encode(), "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


IMAGES = "images"
FORM_FIELDS = ("prompt", "agent", "session_id", "stream", IMAGES)
NO_IMAGE = "There is no image; send at least one, or use POST /agent/run without images."

router = Router(prefix="/agent", tags=["reference agent"])
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerBody,
        "description": "The answer; with `stream`, the events delta, tool, done and error.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
_BODY = describe_form(
    {
        **dict.fromkeys(("prompt", "agent", "session_id"), TEXT_FIELD),
        "stream": FLAG_FIELD,
        IMAGES: {"type": "array", "items": FILE_FIELD},
    },
    ["prompt", IMAGES],
    {"application/json": {"schema": VisionBody.model_json_schema()}},
)


async def current_runner(request: Request) -> AgentRunner:
    """Return the runner of this application."""
    runner: AgentRunner = request.app.state.runner
    return runner


CurrentRunner = Annotated[AgentRunner, Depends(current_runner)]


@router.post("/run", scope=WRITE, response_model=AnswerBody, responses=_EVENTS)
async def run_agent(
    wellkept: CurrentWellkept, tenant: CurrentTenant, runner: CurrentRunner, body: RunBody
) -> RunResponse:
    """Run an agent: it sees what its memory holds about the prompt, uses its tools, and answers. When this route
    answers, the turn is on disk. A client that hangs up cancels the run, and nothing of the turn is stored."""
    return _run(wellkept, tenant, runner, body)


def _run(
    wellkept: Wellkept, tenant: TenantMemory, runner: AgentRunner, body: RunBody, images: Sequence[Image] = ()
) -> RunResponse:
    owner = tenant.agent(body.agent or current_caller().default_agent(wellkept.settings.agent)).owner
    question = AgentQuestion(owner=owner, prompt=body.prompt, session_id=body.session_id, images=tuple(images))
    return RunResponse(runner, question, is_stream=body.stream)


async def _parse_request(request: Request) -> tuple[RunBody, tuple[Image, ...]]:
    """Return the body and its images. Raises: Invalid, RequestValidationError."""
    try:
        if is_form(request):
            async with request.form(max_files=MAX_IMAGES, max_fields=2 * len(FORM_FIELDS)) as form:
                return await _parse_form(form.multi_items())
        sent = await request.body()
        body: VisionBody = await request.app.state.reader.read(sent, partial(VisionBody.model_validate_json, sent))
    except ValidationError as error:
        raise RequestValidationError(located(error)) from error
    return body, tuple(decode_image(each, number=place) for place, each in enumerate(body.images, 1))


async def _parse_form(fields: list[tuple[str, Any]]) -> tuple[RunBody, tuple[Image, ...]]:
    """Raises: Invalid, ValidationError."""
    values = check_form(dict(fields), FORM_FIELDS, file=IMAGES, flag="stream")
    images: list[Image] = []
    for value in (each for name, each in fields if name == IMAGES):
        number = len(images) + 1
        sent = isinstance(value, UploadFile)
        images.append(check_image(await value.read(), number=number) if sent else decode_image(value, number=number))
    return RunBody.model_validate(values), tuple(images)


@router.post("/vision", scope=WRITE, response_model=AnswerBody, responses=_EVENTS, openapi_extra=_BODY)
async def run_vision(
    wellkept: CurrentWellkept,
    tenant: CurrentTenant,
    runner: CurrentRunner,
    submitted: Annotated[Any, Depends(_parse_request)],
) -> RunResponse:
    """Run an agent with images: PNG, JPEG, GIF or WebP, in base64 or as files of a form. The model sees them; only the
    prompt and the answer are stored."""
    body, images = submitted
    if not images:
        raise Invalid(NO_IMAGE)
    return _run(wellkept, tenant, runner, body, images)
