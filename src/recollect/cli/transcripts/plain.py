"""Conversations for pipes and files."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.view import one_line, plain_time, safe
from recollect.model import Conversation, Message, Session

EMPTY = "-"


class PlainTranscripts:
    """The part of `View` that is about conversations, as lines."""

    def sessions(self, sessions: Sequence[Session], *, next_cursor: str | None) -> None:
        for each in sessions:
            used = plain_time(each.updated_at)
            counts = f"{each.message_count} messages, {each.summarized_count} summarised"
            print("\t".join([safe(each.id), used, counts, one_line(each.summary) or EMPTY]))

    def messages(self, messages: Sequence[Message], *, next_cursor: int | None) -> None:
        for each in messages:
            print("\t".join([str(each.position), each.role.value, one_line(each.content)]))

    def conversation(self, conversation: Conversation) -> None:
        for each in conversation.messages:
            print("\t".join([each["role"], one_line(each["content"])]))

    def session_deleted(self, id: str) -> None:
        print(f"Deleted: {safe(id)}")
