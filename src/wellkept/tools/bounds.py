"""Limits on the length of tool answers, so that they fit a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.details.rules_keys import safe_cut
from wellkept.errors import SecretRejected
from wellkept.memory.rules_trust import is_low, is_suspicious
from wellkept.model import Json, Memory
from wellkept.prompt.rules_escaping import escape_data

MAX_CHARS = 20_000
"""Characters of the texts in one answer: about 5,000 tokens."""

CUT = "…"


def shorten(text: str, most: int = MAX_CHARS) -> str:
    """Cut `text` to at most `most` characters without splitting a reference.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= most else text[: safe_cut(text, most - len(CUT))].rstrip() + CUT


def render_text(text: str, memory: Memory | None = None) -> Json:
    """Return the text of a result for a model, with the origin of a memory of low trust."""
    result: Json = {"text": escape_data(text)}
    if memory is not None and is_low(memory.origin):
        result["origin"] = memory.origin.value
        if is_suspicious(memory):
            result["unverified"] = True
    return result


def bound_results(results: Sequence[Json]) -> list[Json]:
    """Cut the texts of search results so that together they fit one answer.

    Each text longer than an equal share is cut and gets `total`, its full length in characters.
    """
    if sum(len(each["text"]) for each in results) <= MAX_CHARS:
        return list(results)
    share = MAX_CHARS // len(results)
    return [
        {**each, "text": shorten(each["text"], share), "total": len(each["text"])}
        if len(each["text"]) > share
        else each
        for each in results
    ]


WITHOUT_SECRET = "Store the text without the secret. If there is none in it, tell the user, who can allow it."


def render_secret_refusal(refusal: SecretRejected) -> Json:
    """Return the error for a text with a secret; the hint names the rule that found it and what to do."""
    matched = f"It matches the rule {refusal.rule}. " if refusal.rule else ""
    return {"error": refusal.sentence, "hint": f"{matched}{WITHOUT_SECRET}"}
