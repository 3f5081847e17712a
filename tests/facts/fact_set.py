"""The labelled conversations in `tests/data/facts`, and how statements are compared with their labels.

`[[…]]` marks a fact that should be stored, `{{…}}` a statement that does no harm but does not last; everything else is
junk. A stored text is right if it holds half of a fact and facts are half of it. It is junk if not even half of it is
marked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wellkept.model import Role

FOLDER = Path(__file__).parent.parent / "data" / "facts"
ROLES = {"U": Role.USER, "A": Role.ASSISTANT}
HALF = 0.5
_MARK = re.compile(r"\[\[|\]\]|\{\{|\}\}")


@dataclass
class Turn:
    role: Role
    text: str
    facts: list[range]
    harmless: list[range]


@dataclass
class LabelledConversation:
    domain: str
    language: str
    turns: list[Turn] = field(default_factory=list)

    @property
    def messages(self) -> list[tuple[Role, str]]:
        return [(turn.role, turn.text) for turn in self.turns]


@dataclass
class Score:
    stored: int = 0
    right: int = 0
    junk: int = 0
    wanted: int = 0
    found: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.stored if self.stored else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def junk_share(self) -> float:
        return self.junk / self.stored if self.stored else 0.0

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f}, junk {self.junk_share:.3f} of {self.stored}"


def load_set(name: str) -> list[LabelledConversation]:
    found: list[LabelledConversation] = []
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            domain, language = line[2:].split()
            found.append(LabelledConversation(domain, language))
        elif line:
            found[-1].turns.append(read_turn(line))
    return found


def read_turn(line: str) -> Turn:
    role, marked = line.split(": ", 1)
    text, start, opened = "", 0, ""
    spans: dict[str, list[range]] = {"[[": [], "{{": []}
    last = 0
    for mark in _MARK.finditer(marked):
        text += marked[last : mark.start()]
        last = mark.end()
        if mark[0] in spans:
            opened, start = mark[0], len(text)
        else:
            spans[opened].append(range(start, len(text)))
    return Turn(ROLES[role], text + marked[last:], spans["[["], spans["{{"])


def score(conversations: Sequence[LabelledConversation], stored: Sequence[Sequence[tuple[int, str]]]) -> Score:
    """Compare what was stored of each conversation, each text with its turn, with the labels."""
    result = Score()
    for conversation, texts in zip(conversations, stored, strict=True):
        hits: set[tuple[int, int]] = set()
        for number, text in texts:
            turn = conversation.turns[number]
            place = turn.text.find(text)
            assert place >= 0, f"{text!r} is not in the words of turn {number}"
            span = range(place, place + len(text))
            held = {fact.start for fact in turn.facts if overlap(span, fact) >= HALF * len(fact)}
            share = sum(overlap(span, fact) for fact in turn.facts)
            is_right = bool(held) and share >= HALF * len(span)
            hits |= {(number, start) for start in held if is_right}
            result.stored += 1
            result.right += is_right
            if not is_right:
                result.wrong.append(f"{conversation.domain} {conversation.language}: {text}")
                result.junk += share + sum(overlap(span, each) for each in turn.harmless) < HALF * len(span)
        wanted = {(number, fact.start) for number, turn in enumerate(conversation.turns) for fact in turn.facts}
        result.wanted += len(wanted)
        result.found += len(hits)
        for number, start in sorted(wanted - hits):
            result.missed.append(
                f"{conversation.domain} {conversation.language}: {conversation.turns[number].text[start:]}"
            )
    return result


def overlap(one: range, other: range) -> int:
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))
