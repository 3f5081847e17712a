"""The reference agent behind `/agent/run`, `/agent/vision`, `recollect chat` and `recollect ask`.

`AgentRunner` is light to import; the framework (`loop`) is imported when the first agent runs.
"""

from __future__ import annotations

from recollect.runner.run import AgentRunner

__all__ = ["AgentRunner"]
