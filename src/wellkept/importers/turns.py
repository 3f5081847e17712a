"""Conversion of messages to chat turns: a user's prompt and the final answer to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from wellkept.model import ForeignItem, ForeignTurn, RefusedItem

NO_ANSWER = "It has no answer; only answered prompts are imported."


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message that a person saw."""

    is_user: bool
    text: str
    at: datetime | None


def pair_turns(place: str, session_id: str, messages: Iterable[ChatMessage]) -> Iterator[ForeignItem]:
    """Pair messages into turns: consecutive prompts are joined, and the last of several answers counts."""
    prompts: list[ChatMessage] = []
    answer = ""
    number = 0
    for message in messages:
        if message.is_user and answer:
            number += 1
            yield _make_turn(place, session_id, number, prompts, answer)
            prompts, answer = [], ""
        if message.is_user:
            prompts.append(message)
        elif prompts:
            answer = message.text
    if prompts:
        number += 1
        yield _make_turn(place, session_id, number, prompts, answer)


def _make_turn(place: str, session_id: str, number: int, prompts: list[ChatMessage], answer: str) -> ForeignItem:
    where = f"{place}, turn {number}"
    if not answer:
        return RefusedItem(place=where, reason=NO_ANSWER)
    prompt = "\n\n".join(each.text for each in prompts)
    return ForeignTurn(place=where, session_id=session_id, user=prompt, assistant=answer, created_at=prompts[0].at)
