"""What requests and answers about skills look like."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from recollect.server.rest.bodies import Given


class SkillFilter(Given):
    """Which skills to list."""

    is_query: ClassVar[bool] = True
    agent: Annotated[str, Field(description="Only what this agent gets.", examples=["atlas"])] = ""


class SkillBody(BaseModel):
    """What agents are taught by one file."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    description: str
    body: Annotated[str, Field(description="All of it: a skill is never cut.")]
    agents: Annotated[list[str], Field(description="Who gets it; empty: everybody.")]
    meta: Annotated[dict[str, Any], Field(description="What else the file's front matter says.")]


class SkillPage(BaseModel):
    """Skills by name."""

    items: list[SkillBody]
    next_cursor: str | None = None
    problems: Annotated[list[str], Field(description="What is wrong with the files; the last good ones stay in use.")]
