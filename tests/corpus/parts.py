"""The parts of the corpus: how each is recorded, and how it is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tests.corpus import openapi, rest


@dataclass(frozen=True)
class Part:
    """One part: `record` returns how much there is, `compare` describes what differs."""

    record: Callable[[], int]
    compare: Callable[[], list[str]]


PARTS: Mapping[str, Part] = {
    "openapi": Part(openapi.record, openapi.compare),
    **{f"rest_{area}": Part(partial(rest.record, area), partial(rest.compare, area)) for area in rest.AREAS},
}
