"""Import all of wellkept without the modules that only POSIX systems have, store and recall: what Windows can do.

`python tests/other_systems.py` needs no package but what it tests.
"""

from __future__ import annotations

import builtins
import importlib
import tempfile
from pathlib import Path
from typing import Any, cast

HIDDEN = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
LEFT_OUT = {"integrations", "agent", "pdf_child", "__main__"}
"""Parts that need frameworks, and programs."""

PACKAGE = Path(__file__).parents[1] / "src" / "wellkept"
original = builtins.__import__


def hide(name: str, globals: Any = None, *rest: Any) -> Any:
    """Import a module, unless one of ours asks for a hidden one; other packages have their own ways on Windows."""
    if name in HIDDEN and globals and globals["__name__"].startswith("wellkept"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return original(name, globals, *rest)


def main() -> None:
    """Import everything, and find a fact in other words."""
    builtins.__import__ = cast(Any, hide)
    parts = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in sorted(PACKAGE.rglob("*.py"))]
    names = [".".join(each).removesuffix(".__init__") for each in parts if not {*each} & LEFT_OUT]
    for name in names:
        importlib.import_module(name)
    wellkept = importlib.import_module("wellkept")
    with tempfile.TemporaryDirectory() as folder, wellkept.Wellkept(Path(folder) / "memory.db") as store:
        agent = store.agent("atlas")
        agent.remember("Prefers trains to flights")
        agent.remember("Was born in Porto")
        print(len(names), agent.recall("How would they rather travel?")[0].text)


if __name__ == "__main__":
    main()
