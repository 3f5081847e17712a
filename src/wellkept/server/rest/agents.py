"""Agents, `/api/agents`, and running one: `/agent/run`, and `/agent/vision` with images.

Images are base64 in the JSON or files of a form (`multipart/form-data`), on the same route. A client that hangs up
cancels the run. A run that fails before anything was sent is refused like any other request; once a stream has started,
its last event reports the failure.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, cast

from anyio import create_task_group
from fastapi import Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError, create_model
from starlette.datastructures import UploadFile
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wellkept.agent import AgentRunner
from wellkept.api.wellkept import TenantMemory, Wellkept
from wellkept.caller import current_caller
from wellkept.errors import Invalid, WellkeptError
from wellkept.memory.rules_kinds import MAX_CHARS, MAX_TOOLS, AgentFields
from wellkept.model import Agent, AgentAnswer, AgentQuestion, Delta, Image, Kind, RecalledItem, RunEvent, RunUsage
from wellkept.prompt.rules_tokens import KINDS, MAX_IMAGE_BYTES, MAX_IMAGES, check_image, decode_image
from wellkept.prompt.transcripts import MAX_MESSAGE_CHARS
from wellkept.server.http.auth import CurrentTenant, CurrentWellkept
from wellkept.server.http.errors import located
from wellkept.server.http.routing import ADMIN, READ, WRITE, Router
from wellkept.server.paging import READ_LARGE_AT_ONCE, PagedList, decode_cursor
from wellkept.server.rest import shapes
from wellkept.server.rest.shapes import Flag, RecordBody, RequestBody, describes, field


class AgentPatch(shapes.Patch):
    """Changes to an agent; omitted fields stay. `active` is accepted for `is_active`."""

    other_names: ClassVar[Mapping[str, str]] = {"active": "is_active"}
    name: str = field("", minLength=1, maxLength=MAX_CHARS["name"])
    system_prompt: str = field("", maxLength=MAX_CHARS["system_prompt"])
    model: str = field("", maxLength=MAX_CHARS["model"])
    tools: list[str] = field([], "Names of tools or sets; empty: all.", maxItems=MAX_TOOLS)
    knowledge_categories: list[str] = field([], "Categories of documents it may search; empty: all.", maxItems=100)
    colour: str = field("", maxLength=MAX_CHARS["colour"])
    icon: str = field("", maxLength=MAX_CHARS["icon"])
    is_active: Flag = True


class NewAgent(AgentPatch):
    """A new agent; the name defaults to its id."""

    id: str = field(
        description="Letters, digits and . _ - @ : +; begins with a letter, digit or _.",
        minLength=1,
        maxLength=128,
        example="atlas",
    )


# One field for each kind, so that a new kind needs no change here.
_KINDS: dict[str, Any] = {kind.value: int for kind in Kind}
MemoriesCount: type[BaseModel] = create_model(
    "MemoriesCount", __doc__="Number of memories of each kind, without archived ones.", **_KINDS
)


@describes(Agent)
class AgentBody(RecordBody):
    """An agent."""

    id: str
    active: bool = field(description="The same as is_active.")
    memories_count: MemoriesCount  # type: ignore[valid-type]


class AgentPage(shapes.Page[AgentBody]):
    """Agents by id."""


LISTING = PagedList("agents", decode_cursor, attrgetter("id"), "", READ_LARGE_AT_ONCE)

router = Router(prefix="/api/agents", tags=["agents"])
AgentId = Annotated[str, Path(description="The agent's id.", examples=["atlas"])]


@router.get("", scope=READ)
def list_agents(tenant: CurrentTenant, paging: Annotated[shapes.Paging, Query()]) -> AgentPage:
    """List all agents, by id."""
    found, cursor = LISTING.read(tenant.agents.list, paging)
    return AgentPage(items=_bodies(tenant, found), next_cursor=cursor)


@router.post("", scope=WRITE, status_code=201)
def create_agent(tenant: CurrentTenant, body: NewAgent) -> AgentBody:
    """Create an agent with a name and a prompt. The first memory of an agent creates it, too."""
    fields = body.model_dump(exclude_unset=True, exclude={"id"})
    return _body(tenant, tenant.agents.add(body.id, **cast(AgentFields, fields)))


@router.get("/{agent}", scope=READ)
def get_agent(tenant: CurrentTenant, agent: AgentId) -> AgentBody:
    """Return an agent, with the number of its memories of each kind."""
    return _body(tenant, tenant.agents.get(agent))


@router.patch("/{agent}", scope=WRITE)
def update_agent(tenant: CurrentTenant, agent: AgentId, body: AgentPatch) -> AgentBody:
    """Change an agent; omitted fields stay."""
    fields = body.model_dump(exclude_unset=True)
    return _body(tenant, tenant.agents.update(agent, **cast(AgentFields, fields)))


@router.delete("/{agent}", scope=ADMIN, status_code=204)
def delete_agent(tenant: CurrentTenant, agent: AgentId) -> None:
    """Delete an agent and everything it owns permanently."""
    tenant.agents.delete(agent)


def _body(tenant: TenantMemory, agent: Agent) -> AgentBody:
    return _bodies(tenant, [agent])[0]


def _bodies(tenant: TenantMemory, agents: Sequence[Agent]) -> list[AgentBody]:
    counts = tenant.agents.count_memories_by_agent([agent.id for agent in agents])
    return [AgentBody.of(each, memories_count=counts[each.id], active=each.is_active) for each in agents]


class RunBody(RequestBody):
    """A prompt for an agent."""

    agent: str | None = field(None, "The agent; null: the one of the settings.", example="atlas")
    session_id: str | None = field(None, "The conversation it belongs to; null starts a new one.", example="s-1")
    prompt: str = field(minLength=1, maxLength=MAX_MESSAGE_CHARS, example="Which indentation?")
    stream: Flag = field(False, "Answer with server-sent events.")


class VisionBody(RunBody):
    """A prompt for an agent, with images."""

    images: list[str] = field(
        description=f"{KINDS} files of at most {MAX_IMAGE_BYTES // 1024 // 1024} MiB, in base64 or as data: URLs.",
        minItems=1,
        maxItems=MAX_IMAGES,
    )


@describes(RunUsage)
class UsageBody(RecordBody):
    """Cost of an answer."""


@describes(RecalledItem)
class RecalledBody(RecordBody):
    """A memory that the model was shown at its first call."""


class ToolUseBody(BaseModel):
    """A tool the agent used."""

    name: str
    ok: bool = field(description="True if the call succeeded.")


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

runs = Router(prefix="/agent", tags=["reference agent"])
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerBody,
        "description": "The answer; with `stream`, the events delta, tool, done and error.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
_BODY = shapes.describe_form(
    {
        **dict.fromkeys(("prompt", "agent", "session_id"), shapes.TEXT_FIELD),
        "stream": shapes.FLAG_FIELD,
        IMAGES: {"type": "array", "items": shapes.FILE_FIELD},
    },
    ["prompt", IMAGES],
    {"application/json": {"schema": VisionBody.model_json_schema()}},
)


async def current_runner(request: Request) -> AgentRunner:
    """Return the runner of this application."""
    runner: AgentRunner = request.app.state.runner
    return runner


CurrentRunner = Annotated[AgentRunner, Depends(current_runner)]


@runs.post("/run", scope=WRITE, response_model=AnswerBody, responses=_EVENTS)
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
        if shapes.is_form(request):
            async with request.form(max_files=MAX_IMAGES, max_fields=2 * len(FORM_FIELDS)) as form:
                return await _parse_form(form.multi_items())
        sent = await request.body()
        body: VisionBody = await request.app.state.reader.read(sent, partial(VisionBody.model_validate_json, sent))
    except ValidationError as error:
        raise RequestValidationError(located(error)) from error
    return body, tuple(decode_image(each, number=place) for place, each in enumerate(body.images, 1))


async def _parse_form(fields: list[tuple[str, Any]]) -> tuple[RunBody, tuple[Image, ...]]:
    """Raises: Invalid, ValidationError."""
    values = shapes.check_form(dict(fields), FORM_FIELDS, file=IMAGES, flag="stream")
    images: list[Image] = []
    for value in (each for name, each in fields if name == IMAGES):
        number = len(images) + 1
        sent = isinstance(value, UploadFile)
        images.append(check_image(await value.read(), number=number) if sent else decode_image(value, number=number))
    return RunBody.model_validate(values), tuple(images)


@runs.post("/vision", scope=WRITE, response_model=AnswerBody, responses=_EVENTS, openapi_extra=_BODY)
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
