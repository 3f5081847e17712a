"""Every route declares the scope it takes, and the documentation lists it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from tests.server.routes import CONSOLE, SCOPES
from wellkept import Settings, Wellkept
from wellkept.model import KeyScope
from wellkept.server.app import create_app

DOCS = Path(__file__).parents[2] / "docs"


def routes(app: FastAPI) -> set[str]:
    """Every route, also those that no document shows."""
    return {f"{method} {path}" for route in app.routes for method, path in _told(route)}


def _told(route: Any) -> Iterator[tuple[str, str]]:
    inner = getattr(route, "effective_candidates", None)
    if inner is not None:  # a router inside the app's
        for each in inner():
            yield from _told(each)
        return
    route = getattr(route, "starlette_route", None) or route
    path = route.path
    methods = getattr(route, "methods", None)
    if methods is None:  # an application of its own, which takes whatever it likes
        yield from ((method, path + "/{rest:path}") for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))
    else:
        yield from ((method, path) for method in methods if method not in ("HEAD", "OPTIONS"))


def test_every_route_says_which_key_it_takes() -> None:
    with Wellkept(":memory:", settings=Settings(embedder="off")) as wellkept:
        served = routes(create_app(wellkept))

    assert len(served) > 25
    known = {*SCOPES, *CONSOLE}
    assert served - known == set(), "declare them with a scope"
    assert known - served == set(), "these are no routes any more"


def test_no_two_routes_match_the_same_request() -> None:
    for one, other in combinations((*SCOPES, *CONSOLE), 2):
        pairs = zip_longest(one.split("/"), other.split("/"), fillvalue="")
        assert not all(a == b or ("{" in (a[:1], b[:1]) and a and b) for a, b in pairs), (one, other)


def test_the_table_of_the_console_is_the_one_of_the_program() -> None:
    text = (DOCS / "console.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `([A-Z]+ /\S*)` \| (read|write|admin|operator|none) \|", text, re.MULTILINE))

    assert said == {route: "none" if scope is None else scope.value for route, scope in CONSOLE.items()}


def test_the_reference_names_the_scope_of_each_route() -> None:
    text = (DOCS / "reference" / "rest.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `([A-Z]+ \S+)`$", text, flags=re.MULTILINE)
    scope = re.compile(r"^(?:Scope of the key: `(\w+)`|Needs no key)\.$", re.MULTILINE)
    said = {route: scope.findall(part) for route, part in zip(parts[1::2], parts[2::2], strict=True)}

    assert len(said) > 60
    for route, (name,) in said.items():
        assert (KeyScope(name) if name else None) == SCOPES[route], route
