"""Hits: the items that a recall finds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from wellkept.model.records import HEADING_SEPARATOR, INSIDE, Document, Memory, Source

_PAGES = re.compile(r" \(pages? ([0-9]{1,9})(?:–[0-9]{1,9})?\)$")

WEAK = 0.2
"""Relevance below which a hit is weak: it is the nearest there is, and probably no answer."""


NOTHING_FITS = "Nothing fits well; these are the nearest."
"""Sentence for an answer that has only weak hits."""


class HeldWord(NamedTuple):
    """Rare word of a question that a hit holds: an identifier, a number or a name."""

    word: str
    holders: int  # records of the source that hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled item with its score and the parts of the score."""

    source: Source
    id: str
    text: str
    score: float = field(metadata={"description": "The sum of each part times its weight."})
    parts: Mapping[str, float] = field(metadata={"description": "similarity, recency, importance, source: each 0 to 1"})
    weights: Mapping[str, float]
    created_at: datetime
    memory: Memory | None = None  # set when the source is memory
    agent_id: str | None = field(default=None, metadata={"description": "Its agent; null: none."})
    document: Document | None = None  # set when the source is knowledge
    held: tuple[HeldWord, ...] = field(default=(), metadata=INSIDE)  # rare words that put it first, whatever its score

    @property
    def relevance(self) -> float:
        """Chance, from 0 to 1, that a person would call it relevant."""
        return self.parts["similarity"]

    @property
    def weak(self) -> bool:
        """True if it is only the nearest there is, and probably no answer."""
        return self.relevance < WEAK

    @property
    def title(self) -> str:
        """Title of a passage's document; empty for other sources."""
        return "" if self.document is None else self.document.title

    @property
    def heading(self) -> str:
        """Headings above a passage, from the highest, without the title: "Fees > EU". Empty for other sources."""
        return self._heading_line[0]

    @property
    def page(self) -> int | None:
        """Page on which a passage of a PDF begins."""
        return self._heading_line[1]

    @property
    def _heading_line(self) -> tuple[str, int | None]:
        if self.document is None:
            return "", None
        # A passage begins with its line of headings, written by `knowledge.rules_chunking`.
        line = self.text.partition("\n\n")[0]
        pages = _PAGES.search(line)
        line = line if pages is None else line[: pages.start()]
        title = " ".join(self.document.title.split())
        below = line.removeprefix(title) if line.startswith(title) else "".join(line.partition(HEADING_SEPARATOR)[1:])
        return below.removeprefix(HEADING_SEPARATOR), None if pages is None else int(pages[1])

    @property
    def explain(self) -> str:
        """Score written as a sum of its weighted parts, and why the hit comes first if that is not its score."""
        terms = (f"{self.weights[name]:g}×{value:.3f} {name}" for name, value in self.parts.items())
        reasons = (
            f"; first, because {'it alone holds' if each.holders == 1 else f'only {each.holders} hold'} “{each.word}”"
            for each in self.held
        )
        return f"{self.score:.3f} = " + " + ".join(terms) + "".join(reasons)
