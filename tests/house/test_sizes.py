"""A module fits into one reading, a function onto one screen."""

from __future__ import annotations

import ast

import pytest

from tests.house.source import MODULES, Module

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_is_short(module: Module) -> None:
    assert len(module.source.splitlines()) < MAX_MODULE_LINES


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_function_is_short(module: Module) -> None:
    functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {each.name: (each.end_lineno or each.lineno) - each.lineno + 1 for each in functions}

    assert {name: length for name, length in lengths.items() if length >= MAX_FUNCTION_LINES} == {}
