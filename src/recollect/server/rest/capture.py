"""What of an output enters a prompt: `/api/agents/{agent}/capture`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from recollect.policy.numbers import MAX_SECONDS
from recollect.server.auth import CurrentAgent
from recollect.server.rest.bodies import Given, Number
from recollect.services.details.capture import COMMAND_OUTPUT

router = APIRouter(prefix="/api/agents/{agent}", tags=["details"])


class Output(Given):
    """What a command or a tool answered."""

    output: Annotated[str, Field(description="All of it.")]
    source: Annotated[str, Field(description="The command or tool.", examples=["npm install"])] = ""
    status: Annotated[str, Field(description="How it ended.", examples=["success"])] = ""
    type: Annotated[str, Field(description="A short word for what it is.")] = COMMAND_OUTPUT
    session_id: Annotated[str | None, Field(description="The conversation it belongs to.")] = None
    duration: Annotated[
        Number | None, Field(description="Seconds it took.", json_schema_extra={"minimum": 0, "maximum": MAX_SECONDS})
    ] = None


class CapturedBody(BaseModel):
    """What to put into the prompt instead."""

    text: Annotated[str, Field(description="The output itself if it is short, else the line that stands for it.")]
    captured: Annotated[bool, Field(description="Whether the output was stored.")]
    memory_key: Annotated[str | None, Field(description="Where; null: it is short, and `text` is all of it.")]


@router.post("/capture")
def capture(memory: CurrentAgent, body: Output) -> CapturedBody:
    """Keep an output out of the prompt if it is too long for one. Then all of it is stored when this answers."""
    kept = memory.capture_output(
        body.output,
        source=body.source,
        status=body.status,
        type=body.type,
        session_id=body.session_id,
        duration=body.duration,
    )
    return CapturedBody(text=kept.text, captured=kept.is_captured, memory_key=kept.memory_key)
