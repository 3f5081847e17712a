"""Conversations for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from recollect.cli.table import new_table
from recollect.cli.view import mark, one_line, safe
from recollect.model import Conversation, Message, Role, Session

COLOURS = {Role.USER.value: "cyan", Role.ASSISTANT.value: "green", Role.SYSTEM.value: "magenta"}


class TerminalTranscripts:
    """The part of `View` that is about conversations, in tables."""

    _console: Console
    _is_narrow: bool

    def sessions(self, sessions: Sequence[Session], *, next_cursor: str | None) -> None:
        if not sessions:
            self._console.print(Text("No conversations yet.", style="dim"))
            return
        more = () if self._is_narrow else ("Last used", "Summary")
        table = new_table("Session", "Messages", *more, whole=["Last used"], numbers=["Messages"])
        for each in sessions:
            used = each.updated_at.astimezone().strftime("%Y-%m-%d %H:%M")
            about = () if self._is_narrow else (used, Text(one_line(each.summary)))
            table.add_row(Text(safe(each.id), style="cyan"), str(each.message_count), *about)
        self._console.print(table)
        if next_cursor is not None:
            self._console.print(Text(f" There is more: add --before {safe(next_cursor)}", style="dim"))

    def messages(self, messages: Sequence[Message], *, next_cursor: int | None) -> None:
        for each in messages:
            self._said(each.role.value, each.content, f"{each.position} ")
        if not messages:
            self._console.print(Text("Nothing was said.", style="dim"))
        if next_cursor is not None:
            self._console.print(Text(f"There is more: add --after {next_cursor}", style="dim"))

    def conversation(self, conversation: Conversation) -> None:
        for each in conversation.messages:
            self._said(each["role"], each["content"])
        if not conversation.messages:
            self._console.print(Text("Nothing was said.", style="dim"))

    def session_deleted(self, id: str) -> None:
        self._console.print(Text(mark(True), style="green"), Text(f"Deleted {safe(id)}"))

    def _said(self, role: str, content: str, number: str = "") -> None:
        self._console.print(Text.assemble((number, "dim"), (f"{role}: ", COLOURS[role]), safe(content)))
