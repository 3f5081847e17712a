"""The table that finds the route of a request, and the scope it requires.

Scopes: READ covers queries, also those sent as POST. WRITE covers what an agent's program does. ADMIN covers what
concerns the tenant as a whole, cannot be undone, or decides what is trusted. OPERATOR covers the whole store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import itemgetter
from typing import Any

from fastapi import APIRouter

from wellkept.model import KeyScope

READ, WRITE, ADMIN, OPERATOR = KeyScope
PUBLIC = None

AGENT = "{agent}"
CONSOLE_PATH = "/admin"
NEAR = 0.7
"""Similarity that each part of a path must exceed to be suggested in place of a mistyped one."""

LONG_JOBS: Mapping[str, str] = {
    "POST /api/kb/documents": "documents",
    "POST /admin/documents": "documents",
    "POST /api/import": "transfer",
    "POST /admin/import": "transfer",
    "GET /api/export": "transfer",
    "GET /admin/export": "transfer",
    "GET /admin/backup/file": "transfer",
    "POST /api/erase": "upkeep",
    "POST /admin/erasure": "upkeep",
    "POST /admin/erasure/preview": "upkeep",
    "POST /admin/maintenance": "upkeep",
    "GET /admin/maintenance/preview": "upkeep",
    "POST /api/maintenance": "upkeep",
    "POST /api/secrets/scan": "upkeep",
    "GET /api/audit/verify": "upkeep",
    "GET /admin/audit/verify": "upkeep",
    "POST /api/agents/{agent}/consolidate": "upkeep",
    "POST /admin/agents/{agent}/proposals": "upkeep",
}
"""Kind of each long job, by its route."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A route as it was declared."""

    method: str
    path: str  # with the names of its parameters, never their values
    scope: KeyScope | None  # None: no key

    @property
    def name(self) -> str:
        """Method and path, such as "GET /health"."""
        return f"{self.method} {self.path}"

    def agent_in(self, path: str) -> str:
        """Return the agent in the path of a request; empty if the route names none.

        >>> Route("POST", "/api/agents/{agent}/recall", READ).agent_in("/api/agents/atlas/recall")
        'atlas'
        """
        names = self.path.split("/")
        return path.split("/")[names.index(AGENT)] if AGENT in names else ""


UNKNOWN = Route("", "(unknown)", READ)
"""Route of requests that match none; the framework answers 404 or 405."""

UNLISTED = Route("", UNKNOWN.path, ADMIN)
"""Route of requests to routes that were added after the application was created."""


def is_console(path: str) -> bool:
    """Return True if the path belongs to the console.

    >>> is_console("/admin"), is_console("/admin/audit"), is_console("/administrator")
    (True, True, False)
    """
    return path == CONSOLE_PATH or path.startswith(f"{CONSOLE_PATH}/")


class RouteTable:
    """Finds the route of a request without trying one pattern after the other."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises: ValueError when two routes can match the same request."""
        self.routes = [*routes]
        self._shapes: dict[tuple[str, int], dict[tuple[int, ...], _Shape]] = {}
        for number, route in enumerate(self.routes):
            for other in self.routes[:number]:
                if route.method == other.method and _is_ambiguous(route.path.split("/"), other.path.split("/")):
                    raise ValueError(f"{other.name} and {route.name} can match the same request.")
            parts = route.path.split("/")
            names = tuple(place for place, part in enumerate(parts) if part[:1] == "{")
            shapes = self._shapes.setdefault((route.method, len(parts)), {})
            shapes.setdefault(names, _Shape(len(parts), names)).add(parts, route)

    @property
    def scopes(self) -> Mapping[str, KeyScope | None]:
        """The scope of each route, by method and path."""
        return {route.name: route.scope for route in self.routes}

    def find(self, method: str, path: str) -> Route | None:
        """Return the route of a request; None if there is none.

        >>> RouteTable([Route("GET", "/api/agents/{agent}", READ)]).find("HEAD", "/api/agents/atlas").path
        '/api/agents/{agent}'
        """
        parts = path.split("/")
        shapes = self._shapes.get(("GET" if method == "HEAD" else method, len(parts)))
        if shapes is not None:
            for shape in shapes.values():
                route = shape.find(parts)
                if route is not None:
                    return route
        return None

    def nearest(self, path: str) -> str:
        """Return the REST path that a mistyped one may mean; empty if nothing is like it.

        >>> paths = "/api/chat/sessions", "/api/agents/{agent}/memories"
        >>> table = RouteTable(Route("GET", path, READ) for path in paths)
        >>> table.nearest("/api/agents/atlas/memory"), table.nearest("/chat/session"), table.nearest("/favicon.ico")
        ('/api/agents/atlas/memories', '/api/chat/sessions', '')
        """
        typed = [part for part in path.split("/") if part]
        typed = typed[1:] if typed[:1] == ["api"] else typed
        best, found = NEAR, ""
        for route in self.routes:
            if is_console(route.path):
                continue
            shape = route.path.split("/")[1:]
            # A short path may lack the first parts of the route, such as "api", but no parameter.
            left_out = shape[: max(len(shape) - len(typed), 0)]
            parts = [*left_out, *typed]
            has_words = any(expected[:1] != "{" for expected in shape[len(left_out) :])
            if len(parts) != len(shape) or any(expected[:1] == "{" for expected in left_out) or not has_words:
                continue
            suggested = [part if expected[:1] == "{" else expected for expected, part in zip(shape, parts, strict=True)]
            similarity = min(map(_compare_parts, suggested, parts))
            if similarity > best:
                best, found = similarity, "/" + "/".join(suggested)
        return found


def check_scopes(router: APIRouter, scopes: Mapping[str, KeyScope | None]) -> None:
    """Check that every route of the framework's router was declared with a scope. Raises: TypeError."""
    for route in router.routes:
        for method in getattr(route, "methods", None) or ():
            name = f"{method} {getattr(route, 'path', '')}"
            if name not in scopes:
                raise TypeError(f"{name} is declared without a scope.")


class _Shape:
    """Routes of one length with parameters in the same places, found by the words between them."""

    def __init__(self, length: int, names: Sequence[int]) -> None:
        self._names = names
        self._words = itemgetter(*(place for place in range(length) if place not in names))
        self._routes: dict[Any, Route] = {}

    def add(self, parts: Sequence[str], route: Route) -> None:
        self._routes[self._words(parts)] = route

    def find(self, parts: Sequence[str]) -> Route | None:
        route = self._routes.get(self._words(parts))
        return route if route is not None and all(parts[place] for place in self._names) else None


def _is_ambiguous(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(a == b or "{" in (a[:1], b[:1]) for a, b in zip(one, other, strict=True))


def _compare_parts(expected: str, part: str) -> float:
    return SequenceMatcher(a=expected, b=part.lower()).ratio() if expected != part else 1.0
