"""Lines of code for each part of `wellkept`, as `budgets.toml` keeps them.

Run it after a change that makes a package smaller, and commit the file with the change: python -m tests.house.budgets
It writes today's values and names what has grown, which the change has to justify.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

from tests.house.source import MODULES, PACKAGE

BUDGETS = Path(__file__).with_name("budgets.toml")
ROOT = "wellkept"
"""Name of the modules that are in no package."""

NO_CODE = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
HEAD = """\
# Lines of code without blanks, comments and docstrings for each package below src/wellkept, and the number of modules.
# They may only fall. Written by: python -m tests.house.budgets
"""

OPTIONAL = ("agent", "client", "evaluation", "importers", "integrations", "server/console", "testing")
"""Parts that a program can do without; all else is the core."""


def count_code(source: str, tree: ast.Module) -> int:
    """Return the number of lines that are neither blank nor comment nor docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node):
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def count_packages() -> dict[str, int]:
    """Return the lines of code of each package, by name."""
    counts: Counter[str] = Counter()
    for module in MODULES:
        parts = module.path.relative_to(PACKAGE).parts
        part = "/".join(parts[:2])
        name = part if part in OPTIONAL else parts[0] if len(parts) > 1 else ROOT
        counts[name] += count_code(module.source, module.tree)
    return dict(sorted(counts.items()))


def read_budgets() -> tuple[dict[str, int], int]:
    """Return the budget of each package, and that of modules."""
    read = tomllib.loads(BUDGETS.read_text("utf-8"))
    return {**read["core"], **read["optional"]}, read["modules"]


def main() -> None:
    before, modules = read_budgets() if BUDGETS.exists() else ({}, 0)
    now = count_packages()
    text = f"{HEAD}modules = {len(MODULES)}\n"
    for section, is_optional in (("core", False), ("optional", True)):
        rows = {name: count for name, count in now.items() if (name in OPTIONAL) is is_optional}
        text += f"\n[{section}] # {sum(rows.values())} in all\n"
        text += "".join(f'"{name}" = {count}\n' for name, count in rows.items())
    BUDGETS.write_text(text, "utf-8")
    for name in sorted({*before, *now}):
        if before.get(name, 0) != now.get(name, 0):
            print(f"{name}: {before.get(name, 0)} -> {now.get(name, 0)}")
    print(f"all: {sum(before.values())} -> {sum(now.values())}; modules: {modules} -> {len(MODULES)}")


if __name__ == "__main__":
    main()
