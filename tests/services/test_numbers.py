"""No number breaks a verb or a tool: it is used, or refused with a sentence."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any

import pytest

from wellkept import Invalid, Settings, Wellkept, WellkeptError
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.tools import catalog

HOSTILE = (-1, 0, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, 1e308, math.nan, math.inf, True, "9" * 400)
TOO_BIG = (2**63, 2**64, 10**400, 1e308, math.nan, math.inf)


def number_parameters(view: Any) -> Iterator[tuple[str, str]]:
    """Every parameter of a verb that takes a number."""
    for name, verb in inspect.getmembers(view, callable):
        if not name.startswith("_"):
            for each in inspect.signature(verb).parameters.values():
                if str(each.annotation).split(" | ")[0] in ("int", "float"):
                    yield name, each.name


def test_verbs_use_or_refuse_any_number(wellkept: Wellkept, tenant: TenantMemory, ann: AgentMemory) -> None:
    known = {"id": ann.remember("Prefers tabs").id, "key": ann.details.store("a line\n" * 9).key, "session_id": "s-1"}
    ann.log_turn("s-1", user="Hello", assistant="Hi")
    accepted, called = [], 0
    parts = [getattr(ann, name) for name in ("details", "items", "sessions", "prompts", "changes", "knowledge")]
    parts += [
        getattr(tenant, name) for name in ("agents", "audit", "keys", "knowledge", "sessions", "users", "workflows")
    ]
    for view in (ann, tenant, *parts):
        for name, parameter in number_parameters(view):
            verb = getattr(view, name)
            given = {
                each.name: known.get(each.name, "x")
                for each in inspect.signature(verb).parameters.values()
                if each.default is inspect.Parameter.empty and each.kind is not inspect.Parameter.VAR_KEYWORD
            }
            for value in HOSTILE:
                called += 1
                try:
                    verb(**given | {parameter: value})
                except WellkeptError:
                    continue
                accepted += [(name, parameter, value)] if value in TOO_BIG or value is math.nan else []

    assert accepted == []
    assert called > 300
    assert [each.last_error for each in wellkept.background()] == [""] * 5


def test_tools_use_or_refuse_any_number(ann: AgentMemory) -> None:
    given = {"memory_key": ann.details.store("a line\n" * 9).key, "query": "x"}
    answers = [
        ann.call_tool(tool.name, {key: text for key, text in given.items() if key in tool.parameters} | {name: value})
        for tool in catalog.TOOLS.values()
        for name, parameter in tool.parameters.items()
        if parameter.get("type") == "integer"
        for value in HOSTILE
    ]

    assert len(answers) > 50
    refused = [each["error"] for each in answers if each.get("ok") is False]
    assert 0 < len(refused) < len(answers)
    assert all(each.endswith(".") for each in refused)


def test_context_rejects_budget_above_limit(ann: AgentMemory) -> None:
    with pytest.raises(Invalid, match=r"The budget .* from 1 to 1,000,000,000"):
        ann.context("hi", session="s-1", budget=2**63)


def test_settings_reject_numbers_out_of_bounds() -> None:
    with pytest.raises(
        Invalid, match=f"context_budget was given {2**63}; expected a whole number from 1 to 1000000000"
    ):
        Settings(context_budget=2**63)
