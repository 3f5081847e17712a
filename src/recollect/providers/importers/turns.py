"""Turns from messages: a user's prompt and the final answer to it, as conversations are kept here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from recollect.model import ForeignItem, ForeignTurn, Refused

NO_ANSWER = "It was not answered, and a turn is a prompt with its answer."


@dataclass(frozen=True, slots=True)
class Said:
    """One message that a person saw."""

    is_user: bool
    text: str
    at: datetime | None


def turns(place: str, session_id: str, messages: Iterable[Said]) -> Iterator[ForeignItem]:
    """Prompts one behind the other are one; of several answers, the last is the final one."""
    asked: list[Said] = []
    answer = ""
    number = 0
    for message in messages:
        if message.is_user and answer:
            number += 1
            yield _turn(place, session_id, number, asked, answer)
            asked, answer = [], ""
        if message.is_user:
            asked.append(message)
        elif asked:
            answer = message.text
    if asked:
        number += 1
        yield _turn(place, session_id, number, asked, answer)


def _turn(place: str, session_id: str, number: int, asked: list[Said], answer: str) -> ForeignItem:
    where = f"{place}, turn {number}"
    if not answer:
        return Refused(place=where, reason=NO_ANSWER)
    prompt = "\n\n".join(each.text for each in asked)
    return ForeignTurn(place=where, session_id=session_id, user=prompt, assistant=answer, created_at=asked[0].at)
