"""The reference agent behind `/agent/run`, `/agent/vision`, `wellkept chat` and `wellkept chat --once`.

`AgentRunner` is light to import; the framework (`loop`) is imported when the first agent runs.
"""

from __future__ import annotations

from wellkept.agent.run import AgentRunner

__all__ = ["AgentRunner"]
