"""Talking to an agent, for people: the answer as it comes, and what went into it in one quiet line."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from recollect.cli.view import mark, safe
from recollect.model import AgentAnswer, ToolUse


class TerminalChat:
    """The part of `View` that is about talking, with colours."""

    _console: Console
    _is_within_line = False

    def chat_begun(self, agent: str, model: str, session_id: str | None) -> None:
        going_on = f", going on with {safe(session_id)}" if session_id is not None else ""
        line = Text.assemble((safe(agent), "cyan"), (f" by {safe(model)}{going_on}. /help lists commands.", "dim"))
        self._console.print(line)

    def answer_piece(self, text: str) -> None:
        shown = safe(text)
        self._console.print(Text(shown), end="", soft_wrap=True)
        self._is_within_line = not shown.endswith("\n")

    def tool_used(self, use: ToolUse) -> None:
        self._end_line()
        self._console.print(Text.assemble((f"{mark(use.is_ok)} ", "green" if use.is_ok else "red"), (use.name, "dim")))

    def answered(self, answer: AgentAnswer) -> None:
        self._end_line()
        shown = len(answer.recalled)
        tokens = answer.usage.input_tokens + answer.usage.output_tokens
        parts = [f"{shown} from memory" if shown else "", f"{tokens:,} tokens" if tokens else "", answer.session_id]
        self._console.print(Text(" · ".join(safe(part) for part in parts if part), style="dim"))

    def chat_note(self, text: str) -> None:
        self._end_line()
        if text:
            self._console.print(Text(safe(text), style="dim"))

    def _end_line(self) -> None:
        if self._is_within_line:
            self._console.print()
            self._is_within_line = False
