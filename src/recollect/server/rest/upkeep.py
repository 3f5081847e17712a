"""Looking after what is stored: `/api/maintenance` and `/api/secrets`."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from recollect.server.auth import CurrentRecollect, CurrentTenant
from recollect.server.rest.answers import Allowed, Maintained, Scanned, SightingBody
from recollect.server.rest.bodies import Allowance

router = APIRouter(prefix="/api", tags=["upkeep"])


@router.post("/maintenance")
def maintain(recollect: CurrentRecollect) -> Maintained:
    """Let memories fade, in the whole store: archive what expired, what decayed and what exceeds the quota; make
    missing vectors. It takes an operator's key. 409 while another process is at it."""
    report = recollect.maintain()
    return Maintained(archived=report.archived, **asdict(report))


@router.post("/secrets/scan")
def scan_for_secrets(tenant: CurrentTenant) -> Scanned:
    """Looks at every stored memory of every agent, whatever its state, for what seems to be a secret."""
    found = [SightingBody(agent=each.owner.agent, id=each.id, rules=list(each.rules)) for each in tenant.scan()]
    return Scanned(items=found)


@router.post("/secrets/allow")
def allow_secret(tenant: CurrentTenant, body: Allowance) -> Allowed:
    """Say that what looks like a secret in a text is none. Only a hash of it is kept."""
    return Allowed(allowed=tenant.allow_secret(body.text))
