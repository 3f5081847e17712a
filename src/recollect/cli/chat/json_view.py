"""Talking to an agent, for programs: one document for each answer."""

from __future__ import annotations

import sys
from dataclasses import asdict

from recollect.cli.json_text import write_json
from recollect.cli.view import safe
from recollect.model import AgentAnswer, ToolUse


class JsonChat:
    """The part of `View` that is about talking, as JSON."""

    def chat_begun(self, agent: str, model: str, session_id: str | None) -> None:
        """It is in the answer."""

    def answer_piece(self, text: str) -> None:
        """It is in the answer."""

    def tool_used(self, use: ToolUse) -> None:
        """It is in the answer."""

    def answered(self, answer: AgentAnswer) -> None:
        tools = [{"name": use.name, "ok": use.is_ok} for use in answer.tools]
        write_json({**asdict(answer), "tools": tools})

    def chat_note(self, text: str) -> None:
        print(safe(text), file=sys.stderr)
