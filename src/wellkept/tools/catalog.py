"""Catalogue of all tools by set, and the function that calls them.

A refusal is an answer in plain words, not an exception: the model reads it and can correct its call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from wellkept.errors import Invalid, NotFound, SecretRejected, TimedOut, WellkeptError
from wellkept.model import Json
from wellkept.tools import verbs
from wellkept.tools.spec import DEFINITIONS, RENDERERS, Tool
from wellkept.tools.verbs import render_secret_refusal

TOOLS: Mapping[str, Tool] = {
    name: Tool(
        name=name,
        set=set,
        call=getattr(verbs, name),
        **{"without_agent": group["without_agent"], **fields},
    )
    for set, group in DEFINITIONS["sets"].items()
    for name, fields in group["tools"].items()
}
SETS: Sequence[str] = tuple(dict.fromkeys(tool.set for tool in TOOLS.values()))
"""Names of the sets, in order."""

ADVICE = ("hint", "error")
"""Fields of an answer that advise the model."""

_SENTENCE = re.compile(r"(?<=\.) ")
DEFAULT_SETS = ("memory",)
"""Sets that are offered where none is named; no other set does the same under other names."""


def select_tools(sets: Iterable[str] | None = None) -> list[Tool]:
    """Return the tools of these sets; None means the set `memory`.

    Their descriptions leave out sentences about tools of other sets.

    Raises: Invalid.
    """
    if isinstance(sets, str):
        raise Invalid(f"The tool sets are a list of names, such as {[sets[:40]]!r}.")
    selected = DEFAULT_SETS if sets is None else list(sets)
    for name in selected:
        if name not in SETS:
            raise Invalid(f"There is no tool set {name[:40]!r}; the sets are {', '.join(SETS)}.")
    return list(_select(frozenset(selected)))


@cache
def _select(sets: frozenset[str]) -> Sequence[Tool]:
    return [
        replace(tool, description=drop_sentences(tool.description, sets)) for tool in TOOLS.values() if tool.set in sets
    ]


def drop_sentences(text: str, sets: Collection[str]) -> str:
    """Leave out the sentences that name a tool of another set.

    >>> drop_sentences("Try one word of it. Questions are answered by search_my_memories.", ["notes"])
    'Try one word of it.'
    """
    others = "|".join(name for name, tool in TOOLS.items() if tool.set not in sets)
    return " ".join(each for each in _SENTENCE.split(text) if not others or not re.search(rf"\b({others})\b", each))


def render_tools(sets: Iterable[str] | None, form: str) -> list[Json]:
    """Render the tools in a provider's format. Raises: Invalid."""
    if form not in RENDERERS:
        raise Invalid(f"There is no tool format {form[:40]!r}; choose {', '.join(RENDERERS)}.")
    return [RENDERERS[form](tool) for tool in select_tools(sets)]


def is_refusal(answer: Json) -> bool:
    """Return True if a tool's answer says that it did not do what was asked."""
    return "error" in answer


def call(
    memory: Any | None,
    name: str,
    arguments: Mapping[str, Any],
    *,
    session_id: str | None = None,
    sets: Collection[str] | None = None,
) -> Json:
    """Run a tool on an agent's memory (`api.AgentMemory`; None without an agent) and return its answer.

    `session_id` is the conversation in which the tool is called. `sets` are those the model is offered (None: that of
    the tool): an answer names no other tool.
    """
    tool = TOOLS.get(name)
    if tool is None:
        return {"ok": False, "error": f"There is no tool {name[:60]!r}; the tools are {', '.join(TOOLS)}."}
    try:
        given = tool.parse_arguments(arguments)
        if session_id and tool.session_argument:
            given = {tool.session_argument: session_id, **given}
        answer = tool.without_agent if memory is None else tool.call(memory, **given)
        offered = (tool.set,) if sets is None else sets
        return answer | {each: drop_sentences(answer[each], offered) for each in ADVICE if each in answer}
    except SecretRejected as refusal:
        return {"ok": False, **render_secret_refusal(refusal)}
    except (Invalid, NotFound, TimedOut) as refusal:
        return {"ok": False, "error": str(refusal)}
    except WellkeptError as failure:
        return {"ok": False, "error": f"Memory is not available right now: {failure}"}
