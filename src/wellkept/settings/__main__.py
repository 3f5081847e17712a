"""Print the settings table of the documentation: `python -m wellkept.settings`."""

from __future__ import annotations

import sys

from wellkept.settings import markdown, table

sys.stdout.write(markdown(table()) + "\n")
