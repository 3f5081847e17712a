"""Each record's kinds, sources and origins are listed once: tables beside those lists leave none of them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

import pytest

from wellkept.cli.commands.memories import COLOURS
from wellkept.memory.rules_kinds import RULES
from wellkept.memory.rules_trust import TRUST
from wellkept.model import Kind, Origin, Source
from wellkept.recall.explain import ID_SHAPES
from wellkept.recall.rules_ranking import SOURCE_PRIORITY
from wellkept.server.rest.agents import MemoriesCount

TABLES: dict[str, tuple[type[StrEnum], Collection[str]]] = {
    "rules": (Kind, RULES),
    "counts": (Kind, MemoriesCount.model_fields),
    "colours": (Kind, COLOURS),
    "priorities": (Source, SOURCE_PRIORITY),
    "ids": (Source, ID_SHAPES),
    "trust": (Origin, TRUST),
}


@pytest.mark.parametrize(("catalogue", "table"), TABLES.values(), ids=TABLES)
def test_a_table_has_an_entry_for_everything_in_its_catalogue(catalogue: Iterable[str], table: Collection[str]) -> None:
    assert set(table) == set(catalogue)
