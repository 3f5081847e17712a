"""The awaited classes have every verb of the others, with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from wellkept.api.aio import AsyncAgentMemory, AsyncTenantMemory, AsyncWellkept
from wellkept.api.views import Part
from wellkept.api.wellkept import AgentMemory, TenantMemory, Wellkept


def parts(of: type) -> dict[str, Any]:
    return {name: each._view for name, each in inspect.getmembers(of) if isinstance(each, Part)}


PAIRS = [(AgentMemory, AsyncAgentMemory), (TenantMemory, AsyncTenantMemory), (Wellkept, AsyncWellkept)]
PAIRS += [
    (view, parts(awaited).get(name, object)) for plain, awaited in list(PAIRS) for name, view in parts(plain).items()
]
VIEWS = {"agent", "tenant", "for_user"}  # nothing is read or written by these, so there is nothing to await

each_pair = pytest.mark.parametrize(("plain", "awaited"), PAIRS, ids=lambda each: each.__name__)


def verbs(of: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(of, callable) if not name.startswith("_")}


def parameters(verb: Any) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of each, without whose verb it is."""
    _, *rest = inspect.signature(verb).parameters.values()
    return [(each.name, each.kind, each.default) for each in rest]


@each_pair
def test_every_verb_is_there_with_the_same_parameters(plain: type, awaited: type) -> None:
    described = {name: parameters(verb) for name, verb in verbs(plain).items()}

    assert {name: parameters(verb) for name, verb in verbs(awaited).items()} == described
    assert described


@each_pair
def test_every_verb_is_awaited(plain: type, awaited: type) -> None:
    assert {name for name, verb in verbs(awaited).items() if not inspect.iscoroutinefunction(verb)} <= VIEWS


@each_pair
def test_every_property_is_there(plain: type, awaited: type) -> None:
    def properties(of: type) -> set[str]:
        return {name for name, each in inspect.getmembers(of) if isinstance(each, property | Part)}

    assert properties(plain) <= properties(awaited)
