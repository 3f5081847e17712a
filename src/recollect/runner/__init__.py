"""The reference agent: one component behind `/agent/run`, `/agent/vision`, `recollect chat` and `recollect ask`.

`AgentRunner` is light to import; what it runs agents with (`loop`) is imported when the first one runs.
"""

from __future__ import annotations

from recollect.runner.run import AgentRunner

__all__ = ["AgentRunner"]
