"""A playground without a model: what a question recalls, why or why not, and the prompt that would be sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from wellkept.errors import Invalid, OverBudget
from wellkept.language.values import parse_min_relevance
from wellkept.recall.rules_ranking import PURPOSES
from wellkept.server.console.pages import page, page_router, place
from wellkept.server.console.prompts import draw_bar
from wellkept.server.http.auth import CurrentAgent, CurrentTenant
from wellkept.server.http.routing import READ

LIMIT = 5

router = page_router("/agents/{agent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskQuery:
    """Parameters of the playground; its address reproduces it."""

    q: Annotated[str, Query()] = ""
    id: Annotated[str, Query()] = ""
    reader: Annotated[str, Query()] = ""  # `user` would limit the login itself
    limit: Annotated[int, Query()] = LIMIT
    purpose: Annotated[str, Query()] = ""
    min_relevance: Annotated[str, Query()] = ""
    where: Annotated[str, Query()] = ""
    as_of: Annotated[str, Query()] = ""
    budget: Annotated[str, Query()] = ""

    @property
    def has_options(self) -> bool:
        return self != AskQuery(q=self.q, reader=self.reader)

    def options(self) -> dict[str, Any]:
        """Return the arguments of `explain`. Raises: Invalid."""
        return {
            "limit": self.limit,
            "purpose": self.purpose or None,
            "min_relevance": parse_min_relevance(self.min_relevance),
            "where": self.where.strip() or None,
            "as_of": _parse_moment(self.as_of),
            "user": self.reader.strip() or None,
        }

    def address(self, agent: str, **changes: object) -> str:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return place("agents", agent, "ask", **values | changes)


@router.get("/ask", scope=READ)
def ask(
    request: Request, tenant: CurrentTenant, memory: CurrentAgent, asked: Annotated[AskQuery, Depends()]
) -> Response:
    """Explain a recall and assemble its prompt, without recording or marking anything."""
    explained, prompt, problem = None, None, ""
    try:
        options = asked.options()
        if asked.q.strip():
            explained = memory.explain(asked.q, asked.id.strip() or None, **options)
            shared = {name: options[name] for name in ("min_relevance", "where", "user")}
            prompt = memory.prompts.preview(asked.q, budget=_parse_budget(asked.budget), **shared)
    except (Invalid, OverBudget) as error:
        problem = str(error)
    return page(
        request,
        "ask.html",
        status=400 if problem else 200,
        agent=tenant.agents.get(memory.owner.agent),
        asked=asked,
        id=asked.id.strip(),
        purposes=[*PURPOSES],
        explained=explained,
        prompt=prompt,
        bar=None if prompt is None else draw_bar(prompt, prompt.tokens),
        problem=problem,
    )


def _parse_budget(text: str) -> int | None:
    """Raises: Invalid."""
    if not text.strip():
        return None
    if not text.strip().isdecimal():
        raise Invalid("The budget is a number of tokens, such as 2000.")
    return int(text)


def _parse_moment(text: str) -> datetime | None:
    """Raises: Invalid."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid("`as_of` is a date or a time, such as 2026-10-01 or 2026-10-01T09:00.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
