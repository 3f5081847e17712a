"""Numbers for a monitoring system: `/metrics`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from recollect.errors import Forbidden
from recollect.server.auth import CurrentAccess, CurrentRecollect

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
def get_metrics(request: Request, recollect: CurrentRecollect, access: CurrentAccess) -> Exposition:
    """What the server has done, for Prometheus. It is about the whole server, so it takes a key of the server's own
    tenant."""
    if not access.is_operator and access.tenant != recollect.settings.tenant:
        raise Forbidden("These numbers are about the whole server; they take a key of its own tenant.")
    return Exposition(
        generate_latest(request.app.state.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
    )
