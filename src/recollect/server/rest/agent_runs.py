"""Asking an agent: `/agent/run`, and `/agent/vision` about images.

Images arrive inside the JSON, in base64, or as files of a form (`multipart/form-data`), on the same route.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from recollect.caller import current_caller
from recollect.errors import Invalid
from recollect.model import AgentQuestion, Image
from recollect.policy.prompt.images import MAX_IMAGES, checked_image, decoded_image
from recollect.runner import AgentRunner
from recollect.server.auth import CurrentRecollect, CurrentTenant
from recollect.server.errors import located
from recollect.server.rest.knowledge import FORM
from recollect.server.rest.run_shapes import AnswerBody, RunBody, VisionBody
from recollect.server.run_response import EVENT_STREAM, RunResponse

IMAGES = "images"
FORM_FIELDS = ("prompt", "agent", "session_id", "stream", IMAGES)
NO_IMAGE = "There is no image; send at least one, or ask without images at POST /agent/run."

router = APIRouter(prefix="/agent", tags=["reference agent"])
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerBody,
        "description": "The answer; with `stream`, the events delta, tool, done and error.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": VisionBody.model_json_schema()},
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["prompt", IMAGES],
                    "properties": {
                        "prompt": {"type": "string"},
                        "agent": {"type": "string"},
                        "session_id": {"type": "string"},
                        "stream": {"type": "boolean"},
                        IMAGES: {"type": "array", "items": {"type": "string", "format": "binary"}},
                    },
                }
            },
        },
    }
}


async def current_runner(request: Request) -> AgentRunner:
    """What runs this app's agents."""
    runner: AgentRunner = request.app.state.runner
    return runner


CurrentRunner = Annotated[AgentRunner, Depends(current_runner)]


@router.post("/run", response_model=AnswerBody, responses=_EVENTS)
async def run_agent(
    recollect: CurrentRecollect, tenant: CurrentTenant, runner: CurrentRunner, body: RunBody
) -> RunResponse:
    """Ask an agent. It is shown what its memory holds about the prompt, uses its tools, and answers; when this answers,
    the turn is on disk. Who hangs up cancels it, and nothing of the turn is kept."""
    owner = tenant.agent(body.agent or current_caller().default_agent(recollect.settings.agent)).owner
    question = AgentQuestion(owner=owner, prompt=body.prompt, session_id=body.session_id)
    return RunResponse(runner, question, is_stream=body.stream)


async def _submitted(request: Request) -> tuple[RunBody, tuple[Image, ...]]:
    """Raises: Invalid, RequestValidationError."""
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
            async with request.form(max_files=MAX_IMAGES, max_fields=2 * len(FORM_FIELDS)) as form:
                return await _from_form(form.multi_items())
        sent = await request.body()
        body: VisionBody = await request.app.state.reader.read(sent, partial(VisionBody.model_validate_json, sent))
    except ValidationError as error:
        raise RequestValidationError(located(error)) from error
    return body, tuple(decoded_image(each, number=place) for place, each in enumerate(body.images, 1))


async def _from_form(fields: list[tuple[str, Any]]) -> tuple[RunBody, tuple[Image, ...]]:
    """Raises: Invalid, ValidationError."""
    said: dict[str, Any] = {}
    images: list[Image] = []
    for name, value in fields:
        if name not in FORM_FIELDS:
            raise Invalid(f"There is no field {name[:40]!r}; there are: {', '.join(FORM_FIELDS)}.")
        if name != IMAGES:
            if isinstance(value, UploadFile):
                raise Invalid(f"Only the field {IMAGES} is a file.")
            said[name] = value
        elif isinstance(value, UploadFile):
            images.append(checked_image(await value.read(), number=len(images) + 1))
        else:
            images.append(decoded_image(value, number=len(images) + 1))
    if "stream" in said:
        try:
            said["stream"] = TypeAdapter(bool).validate_python(said["stream"])
        except ValidationError as error:
            raise Invalid("stream is true or false.") from error
    return RunBody.model_validate(said), tuple(images)


@router.post("/vision", response_model=AnswerBody, responses=_EVENTS, openapi_extra=_BODY)
async def run_vision(
    recollect: CurrentRecollect,
    tenant: CurrentTenant,
    runner: CurrentRunner,
    submitted: Annotated[Any, Depends(_submitted)],
) -> RunResponse:
    """Ask an agent about images: PNG, JPEG, GIF or WebP, in base64 or as files of a form. The model sees them; only the
    prompt and the answer are kept."""
    body, images = submitted
    if not images:
        raise Invalid(NO_IMAGE)
    owner = tenant.agent(body.agent or current_caller().default_agent(recollect.settings.agent)).owner
    question = AgentQuestion(owner=owner, prompt=body.prompt, session_id=body.session_id, images=images)
    return RunResponse(runner, question, is_stream=body.stream)
