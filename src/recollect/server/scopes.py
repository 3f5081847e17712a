"""Which scope each route takes. A route that is not in this table takes an admin key: forgetting one opens nothing.

Reading is also what POSTs do that only ask. Writing is what an agent's program needs. What concerns the tenant as a
whole, cannot be taken back, or decides what is trusted is for an admin. What concerns the whole store is for whoever
runs the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import itemgetter
from typing import Any

from recollect.model import KeyScope

READ, WRITE, ADMIN, OPERATOR = KeyScope
PUBLIC = None

SCOPES: Mapping[str, KeyScope | None] = {
    "GET /": PUBLIC,
    "GET /api": PUBLIC,
    "GET /health": PUBLIC,
    "GET /docs": PUBLIC,
    "GET /openapi.json": PUBLIC,
    "GET /metrics": OPERATOR,
    "GET /api/agents": READ,
    "POST /api/agents": WRITE,
    "GET /api/agents/{agent}": READ,
    "PATCH /api/agents/{agent}": WRITE,
    "DELETE /api/agents/{agent}": ADMIN,
    "GET /api/agents/{agent}/memories": READ,
    "POST /api/agents/{agent}/memories": WRITE,
    "GET /api/agents/{agent}/memories/{id}": READ,
    "PATCH /api/agents/{agent}/memories/{id}": WRITE,
    "DELETE /api/agents/{agent}/memories/{id}": WRITE,
    "GET /api/agents/{agent}/memories/{id}/history": READ,
    "GET /api/agents/{agent}/memories/{id}/similar": READ,
    "POST /api/agents/{agent}/memories/{id}/approve": ADMIN,
    "POST /api/agents/{agent}/workspace/approve": ADMIN,
    "GET /api/agents/{agent}/review": READ,
    "GET /api/agents/{agent}/private-memory": READ,
    "POST /api/agents/{agent}/inject": READ,
    "POST /api/agents/{agent}/recall": READ,
    "GET /api/agents/{agent}/details": READ,
    "POST /api/agents/{agent}/details": WRITE,
    "GET /api/agents/{agent}/details/{key}": READ,
    "PATCH /api/agents/{agent}/details/{key}": WRITE,
    "DELETE /api/agents/{agent}/details/{key}": WRITE,
    "POST /api/agents/{agent}/consolidate": WRITE,
    "GET /api/agents/{agent}/proposals": READ,
    "POST /api/agents/{agent}/proposals/{id}/apply": ADMIN,
    "POST /api/agents/{agent}/proposals/{id}/reject": ADMIN,
    "POST /api/agents/{agent}/proposals/{id}/undo": ADMIN,
    "POST /api/agents/{agent}/context": WRITE,  # it may store what does not fit
    "GET /api/agents/{agent}/context-calls": READ,
    "GET /api/agents/{agent}/context-calls/{id}": READ,
    "POST /api/agents/{agent}/capture": WRITE,
    "GET /api/chat/sessions": READ,
    "POST /api/chat/sessions": WRITE,
    "GET /api/chat/sessions/{id}": READ,
    "DELETE /api/chat/sessions/{id}": WRITE,
    "GET /api/chat/sessions/{id}/messages": READ,
    "POST /api/chat/sessions/{id}/messages": WRITE,
    "POST /api/chat/sessions/{id}/conversation": WRITE,
    "POST /api/agents/{agent}/explain": READ,
    "GET /api/audit": READ,
    "POST /api/audit": WRITE,
    "GET /api/audit/verify": READ,
    "GET /api/workflows": READ,
    "POST /api/workflows": WRITE,
    "GET /api/workflows/{id}": READ,
    "GET /api/workflows/{id}/steps": READ,
    "POST /api/workflows/{id}/steps": WRITE,
    "GET /api/skills": READ,
    "GET /api/kb/documents": READ,
    "POST /api/kb/documents": WRITE,
    "GET /api/kb/documents/{id}": READ,
    "PATCH /api/kb/documents/{id}": WRITE,
    "DELETE /api/kb/documents/{id}": WRITE,
    "POST /api/kb/search": READ,
    "POST /agent/run": WRITE,
    "POST /agent/vision": WRITE,
    "POST /api/maintenance": OPERATOR,
    "POST /api/erase": ADMIN,
    "GET /api/export": ADMIN,
    "POST /api/import": ADMIN,
    "POST /api/secrets/scan": ADMIN,
    "POST /api/secrets/allow": ADMIN,
    "GET /api/keys": ADMIN,
    "POST /api/keys": ADMIN,
    "DELETE /api/keys/{id}": ADMIN,
    "POST /mcp": READ,  # a tool that writes asks for more
}
"""By method and path; `{rest:path}` stands for all that follows."""

CONSOLE: Mapping[str, KeyScope | None] = {
    "GET /admin": READ,
    "GET /admin/static/{name}": PUBLIC,
    "GET /admin/login": PUBLIC,
    "POST /admin/login": PUBLIC,
    "GET /admin/open/{code}": PUBLIC,
    "POST /admin/open/{code}": PUBLIC,
    "POST /admin/logout": PUBLIC,
    "GET /admin/agents/{agent}": READ,
    "GET /admin/agents/{agent}/memories/{id}": READ,
    "POST /admin/agents/{agent}/memories/{id}": WRITE,
    "GET /admin/agents/{agent}/memories/{id}/delete": WRITE,
    "POST /admin/agents/{agent}/memories/{id}/delete": WRITE,
    "POST /admin/agents/{agent}/memories/{id}/approve": ADMIN,
    "GET /admin/agents/{agent}/why": READ,
    "GET /admin/agents/{agent}/seen": READ,
    "GET /admin/agents/{agent}/seen/{id}": READ,
    "GET /admin/agents/{agent}/sessions": READ,
    "GET /admin/agents/{agent}/sessions/{id}": READ,
    "GET /admin/agents/{agent}/proposals": READ,
    "POST /admin/agents/{agent}/proposals": WRITE,
    "POST /admin/agents/{agent}/proposals/{id}/apply": ADMIN,
    "POST /admin/agents/{agent}/proposals/{id}/reject": ADMIN,
    "POST /admin/agents/{agent}/proposals/{id}/undo": ADMIN,
    "GET /admin/documents": READ,
    "GET /admin/documents/{id}": READ,
    "GET /admin/skills": READ,
    "GET /admin/whiteboard": READ,
    "POST /admin/whiteboard": WRITE,
    "POST /admin/whiteboard/{id}/wipe": WRITE,
    "GET /admin/audit": READ,
    "GET /admin/audit/verify": READ,
    "GET /admin/keys": ADMIN,
    "POST /admin/keys": ADMIN,
    "POST /admin/keys/{id}/revoke": ADMIN,
    "GET /admin/moving": ADMIN,
    "GET /admin/export": ADMIN,
    "POST /admin/import": ADMIN,
}
"""The same for the pages of the console, where a login stands for the key."""

REST = "{rest:path}"
AGENT = "{agent}"
UNKNOWN_PATH = "(unknown)"
NEAR = 0.7
"""How much alike each part of two paths must be for one to be taken for a slip of the other."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route takes."""

    path: str  # as in the table: with the names of its parameters, never their values
    scope: KeyScope | None  # None: no key

    def agent_in(self, path: str) -> str:
        """Return the agent an address names; empty: it names none.

        >>> Rule("/api/agents/{agent}/recall", READ).agent_in("/api/agents/atlas/recall")
        'atlas'
        """
        names = self.path.split("/")
        return path.split("/")[names.index(AGENT)] if AGENT in names else ""


class ScopeTable:
    """The table, ready to be asked for each request."""

    def __init__(self, scopes: Mapping[str, KeyScope | None] = {**SCOPES, **CONSOLE}) -> None:
        self._by_shape: dict[tuple[str, int], dict[tuple[int, ...], _Shape]] = {}
        self._by_beginning: list[tuple[str, str, Rule]] = []
        for route, scope in scopes.items():
            method, _, path = route.partition(" ")
            if path.endswith(REST):
                self._by_beginning.append((method, path.removesuffix(REST), Rule(path, scope)))
            else:
                parts = path.split("/")
                names = tuple(place for place, part in enumerate(parts) if part[:1] == "{")
                shapes = self._by_shape.setdefault((method, len(parts)), {})
                shapes.setdefault(names, _Shape(len(parts), names)).add(parts, Rule(path, scope))

    def find(self, method: str, path: str) -> Rule | None:
        """The rule of a request; where several fit, the strictest.

        >>> ScopeTable().find("GET", "/api/agents/atlas").path
        '/api/agents/{agent}'
        """
        method = "GET" if method == "HEAD" else method
        parts = path.split("/")
        shapes = self._by_shape.get((method, len(parts)))
        fitting = [rule for shape in shapes.values() if (rule := shape.find(parts)) is not None] if shapes else []
        fitting += [
            rule for each, start, rule in self._by_beginning if each == method and path.startswith(start.rstrip("/"))
        ]
        return max(fitting, key=_strictness, default=None)


class _Shape:
    """Routes of one length that have names in the same places: found by the words between them."""

    def __init__(self, length: int, names: Sequence[int]) -> None:
        self._names = names
        self._words = itemgetter(*(place for place in range(length) if place not in names))
        self._rules: dict[Any, Rule] = {}

    def add(self, parts: Sequence[str], rule: Rule) -> None:
        self._rules[self._words(parts)] = max(rule, self._rules.get(self._words(parts), rule), key=_strictness)

    def find(self, parts: Sequence[str]) -> Rule | None:
        rule = self._rules.get(self._words(parts))
        return rule if rule is not None and all(parts[place] for place in self._names) else None


def nearest(path: str) -> str:
    """A path of REST that is nearly this one, with the names this one has; empty: none is.

    >>> nearest("/api/agents/atlas/memory"), nearest("/api/Sessions/"), nearest("/favicon.ico")
    ('/api/agents/atlas/memories', '/api/chat/sessions', '')
    """
    asked = [part for part in path.split("/") if part]
    asked = asked[1:] if asked[:1] == ["api"] else asked
    best, found = NEAR, ""
    for route in SCOPES:
        shape = route.partition(" ")[2].split("/")[1:]
        left_out = shape[: max(len(shape) - len(asked), 0)]
        parts = [*left_out, *asked]
        said = {want[:1] == "{" for want in shape[len(left_out) :]}  # whether parts of it are names
        if len(parts) != len(shape) or any(want[:1] == "{" for want in left_out) or False not in said:
            continue
        meant = [part if want[:1] == "{" else want for want, part in zip(shape, parts, strict=True)]
        alike = min(map(_likeness, meant, parts))
        if alike > best:
            best, found = alike, "/" + "/".join(meant)
    return found


def _likeness(want: str, part: str) -> float:
    return SequenceMatcher(a=want, b=part.lower()).ratio() if want != part else 1.0


def _strictness(rule: Rule) -> int:
    return -1 if rule.scope is None else [*KeyScope].index(rule.scope)
