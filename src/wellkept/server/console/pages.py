"""Pages of the console: a visit that answers them, templates and their helpers. Stored text is always escaped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from importlib.resources import files
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.background import BackgroundTask

from wellkept import __version__
from wellkept.access.rules_keys import is_allowed
from wellkept.errors import Invalid
from wellkept.language.names import is_session_id
from wellkept.memory.rules_items import unwrap_value
from wellkept.memory.rules_trust import is_within
from wellkept.model import KeyScope, Kind, Memory, MemoryVersion, Origin, Outcome, State
from wellkept.server.http.auth import Access, CurrentAgent, CurrentTenant, CurrentWellkept
from wellkept.server.http.routing import CONSOLE_PATH as PATH
from wellkept.server.http.routing import Router

T = TypeVar("T")
BOX_WIDTH, BOX_HEIGHT = 1000, 200
"""Box in which charts are drawn as SVG; the page stretches it."""

PAGE_BYTES = 60_000
"""Bytes of stored texts on a page, so that with their markup it stays below 100 KB."""

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.RECALLED: "Recalled",
    Outcome.OUT_RANKED: "Out-ranked",
    Outcome.MISSING: "Not found",
    Outcome.EXPIRED: "Expired",
    Outcome.SUPERSEDED: "Corrected",
    Outcome.ARCHIVED: "Archived",
    Outcome.HELD: "Held for review",
    Outcome.LATER: "Not known at that time",
    Outcome.FILTERED: "Filtered out",
    Outcome.DOUBLE: "Duplicate",
    Outcome.NOT_EMBEDDED: "No vector yet",
    Outcome.BELOW_THRESHOLD: "Below the threshold",
    Outcome.NO_MATCH: "No match",
    Outcome.UNANSWERED: "Its source did not answer",
}
AGES = ((timedelta(days=365), "y"), (timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))


def _load_static() -> Mapping[str, bytes]:
    folder = files("wellkept.server.console").joinpath("static")
    return {name: folder.joinpath(name).read_bytes() for name in STATIC_TYPES}


STATIC_TYPES: Mapping[str, str] = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "icons.svg": "image/svg+xml",
}
STATIC = _load_static()
ASSETS = hashlib.sha256(b"".join(STATIC.values())).hexdigest()[:8]
"""Part of the addresses of static files, so that browsers fetch changed ones."""


def page_router(path: str = "") -> Router:
    """Return a router for pages below a path of the console."""
    return Router(prefix=f"{PATH}{path}", include_in_schema=False, route_class=APIRoute)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to a page, with what the login may see."""

    request: Request
    wellkept: CurrentWellkept
    tenant: CurrentTenant

    @property
    def access(self) -> Access:
        access: Access = self.request.state.access
        return access

    def page(self, template: str, *, problem: str = "", status: int = 0, **values: Any) -> HTMLResponse:
        """Render a page; one with a `problem`, a refusal of what was sent, has the status 400."""
        return page(self.request, template, status=status or (400 if problem else 200), problem=problem, **values)


@dataclass(frozen=True, slots=True)
class AgentVisit(Visit):
    """A request to a page of an agent."""

    memory: CurrentAgent

    @property
    def id(self) -> str:
        """The agent's id; there may be no such agent."""
        return self.memory.owner.agent

    def page(self, template: str, *, problem: str = "", status: int = 0, **values: Any) -> HTMLResponse:
        """Render a page below the head of the agent. Raises: NotFound."""
        agent = self.tenant.agents.get(self.id)
        return Visit.page(self, template, problem=problem, status=status, agent=agent, **values)

    def go(self, *parts: object, **query: object) -> Response:
        """Redirect to a page of the agent."""
        return go("agents", self.id, *parts, **query)


async def _visit(request: Request, wellkept: CurrentWellkept, tenant: CurrentTenant) -> Visit:
    return Visit(request, wellkept, tenant)


async def _visit_agent(
    request: Request, wellkept: CurrentWellkept, tenant: CurrentTenant, memory: CurrentAgent
) -> AgentVisit:
    return AgentVisit(request, wellkept, tenant, memory)


AtTenant = Annotated[Visit, Depends(_visit)]
AtAgent = Annotated[AgentVisit, Depends(_visit_agent)]


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page for the client of a request."""
    now = request.app.state.wellkept.now()
    section = request.url.path.removeprefix(PATH).strip("/").partition("/")[0]
    shown = render(template, access=request.state.access, now=now, section=section, **values)
    # The first page of a process compiles the others once it is sent, so that none of them waits for it.
    return HTMLResponse(shown, status, background=BackgroundTask(_compile_all) if next(_STARTED, False) else None)


def go(*parts: object, **query: object) -> Response:
    """Redirect to a page."""
    return RedirectResponse(place(*parts, **query), status_code=303)


_STARTED = iter([True])


def _compile_all() -> None:
    for name in _PAGES.list_templates():
        _PAGES.get_template(name)


def render(template: str, *, access: Access | None, **values: Any) -> str:
    """Return the HTML of a page."""
    return _PAGES.get_template(template).render(access=access, **values)


def place(*parts: object, **query: object) -> str:
    """Return the address of a page; empty parameters are left out.

    >>> place("agents", "ann@home", "ask", q="a&b", limit=None)
    '/admin/agents/ann%40home/ask?q=a%26b'
    """
    present = {name: value for name, value in query.items() if value not in (None, "", [])}
    path = "/".join([PATH, *(quote(str(part), safe="") for part in parts)])
    return f"{path}?{urlencode(present, doseq=True)}" if present else path


def moment(at: datetime) -> str:
    """
    >>> from datetime import UTC
    >>> moment(datetime(2026, 1, 31, 12, 5, tzinfo=UTC))
    '2026-01-31 12:05 UTC'
    """
    return f"{at:%Y-%m-%d %H:%M} UTC"


def age(at: datetime, now: datetime) -> str:
    """Return a rough relative time.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 31, tzinfo=UTC)
    >>> age(now - timedelta(days=3, hours=5), now), age(now + timedelta(minutes=61), now), age(now, now)
    ('3 d ago', 'in 1 h', 'now')
    """
    for length, unit in AGES:
        count = abs(now - at) // length
        if count:
            return f"{count} {unit} ago" if at < now else f"in {count} {unit}"
    return "now" if at <= now else "soon"


def clip(text: str, most: int) -> str:
    """Return the beginning of a text that takes at most so many bytes; wide characters take more than narrow ones.

    >>> clip("Tea at four", 100), clip("Tea at four", 6), clip("東京", 5)
    ('Tea at four', 'Tea at…', '東…')
    """
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore").rstrip() + "…"


def fit_bytes(items: Sequence[T], text_of: Callable[[T], str], most: int = PAGE_BYTES) -> Sequence[T]:
    """Return the first items, at least one, whose texts together take at most so many bytes of HTML.

    >>> fit_bytes(["tea", "at", "four"], str, most=5)
    ['tea', 'at']
    """
    room = most
    for number, each in enumerate(items):
        room -= _count_html(text_of(each))
        if room < 0:
            return items[: max(number, 1)]
    return items


def clip_long(text: str) -> str:
    """Return the beginning of a text that fits on a page by itself."""
    size = _count_html(text)
    return text if size <= PAGE_BYTES else clip(text, len(text.encode(errors="replace")) * PAGE_BYTES // size)


def _count_html(text: str) -> int:
    return len(escape(text).encode(errors="replace"))


def describe_bytes(count: int) -> str:
    """
    >>> describe_bytes(999), describe_bytes(52_400_000)
    ('999 bytes', '52 MB')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} bytes"


def parse_place(at: str, id: str) -> tuple[datetime, str] | None:
    """Return the end of the previous page, as its link names it; None for the first page. Raises: Invalid."""
    if not at and not id:
        return None
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not is_session_id(id):
        raise Invalid("There is no such page; start with the first one.")
    return moment.astimezone(UTC), id


def split_words(text: str) -> tuple[str, ...]:
    """Return words that are separated by commas.

    >>> split_words("tea, , four")
    ('tea', 'four')
    """
    return tuple(word for each in text.split(",") if (word := each.strip()))


def _is_colour(text: str) -> bool:
    """Return True for a colour that a page can show, such as "teal" or "#2f6fdb"; people may write anything."""
    return re.fullmatch(r"[a-zA-Z]+|#[0-9a-fA-F]{3,8}", text) is not None


def _may(access: Access | None, scope: str) -> bool:
    return access is not None and is_allowed(access.scope, KeyScope(scope))


def _may_decide(access: Access | None) -> bool:
    """Return True if the page shows the buttons that decide what agents trust."""
    return access is not None and _may(access, KeyScope.ADMIN) and is_within(Origin.AGENT, access.trust)


def _may_edit(access: Access | None, memory: Memory) -> bool:
    return access is not None and _may(access, KeyScope.WRITE) and is_within(memory.origin, access.trust)


def render_value(memory: Memory | MemoryVersion, indent: int | None = None) -> str:
    """Return the value of an item as JSON text."""
    return json.dumps(unwrap_value(memory.metadata), ensure_ascii=False, indent=indent)


_PAGES = Environment(
    loader=PackageLoader("wellkept.server.console"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    # Templates of a package do not change while it runs.
    auto_reload=False,
)
_PAGES.globals |= {
    "place": place,
    "moment": moment,
    "age": age,
    "clip": clip,
    "describe_bytes": describe_bytes,
    "is_colour": _is_colour,
    "may": _may,
    "may_decide": _may_decide,
    "may_edit": _may_edit,
    "render_value": render_value,
    "version": __version__,
    "assets": ASSETS,
    "kinds": [*Kind],
    "states": [*State],
    "outcomes": OUTCOMES,
    "clip_long": clip_long,
}
