"""Our own source, read as a tree: what the tests of the house ask about."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import recollect

PACKAGE = Path(recollect.__file__).parent


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path

    @property
    def name(self) -> str:
        """As it is imported: "recollect.store.tables.rows"."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def part(self) -> str:
        """Which part of the house it is in: "store", "api"; the package's own __init__ is "recollect"."""
        return self.name.split(".")[1] if "." in self.name else self.name

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @property
    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)

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
