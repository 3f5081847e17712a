"""The table of settings, as the documentation shows it."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.settings.rows import SettingRow


def markdown(rows: Sequence[SettingRow]) -> str:
    """The table of the documentation."""
    lines = ["| Setting | Default | Meaning | Also in files as | Environment |", "|---|---|---|---|---|"]
    for row in rows:
        aliases, environment = (", ".join(f"`{name}`" for name in names) for names in (row.aliases, row.environment))
        default = f"`{row.default}`" if row.default else "(empty)"
        cells = (f"`{row.name}`", default, row.meaning, aliases, environment)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
