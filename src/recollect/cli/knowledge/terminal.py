"""Knowledge for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recollect.cli.view import one_line, safe
from recollect.model import Skill
