"""What asking an agent looks like, and what it answers."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, Strict

from recollect.model import AgentAnswer, Source
from recollect.policy.prompt.images import KINDS, MAX_IMAGE_BYTES, MAX_IMAGES
from recollect.server.rest.bodies import Given
from recollect.services.prompt.transcripts import MAX_MESSAGE_CHARS


class RunBody(Given):
    """What an agent is asked."""

    agent: Annotated[str | None, Field(description="Whose memory; null: as the settings say.", examples=["atlas"])] = (
        None
    )
    session_id: Annotated[
        str | None, Field(description="The conversation it belongs to; null begins a new one.", examples=["s-1"])
    ] = None
    prompt: Annotated[
        str,
        Field(json_schema_extra={"minLength": 1, "maxLength": MAX_MESSAGE_CHARS}, examples=["Which indentation?"]),
    ]
    stream: Annotated[bool, Strict(), Field(description="Whether to answer with server-sent events.")] = False


class VisionBody(RunBody):
    """What an agent is asked about images."""

    images: Annotated[
        list[str],
        Field(
            description=f"{KINDS} files of at most {MAX_IMAGE_BYTES // 1024 // 1024} MiB, in base64 or as data: URLs.",
            json_schema_extra={"minItems": 1, "maxItems": MAX_IMAGES},
        ),
    ]


class _Record(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class UsageBody(_Record):
    """What an answer has cost."""

    requests: Annotated[int, Field(description="How often the model was asked.")]
    tool_calls: int
    input_tokens: Annotated[int, Field(description="As the model's endpoint counts them; 0 if it does not say.")]
    output_tokens: int


class RecalledBody(_Record):
    """Something out of memory that the model was shown at its first call."""

    id: str
    source: Annotated[str, Field(description=f"One of {', '.join(Source)}.")]
    block: Annotated[str, Field(description="The part of the prompt it stood in, or the purpose it was recalled for.")]
    score: float | None


class ToolUseBody(BaseModel):
    """A tool the agent used."""

    name: str
    ok: Annotated[bool, Field(description="Whether it did what it was asked to.")]


class AnswerBody(BaseModel):
    """What an agent answered. The turn is on disk."""

    response: str
    session_id: str
    agent: str
    model: str
    usage: UsageBody
    call_id: Annotated[str, Field(description="Of the first prompt: GET …/context-calls/{id} tells what was shown.")]
    recalled: list[RecalledBody]
    tools: list[ToolUseBody]
    purposes: Annotated[list[str], Field(description="What was looked back for before the first call.")]

    @classmethod
    def of(cls, answer: AgentAnswer) -> Self:
        told: dict[str, Any] = {name: getattr(answer, name) for name in ("response", "session_id", "agent", "model")}
        return cls(
            **told,
            usage=UsageBody.model_validate(answer.usage),
            call_id=answer.call_id,
            recalled=[RecalledBody.model_validate(each) for each in answer.recalled],
            tools=[ToolUseBody(name=each.name, ok=each.is_ok) for each in answer.tools],
            purposes=list(answer.purposes),
        )
