"""Fresh stores of the test bed, and the verbs it needs from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from wellkept import Memory, Settings, Wellkept
from wellkept.api.agent import AgentMemory

ENDINGS = {"superseded", "wrong", "over"}
PAGE = 100


def open_bed(settings: Settings, clock: Callable[[], datetime]) -> AbstractContextManager[Wellkept]:
    """Open an empty store in memory with a clock that the caller moves."""
    return Wellkept(settings=replace(settings, url=":memory:", workspace=None), clock=clock)


def list_all(agent: AgentMemory, *, state: str = "all") -> list[Memory]:
    """Return every memory of an agent, also what has ended or is archived."""
    found: list[Memory] = []
    page: Sequence[Memory] = agent.list(state=state, limit=PAGE)  # type: ignore[arg-type]
    while page:
        found += page
        page = agent.list(state=state, limit=PAGE, before=page[-1].id)  # type: ignore[arg-type]
    return found


def has_ended(memory: Memory) -> bool:
    """Tell whether something took the place of a memory, corrected it or ended it."""
    return getattr(memory, "ended_as", None) in ENDINGS
