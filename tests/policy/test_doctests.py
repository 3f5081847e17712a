"""The examples in our docstrings are true."""

from __future__ import annotations

import doctest
import importlib

from tests.house.source import MODULES


def test_the_examples_in_docstrings_are_true() -> None:
    names = [module.name for module in MODULES if ">>> " in module.source]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}

    assert {name: result.failed for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) > 100
