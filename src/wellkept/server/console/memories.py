"""The memories of an agent: searched by words and meaning, filtered, sorted and exported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Depends, Query
from fastapi.responses import Response
from pydantic_core import to_json

from wellkept.api.views import ANY_STATE, MAX_PAGE, PAGE
from wellkept.errors import Invalid
from wellkept.memory.rules_filters import Condition, join_conditions, parse_filter
from wellkept.model import Memory, Origin
from wellkept.server.console.home import count_agents
from wellkept.server.console.pages import AtAgent, page_router, place
from wellkept.server.http.auth import CurrentAgent
from wellkept.server.http.routing import READ
from wellkept.server.paging import read_page

MAX_NEAR = 20
"""Memories listed for their meaning below those that contain the words."""

MAX_SUGGESTED = 8
NEWEST = "newest"
LONG_AGO = datetime.min.replace(tzinfo=UTC)
FAR_AWAY = datetime.max.replace(tzinfo=UTC)
SORTS: Mapping[str, tuple[Callable[[Memory], Any], bool]] = {
    "importance": (attrgetter("importance"), True),
    "recalled": (lambda memory: memory.last_retrieved_at or LONG_AGO, True),
    "expires": (lambda memory: memory.ends_at or FAR_AWAY, False),
    "edited": (lambda memory: memory.updated_at or LONG_AGO, True),
    "text": (lambda memory: memory.text.casefold(), False),
}
"""Orders other than newest first, and whether the highest comes first. The store has no index for them."""

router = page_router("/agents/{agent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Parameters of a listing. The address of a page holds all of them, so that it can be shared."""

    q: Annotated[str, Query()] = ""
    kind: Annotated[str, Query()] = ""
    tag: Annotated[str, Query()] = ""
    # Filters: each is a chip, and all have to hold.
    where: Annotated[list[str] | None, Query()] = None
    state: Annotated[str, Query()] = ANY_STATE
    review: Annotated[str, Query()] = ""
    sort: Annotated[str, Query()] = NEWEST
    before: Annotated[str, Query()] = ""

    @property
    def filters(self) -> list[str]:
        return [each for each in self.where or () if each.strip()]

    @property
    def is_narrowed(self) -> bool:
        return self != ListQuery(sort=self.sort)

    def address(self, agent: str, *parts: str, **changes: Any) -> str:
        """Return the address of the same listing with some parameters changed; a change starts at the first page."""
        changed = replace(self, **{"before": "", **changes})
        values = {each.name: getattr(changed, each.name) for each in fields(changed)} | {"where": changed.filters}
        usual = {"state": ANY_STATE, "sort": NEWEST}
        values |= {name: "" for name, value in usual.items() if values[name] == value}
        return place("agents", agent, *parts, **values)

    def parse(self) -> Condition | None:
        """Return the filters as one condition. Raises: Invalid."""
        return join_conditions(*(parse_filter(each) for each in self.filters))


Asked = Annotated[ListQuery, Depends()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Memories of one page."""

    memories: Sequence[Memory]
    older: str = ""  # id that the next page continues before
    near: Sequence[tuple[Memory, float]] = ()  # found by meaning, with their relevance
    examined: int = 0  # newest ones among which the page is sorted; 0: all


@router.get("", scope=READ)
def list_memories(visit: AtAgent, asked: Asked) -> Response:
    """Show memories in any state, newest first unless asked otherwise."""
    problem = ""
    try:
        listing = find_memories(visit.memory, asked, asked.parse())
    except Invalid as error:
        if not asked.filters:
            raise
        # A filter that is being typed: show what the others find.
        listing, problem = find_memories(visit.memory, replace(asked, where=[]), None), str(error)
    shown = [*listing.memories, *(each for each, _ in listing.near)]
    return visit.page(
        "memories.html",
        status=200,
        asked=asked,
        listing=listing,
        problem=problem,
        counts=count_kinds(visit),
        suggestions=suggest_filters(shown, asked),
        times=suggest_times(asked, visit.wellkept.now()) if shown else [],
        sorts=[NEWEST, *SORTS],
        all_memories=ANY_STATE,
    )


@router.get("/shown", scope=READ)
def export_shown(visit: AtAgent, asked: Asked) -> Response:
    """Return the memories that a listing shows, and up to 500 that follow, as JSON. Raises: Invalid."""
    listing = find_memories(visit.memory, asked, asked.parse(), limit=MAX_PAGE)
    found = [*listing.memories, *(each for each, _ in listing.near)]
    name = f"{visit.id}-memories.json"
    return Response(
        to_json(found, indent=2),
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def find_memories(memory: CurrentAgent, asked: ListQuery, where: Condition | None, limit: int = PAGE) -> Listing:
    """Return the memories that contain the words, then those near in meaning. Raises: Invalid."""
    if asked.sort not in (NEWEST, *SORTS):
        raise Invalid(f"There is no such order; choose {', '.join((NEWEST, *SORTS))}.")
    if asked.review:
        flagged = [each for each in memory.review.list() if asked.q.casefold() in each.text.casefold()]
        return Listing(memories=flagged[:limit])
    if asked.q.strip() and limit == PAGE:
        # A page of both stays as small as one of either.
        limit = PAGE - MAX_NEAR
    is_sorted = asked.sort != NEWEST
    found = read_page(
        lambda before, count: memory.list(
            kind=asked.kind or None,  # type: ignore[arg-type]
            state=asked.state or ANY_STATE,  # type: ignore[arg-type]
            tag=asked.tag,
            query=asked.q,
            where=where,
            before=before,
            limit=count,
        ),
        attrgetter("id"),
        asked.before or None,
        limit=MAX_PAGE if is_sorted else limit,
    )
    near = [] if asked.before else _find_near(memory, asked, where, {each.id for each in found.items})
    if not is_sorted:
        return Listing(memories=found.items, older=found.end or "", near=near)
    key, is_highest_first = SORTS[asked.sort]
    ordered = sorted(found.items, key=key, reverse=is_highest_first)
    return Listing(memories=ordered[:limit], near=near, examined=len(found.items) if found.end else 0)


def _find_near(
    memory: CurrentAgent, asked: ListQuery, where: Condition | None, known: set[str]
) -> list[tuple[Memory, float]]:
    """Return memories that recall finds for the words of a search, without marking them as retrieved."""
    if not asked.q.strip() or asked.state not in (ANY_STATE, "live"):
        return []
    options: dict[str, Any] = {"kinds": [asked.kind]} if asked.kind else {}
    hits = memory.explain(asked.q, None, limit=MAX_NEAR, sources=["memory"], where=where, tag=asked.tag, **options).hits
    return [(hit.memory, hit.relevance) for hit in hits if hit.memory is not None and hit.id not in known]


def suggest_times(asked: ListQuery, now: datetime) -> list[tuple[str, str]]:
    """Return filters by time, unless there is one: label and filter."""
    if any(each.startswith("created_at") for each in asked.filters):
        return []
    return [(f"last {days} days", f"created_at >= {now - timedelta(days=days):%Y-%m-%d}") for days in (7, 30)]


def suggest_filters(shown: Sequence[Memory], asked: ListQuery) -> list[tuple[str, str, int]]:
    """Return filters that narrow what is shown: label, filter and number of memories, most frequent first."""
    counts = Counter(pair for memory in shown for pair in _describe(memory))
    found = [(label, filter, count) for (label, filter), count in counts.most_common(4 * MAX_SUGGESTED)]
    taken = {*asked.filters, f"tags = {quote_value(asked.tag)}"}
    return [each for each in found if each[1] not in taken and each[2] < len(shown)][:MAX_SUGGESTED]


def _describe(memory: Memory) -> Iterator[tuple[str, str]]:
    for tag in memory.tags:
        yield f"tag {tag}", f"tags = {quote_value(tag)}"
    if memory.user:
        yield f"user {memory.user}", f"user = {quote_value(memory.user)}"
    if memory.session_id:
        yield f"session {memory.session_id}", f"session_id = {quote_value(memory.session_id)}"
    if memory.origin is not Origin.USER:
        yield f"from {memory.origin.value}", f"origin = {memory.origin.value}"
    for key, value in memory.metadata.items():
        if key.isidentifier() and isinstance(value, str | int | bool) and memory.item_key is None:
            is_text = isinstance(value, str)
            yield f"{key} {value}", f"metadata.{key} = {quote_value(value) if is_text else to_json(value).decode()}"


def quote_value(text: object) -> str:
    """Return a text as a filter writes it.

    >>> quote_value("it's")
    "'it''s'"
    """
    return "'" + str(text).replace("'", "''") + "'"


def count_kinds(visit: AtAgent) -> Mapping[str, int] | None:
    """Count an agent's memories of each kind; None while a large store is counted."""
    if visit.access.user is not None:
        return {kind.value: count for kind, count in visit.tenant.agents.count_memories(visit.id).items()}
    stats = visit.tenant.upkeep.peek_stats()
    return None if stats is None else count_agents(stats).get(visit.id, Counter())
