"""The examples in our docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from recollect import policy

POLICIES = [module.name for module in pkgutil.walk_packages(policy.__path__, "recollect.policy.")]
WITH_EXAMPLES = [
    "recollect.store",
    "recollect.store.queries",
    "recollect.store.postgres.index",
    "recollect.store.tables.rows",
    "recollect.providers.importers.files",
]


@pytest.mark.parametrize("name", [*POLICIES, *WITH_EXAMPLES])
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_these_modules_do_have_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).attempted > 0
