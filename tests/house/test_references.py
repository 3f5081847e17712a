"""Documents and docstrings name modules that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import MODULES, PACKAGE, reject

ROOT = Path(__file__).parents[2]
PARTS = "policy services store server cli api ports providers tools runner"
# `server.json` is a file.
REFERENCE = re.compile(rf"`(?:wellkept\.)?((?:{'|'.join(PARTS.split())})(?:\.(?!json\b)[a-z_]+)+)(?![a-z_(])")


def test_named_modules_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(module.path for module in MODULES)]

    reject(
        (f"{page.relative_to(ROOT)} {name}" for page in pages for name in missing_modules(page.read_text("utf-8"))),
        fix="Name a module of src/wellkept",
    )


def missing_modules(text: str) -> Iterator[str]:
    """Yield references whose second part is neither a module, a package nor a name in the package."""
    for name in REFERENCE.findall(text):
        folder, rest = PACKAGE, name.split(".")
        while rest and (folder / rest[0]).is_dir():
            folder, rest = folder / rest[0], rest[1:]
        is_module = not rest or (folder / f"{rest[0]}.py").exists()
        if not is_module and not re.search(rf"\b{rest[0]}\b", (folder / "__init__.py").read_text("utf-8")):
            yield name
