"""Print the changes of one version: its part of CHANGELOG.md.

`python tools/release_notes.py` prints those of the current version. Given a tag, such as v0.2.0, it fails unless it is
the tag of the current version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read_version() -> str:
    """Return the version of the package, without importing it."""
    source = (ROOT / "src" / "wellkept" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE)
    return str(version)


def read_notes(changes: str, version: str) -> str:
    """Return the part about a version.

    Raises: ValueError when there is none, or when it is empty.
    """
    parts = re.split(r"^## (.+)$", changes, flags=re.MULTILINE)
    found = {heading.split()[0]: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    if not found.get(version):
        raise ValueError(f'CHANGELOG.md says nothing about {version}; add a part "## {version}".')
    return found[version]


def main(arguments: list[str]) -> int:
    version = read_version()
    if arguments and arguments[0].removeprefix("v") != version:
        print(f"The tag {arguments[0]} is not the version of the package, {version}.", file=sys.stderr)
        return 1
    print(read_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
