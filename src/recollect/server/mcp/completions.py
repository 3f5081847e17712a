"""Completions: what an argument of a resource's address could be, for hosts that ask while somebody is typing."""

from __future__ import annotations

from collections.abc import Sequence

from mcp.types import CompleteRequestParams, CompleteResult, Completion, ResourceTemplateReference

from recollect.server.mcp.offer import Offer
from recollect.server.mcp.resources import DETAILS, SKILLS, TEMPLATES, is_offered

MOST = 50


def complete(offer: Offer, params: CompleteRequestParams) -> CompleteResult:
    """Values that hold what was typed so far, newest first; none for what cannot be guessed, such as a question."""
    typed = params.argument.value
    values = [value for value in _values(offer, params) if typed.casefold() in value.casefold()]
    completion = Completion(values=values[:MOST], has_more=len(values) > MOST)
    return CompleteResult(completion=completion)


def _values(offer: Offer, params: CompleteRequestParams) -> Sequence[str]:
    uri = params.ref.uri if isinstance(params.ref, ResourceTemplateReference) else ""
    kind = next((name for name, each in TEMPLATES.items() if each.uri_template == uri), "")
    if not kind or not is_offered(offer, kind):
        return []
    if params.argument.name == "agent":
        return [offer.memory.owner.agent]
    if (kind, params.argument.name) == (SKILLS, "name"):
        return [skill.name for skill in offer.memory.skills()]
    if (kind, params.argument.name) == (DETAILS, "key"):
        return [detail.key for detail in offer.memory.search_details(limit=10 * MOST)]
    return []
