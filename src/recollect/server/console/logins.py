"""Path and cookie of the console."""

from __future__ import annotations

from recollect.server.http.routing import CONSOLE_PATH

PATH = CONSOLE_PATH
COOKIE = "recollect_console"
