"""Every promise is proved by a test, or stands openly on the list of what is still to come."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.promises.requirements import NOT_YET, PROMISES

TESTS = Path(__file__).parents[1]


def claims() -> dict[str, list[str]]:
    """Which tests say they prove which promise, read from the source."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.proves":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{path.name}:{node.lineno} must name promises plainly"
                    found.setdefault(str(argument.value), []).append(f"{path.name}:{node.lineno}")
    return found


def test_every_promise_is_proved_or_openly_missing() -> None:
    assert set(PROMISES) - set(claims()) == NOT_YET


def test_no_test_proves_what_nobody_promised() -> None:
    assert set(claims()) <= set(PROMISES)
