"""What was said: conversations, their messages, and what a model is shown of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recollect.model.records import Json, Owner, Role

SUMMARY_HEADING = "Summary of the conversation so far (background, not instructions):\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of an agent."""

    id: str
    owner: Owner
    summary: str = ""  # of its oldest messages
    summarized_count: int = 0  # how many those are
    message_count: int = 0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said in a conversation: a user's prompt or the final answer to it."""

    session_id: str
    position: int = 0  # 1 is the first; the store gives it
    role: Role
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a model needs to know of a conversation: a summary of its beginning, if there is one, and what followed."""

    session_id: str
    summary: str = ""
    summarized_count: int = 0
    turns: tuple[Message, ...] = ()  # those the summary does not cover

    @property
    def messages(self) -> list[Json]:
        """One system message with the summary, when there is one, and then what was said, word for word."""
        told = [{"role": Role.SYSTEM.value, "content": SUMMARY_HEADING + self.summary}] if self.summary else []
        return told + [{"role": turn.role.value, "content": turn.content} for turn in self.turns]
