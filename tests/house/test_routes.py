"""Every route declares the scope it takes, and the documentation lists it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.server.routes import CONSOLE, SCOPES
from wellkept import Settings, Wellkept
from wellkept.server.app import create_app

DOCS = Path(__file__).parents[2] / "docs"
TABLES = {"rest.md": SCOPES, "console.md": CONSOLE}


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


@pytest.mark.parametrize("page", TABLES)
def test_the_table_of_the_documentation_is_the_one_of_the_program(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `([A-Z]+ /\S*)` \| (read|write|admin|operator|none) \|", text, re.MULTILINE))

    assert said == {route: "none" if scope is None else scope.value for route, scope in TABLES[page].items()}
