"""Keeping an agent's prompts short: what is too long for one is stored, and a reference takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Any

from recollect.agent_memory.view import AgentView
from recollect.capturing import captured
from recollect.model import Captured
from recollect.services.capture import COMMAND_OUTPUT


class Capturing(AgentView):
    """The verbs that stand between a tool and a prompt."""

    def capture(
        self,
        output: str,
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """What to put into the prompt for an output: the output itself if it is short, else the line that stands for
        it. Then all of it is stored, and `read_detail` reads it in parts. `source` is the command or tool.

        Raises: Invalid.
        """
        return self.capture_output(
            output,
            source=source,
            status=status,
            type=type,
            session_id=session_id,
            duration=duration,
            metadata=metadata,
        ).text

    def capture_output(
        self,
        output: str | IO[bytes],
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Captured:
        """The same, told with the key; `output` may also be a seekable file, of which only a piece is in memory.

        Raises: Invalid.
        """
        capture = self._services.capture
        keep: Callable[..., Captured] = capture.file if hasattr(output, "read") else capture
        return keep(
            self.owner,
            output,
            source=source,
            status=status,
            type=type,
            session_id=session_id,
            duration=duration,
            metadata=metadata,
        )

    def captured(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A decorator for tool functions, `@atlas.captured` or `@atlas.captured(source=…)`: `recollect.captured` for
        this agent."""
        return captured(self, **options) if function is None else captured(self, **options)(function)
