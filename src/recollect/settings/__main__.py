"""Print the settings table of the documentation: `python -m recollect.settings`."""

from __future__ import annotations

import sys

from recollect.settings import markdown, table

sys.stdout.write(markdown(table()) + "\n")
