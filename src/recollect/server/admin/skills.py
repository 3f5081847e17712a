"""What agents are taught by files."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from recollect.server.admin.logins import PATH
from recollect.server.admin.pages import page
from recollect.server.auth import CurrentRecollect

router = APIRouter(prefix=f"{PATH}/skills", include_in_schema=False)


@router.get("")
def list_skills(request: Request, recollect: CurrentRecollect) -> Response:
    """Every skill, whole, by name, and what is wrong with their files."""
    return page(request, "skills.html", skills=recollect.skills(), problems=recollect.skill_problems())
