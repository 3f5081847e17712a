"""Talking to an agent through a pipe: the answers, and nothing else, on standard output."""

from __future__ import annotations

import sys

from recollect.cli.view import safe
from recollect.model import AgentAnswer, ToolUse


class PlainChat:
    """The part of `View` that is about talking, as lines."""

    def chat_begun(self, agent: str, model: str, session_id: str | None) -> None:
        """Whoever reads a pipe knows whom they asked."""

    def answer_piece(self, text: str) -> None:
        sys.stdout.write(safe(text))
        sys.stdout.flush()

    def tool_used(self, use: ToolUse) -> None:
        """The answer is what counts."""

    def answered(self, answer: AgentAnswer) -> None:
        print(flush=True)

    def chat_note(self, text: str) -> None:
        print(safe(text), file=sys.stderr)
