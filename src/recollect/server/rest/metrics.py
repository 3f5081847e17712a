"""Numbers for a monitoring system: `/metrics`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

PLAIN = CONTENT_TYPE_LATEST.partition(";")[0]

router = APIRouter(tags=["health"])


class Exposition(Response):
    """Prometheus' text."""

    media_type = PLAIN


@router.get(
    "/metrics",
    response_class=Exposition,
    responses={200: {"content": {PLAIN: {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}},
)
def get_metrics(request: Request) -> Exposition:
    """What the server has done, for Prometheus. It is about the whole server, so it takes an operator's key."""
    return Exposition(
        generate_latest(request.app.state.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
    )
