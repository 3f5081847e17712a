"""No package grows over its budget, and a budget follows what was saved."""

from __future__ import annotations

import ast

from tests.house.budgets import count_code, count_packages, read_budgets
from tests.house.source import MODULES, reject

SLACK = 0.02
AGAIN = "run: python -m tests.house.budgets"


def test_packages_keep_to_their_budgets() -> None:
    budgets, modules = read_budgets()
    counts = {**count_packages(), "modules": len(MODULES)}
    budgets = {**budgets, "modules": modules}

    reject(
        (
            f"{name}: {count:,}, budget {budgets.get(name, 0):,}"
            for name, count in counts.items()
            if count > budgets.get(name, 0)
        ),
        fix=f"Delete as much as you add; for code that has moved, or a new capability, {AGAIN}",
    )
    reject(
        (
            f"{name}: {counts.get(name, 0):,}, budget {budget:,}"
            for name, budget in budgets.items()
            if counts.get(name, 0) < budget * (1 - SLACK)
        ),
        fix=f"Lower the budgets of what became smaller; {AGAIN}",
    )


def test_only_code_is_counted() -> None:
    source = '"""About\nit."""\n\nX = 1  # why\n# comment\n\ndef f():\n    """Do it."""\n    return """a\n\nb"""\n'

    assert count_code(source, ast.parse(source)) == 5
