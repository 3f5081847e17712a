"""Path and cookie of the console."""

from __future__ import annotations

from wellkept.server.http.routing import CONSOLE_PATH

PATH = CONSOLE_PATH
COOKIE = "wellkept_console"
