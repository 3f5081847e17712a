"""Plan what `add` writes: drafts and edits of one call, each with its operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from wellkept.caller import current_caller
from wellkept.language.text import content_hash
from wellkept.memory import rules_duplicates as duplicates
from wellkept.memory import rules_fact_answers as fact_answers
from wellkept.memory import rules_fact_slots as fact_slots
from wellkept.memory import rules_trust as trust
from wellkept.memory.drafts import Draft
from wellkept.memory.fact_requests import MAX_FACTS, FactsRequest
from wellkept.memory.rules_categories import Category
from wellkept.model import AddedFacts, DroppedFact, FoundFact, Kind, Memory, Origin, Role

if TYPE_CHECKING:
    from wellkept.memory.rules_fact_answers import FactChange

ORIGINS = {Role.USER: Origin.USER, Role.ASSISTANT: Origin.AGENT}
REPLACED = "replaced later in this conversation"


class FactWriting:
    """Drafts and edits of one call, each with its operation."""

    def __init__(self, request: FactsRequest, origin: Origin | None) -> None:
        self.drafts: list[tuple[Draft, FactChange]] = []
        self.edits: list[tuple[Memory, FactChange]] = []
        self.dropped: list[DroppedFact] = []
        self._heard: set[str] = set()  # hashes of the texts compared so far
        self._prints: list[duplicates.Fingerprint] = []  # of the drafts and edits
        self._request = request
        self._origin = origin

    def role_of(self, operation: FactChange) -> Role:
        """Return who said it."""
        return self._request.messages[operation.turn][0]

    def is_changed(self, id: str) -> bool:
        """Return True if a draft or an edit changes this memory already."""
        return any(operation.target is not None and operation.target.id == id for _, operation in self.drafts)

    def drop_replaced(self, text: str) -> None:
        """Leave out drafts of this conversation that a later statement replaces."""
        for place in reversed(range(len(self.drafts))):
            draft, operation = self.drafts[place]
            if operation.target is None and fact_slots.is_replaced(draft.text, text):
                del self._prints[place]
                self.refuse(place, REPLACED)

    def has_same(self, text: str) -> bool:
        """Return True if a draft or an edit says the same."""
        fingerprint = duplicates.Fingerprint.of(text)
        return any(duplicates.is_near_duplicate(fingerprint, other) for other in self._prints)

    def is_repeated(self, operation: FactChange) -> bool:
        """Return True if this new fact was compared before, word for word. That saves a search for each repetition."""
        mark, count = content_hash(operation.text), len(self._heard)
        self._heard |= {mark} if operation.op == "add" else set()
        return operation.op == "add" and len(self._heard) == count

    def find_problem(self, operation: FactChange) -> str:
        """Return the reason why an operation is refused, without a look at other memories; empty if it is not."""
        target = operation.target
        if len(self.drafts) + len(self.edits) >= MAX_FACTS:
            return f"beyond the first {MAX_FACTS} facts of one call"
        if target is not None and not trust.is_within(target.origin, current_caller().trust):
            return f"changes {target.id}, which is trusted more than this key"
        return "" if operation.op == "drop" else fact_answers.find_text_problem(operation.text)

    def take(self, operation: FactChange, now: datetime) -> None:
        """Plan an operation."""
        target = operation.target
        is_end = target is not None and operation.op == "drop"
        self._prints.append(duplicates.Fingerprint.of(target.text if target and is_end else operation.text))
        if target is not None and operation.op == "drop":
            self.edits.append((replace(target, valid_to=now), operation))
        # The words of a model never take the place of a trusted text under its id and origin.
        elif target is not None and operation.op == "update" and trust.is_low(target.origin):
            self.edits.append((replace(target, text=operation.text), operation))
        else:
            self.drafts.append((self._draft(operation, target), operation))

    def refuse(self, item: int, reason: str) -> None:
        """Leave out the draft or edit at a position that the write path refused."""
        count = len(self.drafts)
        _, operation = self.drafts.pop(item) if item < count else self.edits.pop(item - count)
        self.dropped.append(DroppedFact(text=operation.text, turn=operation.turn, reason=reason))

    def refuse_changes(self, reason: str) -> bool:
        """Leave out whatever changes a stored memory; return False if there is nothing of that kind."""
        positions = [place for place, (draft, _) in enumerate(self.drafts) if draft.supersedes is not None]
        places = [*positions, *range(len(self.drafts), len(self.drafts) + len(self.edits))]
        for place in reversed(places):
            self.refuse(place, reason)
        return bool(places)

    def report(self, stored: Sequence[Memory], changed: Sequence[Memory]) -> AddedFacts:
        """Return what was done. `changed` are the superseded memories, if they are stored, and then the edited ones."""
        facts_made = [
            FoundFact(memory=memory, turn=operation.turn, replaces=draft.supersedes)
            for memory, (draft, operation) in zip(stored, self.drafts, strict=True)
        ]
        count = len(self.edits)
        edits = [
            (operation.op, FoundFact(memory=memory, turn=operation.turn))
            for memory, (_, operation) in zip(changed[len(changed) - count :], self.edits, strict=True)
        ]
        return AddedFacts(
            added=tuple(each for each in facts_made if each.replaces is None),
            updated=tuple(each for op, each in edits if op != "drop"),
            superseded=(
                *(each for each in facts_made if each.replaces is not None),
                *(each for op, each in edits if op == "drop"),
            ),
        )

    def _draft(self, operation: FactChange, target: Memory | None) -> Draft:
        role = self._request.messages[operation.turn][0]
        return Draft(
            text=operation.text,
            kind=Kind.EPISODE,
            role=role,
            session_id=self._request.session_id,
            category=Category.FACT.value,
            origin=self._origin or ORIGINS[role],
            supersedes=None if target is None else target.id,
            metadata=self._request.metadata,
        )
