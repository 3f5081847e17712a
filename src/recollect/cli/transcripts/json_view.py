"""Conversations for programs."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.cli.json_text import write_json
from recollect.cli.view import json_record
from recollect.model import Conversation, Json, Message, Session


class JsonTranscripts:
    """The part of `View` that is about conversations, as JSON."""

    def sessions(self, sessions: Sequence[Session], *, next_cursor: str | None) -> None:
        write_json({"items": [_session(each) for each in sessions], "next_cursor": next_cursor})

    def messages(self, messages: Sequence[Message], *, next_cursor: int | None) -> None:
        write_json({"items": [json_record(each) for each in messages], "next_cursor": next_cursor})

    def conversation(self, conversation: Conversation) -> None:
        write_json(
            {
                "session_id": conversation.session_id,
                "summary": conversation.summary,
                "summarizedCount": conversation.summarized_count,
                "messages": conversation.messages,
            }
        )

    def session_deleted(self, id: str) -> None:
        write_json({"ok": True, "id": id})


def _session(session: Session) -> Json:
    record = json_record(session)
    count = record.pop("summarized_count")
    return {"id": session.id, "agent_id": session.owner.agent, **record, "summarizedCount": count}
