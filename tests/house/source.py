"""Our own source as syntax trees, and the one way in which a rule reports what breaks it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

import wellkept

PACKAGE = Path(wellkept.__file__).parent
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path

    @property
    def name(self) -> str:
        """As it is imported: "wellkept.store.tables.rows"."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def part(self) -> str:
        """Which part of the house it is in: "store", "api"; the package's own __init__ is "wellkept"."""
        return self.name.split(".")[1] if "." in self.name else self.name

    @cached_property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def length(self) -> int:
        """The number of its lines."""
        return len(self.source.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    @property
    def texts(self) -> Iterator[tuple[str, int]]:
        """Each string literal with its line, docstrings included."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, node.lineno

    @property
    def docstrings(self) -> Iterator[tuple[str, int]]:
        """Each docstring with its line, also those below a constant or a field."""
        for node in self.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = node.value.value
                if isinstance(text, str):
                    yield text, node.lineno

    @property
    def requirements(self) -> set[str]:
        """The top-level packages it imports."""
        return {source.split(".")[0] for source, _ in self.imports()}

    def imports(self, *, at_run_time: bool = False) -> Iterator[tuple[str, str]]:
        """Each thing imported, as (module, name in it or ""); also those named to `import_module`."""
        for node in ast.walk(_without_types(self.tree)) if at_run_time else self.nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Call) and _dotted(node.func).endswith("import_module"):
                yield from ((str(named.value), "") for named in node.args[:1] if isinstance(named, ast.Constant))

    def calls(self) -> Iterator[tuple[str, int]]:
        """Each call as written, "datetime.now", with its line."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield _dotted(node.func), node.lineno

    def at(self, line: int) -> str:
        """A place in it, as editors and terminals open it."""
        return f"{self.path.relative_to(REPOSITORY)}:{line}"

    def __str__(self) -> str:
        return self.name


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _without_types(tree: ast.Module) -> ast.Module:
    body = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module(body=body, type_ignores=[])


def dotted(node: ast.expr) -> str:
    """An attribute as written; "" for anything else."""
    return _dotted(node)


MODULES = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def reject(offenders: Iterable[str], *, fix: str) -> None:
    """Fail with one line for each offender."""
    found = sorted(offenders, key=_natural)
    if found:
        pytest.fail(f"{fix} ({len(found)} found)\n  " + "\n  ".join(found), pytrace=False)


def _natural(text: str) -> list[str | int]:
    """Order line 48 before line 290."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", text)]
