"""Ask a model which older statements a new one ends, and check its answer (`question.toml`)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wellkept.model import EndedAs, Json
from wellkept.prompt.rules_summaries import clip_middle

MAX_CASES = 20
"""New statements in one question."""

MAX_OLD = 5
"""Older statements that a new one is shown with."""

MAX_TURN_CHARS = 300
MAX_TOKENS = 1_500
MAX_ANSWER_CHARS = 20_000

NO_LIST = "it did not answer with a JSON list"
FENCE = "```"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCase:
    """A new statement, the turn it comes from, and the older ones that it may end, by their ids."""

    new: str
    old: Mapping[str, str]
    turn: str = ""


@dataclass(frozen=True, slots=True)
class ModelEnding:
    """Decision of a model: a statement ends by the new one of a case."""

    case: int
    id: str
    ended_as: EndedAs


@cache
def _load() -> Json:
    source: Json = tomllib.loads(Path(__file__).with_name("question.toml").read_text("utf-8"))
    return source


def build_messages(cases: Sequence[FactCase]) -> list[Json]:
    """Build the messages for a model."""
    source = _load()
    messages = [{"role": "system", "content": source["instructions"].strip()}]
    for example in source["examples"]:
        messages.append({"role": "user", "content": example["question"].strip()})
        messages.append({"role": "assistant", "content": example["answer"].strip()})
    items = [
        {"item": number, "new": each.new}
        | ({"turn": clip_middle(each.turn, MAX_TURN_CHARS)} if each.turn and each.turn != each.new else {})
        | {"old": dict(each.old)}
        for number, each in enumerate(cases)
    ]
    return [*messages, {"role": "user", "content": json.dumps(items, ensure_ascii=False)}]


def find_problem(answer: str, cases: Sequence[FactCase]) -> str:
    """Return what is wrong with an answer; empty if it may be used.

    >>> find_problem("[]", []), find_problem("I am not sure.", [])
    ('', 'it did not answer with a JSON list')
    """
    items = _parse_list(answer)
    if items is None:
        return NO_LIST
    seen = set[tuple[object, object]]()
    for item in items:
        problem = _find_item_problem(item, cases)
        if problem:
            return problem
        if (item["item"], item["ends"]) in seen:
            return f"it ends {item['ends']!r} twice"
        seen.add((item["item"], item["ends"]))
    return ""


def parse_answer(answer: str) -> list[ModelEnding]:
    """Return the decisions of an answer without a problem."""
    return [ModelEnding(item["item"], item["ends"], EndedAs(item["as"])) for item in _parse_list(answer) or ()]


def _find_item_problem(item: object, cases: Sequence[FactCase]) -> str:
    fields = _load()["answer"]
    if not isinstance(item, dict) or item.keys() != fields.keys():
        return f"an element of its answer does not have exactly the fields {', '.join(fields)}"
    number, id = item["item"], item["ends"]
    if type(number) is not int or not 0 <= number < len(cases):
        return "it names an item that was not asked about"
    if not isinstance(id, str) or id not in cases[number].old:
        return "it ends a statement that was not offered"
    return "" if item["as"] in fields["as"] else f"it ends a statement as something else than {', '.join(fields['as'])}"


def _parse_list(answer: str) -> list[Any] | None:
    """Return the list that an answer is; models often put a fence around it."""
    text = answer.strip()
    if len(text) > MAX_ANSWER_CHARS:
        return None
    if text.startswith(FENCE) and text.endswith(FENCE):
        text = text[len(FENCE) : -len(FENCE)].removeprefix("json")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None
