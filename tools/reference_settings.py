"""Write docs/reference/settings.md from the fields of `Settings`."""

from __future__ import annotations

from pathlib import Path

from wellkept.settings import table

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
HEAD = """\
# All settings

Written from the code by `python -m tools.reference`. Where settings are found: [settings](../settings.md).
Several values are a list in files, and have commas between them elsewhere.

| Setting | Default | Meaning | Also in files as | Environment |
|---|---|---|---|---|
"""


def render_page() -> str:
    """Return the text of the page."""
    lines = []
    for row in table():
        aliases, environment = (", ".join(f"`{name}`" for name in names) for names in (row.aliases, row.environment))
        default = f"`{row.default}`" if row.default else "(empty)"
        cells = (f"`{row.name}`", default, row.meaning, aliases, environment)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return HEAD + "".join(lines)
