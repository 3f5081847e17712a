"""The parts of the corpus: how each is recorded, and how it is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tests.corpus import cli, library, mcp, openapi, rest


@dataclass(frozen=True)
class Part:
    """One part: `record` returns how much there is, `compare` describes what differs."""

    record: Callable[[], int]
    compare: Callable[[], list[str]]


PARTS: Mapping[str, Part] = {
    "openapi": Part(openapi.record, openapi.compare),
    **{f"rest_{area}": Part(partial(rest.record, area), partial(rest.compare, area)) for area in rest.AREAS},
    **{f"cli_{form}": Part(partial(cli.record, form), partial(cli.compare, form)) for form in cli.FORMS},
    "cli_help": Part(cli.record_help, cli.compare_help),
    mcp.NAME: Part(mcp.record, mcp.compare),
    library.RECALLED: Part(library.record_recall, library.compare_recall),
    library.PROMPTS: Part(library.record_prompts, library.compare_prompts),
    library.EXPORT: Part(library.record_export, library.compare_export),
}
