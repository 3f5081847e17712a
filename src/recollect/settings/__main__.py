"""`python -m recollect.settings` writes the table of the documentation."""

from __future__ import annotations

import sys

from recollect.settings import markdown, table

sys.stdout.write(markdown(table()) + "\n")
