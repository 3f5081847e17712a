"""All pages of the console."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from recollect.server.admin import (
    agent,
    audit,
    conversations,
    entrance,
    keys,
    moving,
    overview,
    proposals,
    seen,
    whiteboard,
    why,
)

ROUTERS: Sequence[APIRouter] = [
    each.router
    for each in (entrance, overview, agent, why, seen, conversations, proposals, whiteboard, audit, keys, moving)
]
