"""The Model Context Protocol: an agent's memory as tools, resources and prompts for any host that speaks it.

`protocol` answers requests, the same over every transport; `stdio` and `http` are the transports.
"""

from __future__ import annotations

from recollect.server.mcp.client import select_sets
from recollect.server.mcp.protocol import build_server
from recollect.server.mcp.stdio import run_stdio

__all__ = ["build_server", "run_stdio", "select_sets"]
