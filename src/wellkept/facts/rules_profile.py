"""Choose and order the facts of a profile, and mark what was true before."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.facts.rules_statements import read_statement
from wellkept.facts.rules_words import CODES, load_words
from wellkept.language.text import fold
from wellkept.model import EndedAs, Memory

PROFILE_HEADING = "[Facts]"

MAX_CHARS = 2_000
"""Characters of the block that a prompt shows. Dates before each line would take a quarter of it."""

LINE_CHARS = 3
"""Characters of a line beside its text."""


def select_lines(told: Sequence[Memory]) -> Sequence[Memory]:
    """Return the newest memories that fit into the block, facts before remarks.

    The order depends on nothing but the facts, so the block stays the same, byte by byte, until one changes.
    """
    room = MAX_CHARS - len(PROFILE_HEADING)
    lines = []
    for memory in told:
        length = len(memory.text) + LINE_CHARS
        if length <= room:
            room -= length
            lines.append(memory)
    return sorted(lines, key=lambda each: each.fact is None)


def is_about(facts: Sequence[Memory], subject: str) -> list[Memory]:
    """Return the facts about a subject, by any name it goes by: "Lena" and "my sister" may be the same.

    >>> is_about([], "Lena")
    []
    """
    wanted = fold(subject).strip()
    for prefix in ("my ", "our ", "the ", "mein ", "meine ", "mon ", "ma ", "mi "):
        wanted = wanted.removeprefix(prefix)
    relations = {load_words(code).relations.get(wanted, "") for code in CODES} - {""}
    names = {wanted, *relations}
    subjects = {fact.id: read_statement(fact.text).subjects | _label(fact) for fact in facts}
    # "My sister Lena" joins the two names.
    for found in subjects.values():
        if names & found and "user" not in found:
            names = names | found
    return [fact for fact in facts if names & subjects[fact.id]]


def _label(fact: Memory) -> frozenset[str]:
    return frozenset() if fact.told is None else frozenset({fact.told.subject.lower()})


PAST = (EndedAs.SUPERSEDED, EndedAs.OVER)
"""Reasons for which a memory ended that once was true."""


def asks_past(question: str) -> bool:
    """Return True if a question asks for what was true before.

    >>> asks_past("Where did I live before?"), asks_past("Where do I live?")
    (True, False)
    """
    lowered = question.lower().replace("’", "'")
    return any(load_words(code).has("asks_past", lowered) for code in CODES)


def mark_ended(memory: Memory, successor: Memory | None) -> str:
    """Return the text of a memory that has ended, with until when, and what took its place."""
    day = "" if memory.valid_to is None else f"{memory.valid_to:%Y-%m-%d}"
    then = f", then: {successor.text}" if successor is not None and memory.ended_as is EndedAs.SUPERSEDED else ""
    return f"{memory.text} (until {day}{then})"
