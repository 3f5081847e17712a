"""How far a memory can be trusted, by where it came from."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.model import Kind, Origin

TRUST: Mapping[Origin, float] = {
    Origin.USER: 1.0,
    Origin.AGENT: 0.8,
    Origin.TOOL: 0.5,
    Origin.IMPORT: 0.5,
    Origin.MODEL: 0.4,
}

CORE_NEEDS = 0.8
"""Core is in every prompt: what is trusted less waits for somebody to look at it."""

LOW_TRUST = "low trust"


def reason_to_hold(kind: Kind, origin: Origin) -> str | None:
    """Why a memory has to wait for a person, if it has to.

    >>> reason_to_hold(Kind.CORE, Origin.TOOL), reason_to_hold(Kind.NOTE, Origin.TOOL)
    ('low trust', None)
    """
    return LOW_TRUST if kind is Kind.CORE and TRUST[origin] < CORE_NEEDS else None
