"""What agents are taught by files: `/api/skills`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.server.auth import CurrentRecollect, CurrentTenant, readable_agent
from recollect.server.rest.knowledge_shapes import SkillBody, SkillFilter, SkillPage

router = APIRouter(prefix="/api/skills", tags=["knowledge"])


@router.get("")
def list_skills(
    recollect: CurrentRecollect, tenant: CurrentTenant, wanted: Annotated[SkillFilter, Query()]
) -> SkillPage:
    """Every skill, whole, by name; with `agent`, those this agent gets. Files are read again when they changed."""
    found = readable_agent(tenant, wanted.agent).skills() if wanted.agent else recollect.skills()
    return SkillPage(
        items=[SkillBody.model_validate(each) for each in found], problems=list(recollect.skill_problems())
    )
