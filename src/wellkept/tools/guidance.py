"""Instructions for a model that uses the tools, as part of its system prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wellkept.tools.spec import DEFINITIONS

GUIDANCE: Mapping[str, str] = DEFINITIONS["guidance"]
"""Instructions by set of tools, in the order of the prompt."""


def guidance(sets: Iterable[str]) -> str:
    """Render the instructions for these sets of tools, for a system prompt."""
    selected = set(sets)
    texts = [text for name, text in GUIDANCE.items() if name in selected]
    return "\n\n".join([DEFINITIONS["introduction"], *texts, DEFINITIONS["never"]])
