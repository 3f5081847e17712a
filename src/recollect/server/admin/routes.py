"""All pages of the console."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from recollect.server.admin import (
    agent,
    audit,
    conversations,
    documents,
    entrance,
    keys,
    moving,
    overview,
    proposals,
    seen,
    skills,
    whiteboard,
    why,
)

ROUTERS: Sequence[APIRouter] = [
    each.router
    for each in (
        *(entrance, overview, agent, why, seen, conversations, proposals),
        *(documents, skills, whiteboard, audit, keys, moving),
    )
]
