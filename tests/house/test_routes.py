"""Every route says which key it takes; one that does not is for admins only, and this test finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from recollect import Recollect, Settings
from recollect.server.app import create_app
from recollect.server.scopes import SCOPES

PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")


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
    with Recollect(":memory:", settings=Settings(embedder="off")) as recollect:
        served = routes(create_app(recollect))

    assert len(served) > 25
    assert served - set(SCOPES) == set(), "add them to recollect.server.scopes.SCOPES"
    assert set(SCOPES) - served == set(), "these are no routes any more"


def test_the_table_of_the_documentation_is_the_one_of_the_program() -> None:
    said = dict(re.findall(r"^\| `([A-Z]+ /\S*)` \| (read|write|admin|none) \|$", PAGE, re.MULTILINE))

    assert said == {route: "none" if scope is None else scope.value for route, scope in SCOPES.items()}
