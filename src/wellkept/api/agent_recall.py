"""Methods that recall an agent's memories for a question, and explain the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Unpack

from wellkept.api.agent_records import AgentView, trace_operation
from wellkept.errors import Invalid
from wellkept.memory.rules_filters import MemoryFilters, check_filters
from wellkept.memory.rules_kinds import check_kind, check_moment
from wellkept.model import Explanation, KindName, Recalled, Source, SourceName
from wellkept.recall.explain import Explain
from wellkept.recall.rules_ranking import RecallRequest, check_purpose


class RecallOptions(MemoryFilters, total=False):
    """Options of a recall, other than the question."""

    limit: int
    kinds: Collection[KindName] | None
    sources: Collection[SourceName] | None
    purpose: str | None
    as_of: datetime | None
    min_relevance: float | None


class AgentRecall(AgentView):
    """Methods that recall and explain."""

    @trace_operation("search_memory")
    def recall(self, query: str, *, user: str | None = None, **options: Unpack[RecallOptions]) -> Recalled:
        """Find what answers a question best; each hit carries the parts of its score.

        Returns at most `limit` hits (5). Searches the agent's own memories and the tenant's audit log, workflow steps
        and knowledge. `sources` limits that to some of memory, audit, workflow and knowledge, `kinds` to memories of
        these kinds. `purpose` tunes the result for task_intake, tool_selection, decision_memo, content or delegation.
        `as_of` recalls as if asked at that time. The best hits are returned however weak they are, but none for small
        talk; `min_relevance` leaves out the less relevant. `where`, `tag`, `session_id`, `scope`, `origin`, `since`
        and `until` filter as in `list`, before the best are chosen, and limit the search to memories. `user` recalls as
        in that user's view, from memory and knowledge only. Sources that did not answer in time are listed in the
        result's `unanswered`.

        Raises: Invalid, Forbidden; StoreError when no source answered.
        """
        return self._services.recall(self._narrow(user), _build_request(query, **options))

    def explain(
        self, query: str, id: str | None = None, *, user: str | None = None, **options: Unpack[RecallOptions]
    ) -> Explanation:
        """Explain why `recall` with these arguments returns the memory, event, step or passage `id`, or omits it.

        Without an `id`, `items` of the result explain every hit and the best of what was left out.

        Raises: Invalid; StoreError when no source answered.
        """
        services = self._services
        explain = Explain(self._store, services.recall, services.context_calls, now=services.now)
        return explain(self._narrow(user), _build_request(query, **options), id)


def _build_request(
    query: str,
    *,
    limit: int = 5,
    kinds: Collection[KindName] | None = None,
    sources: Collection[SourceName] | None = None,
    purpose: str | None = None,
    as_of: datetime | None = None,
    min_relevance: float | None = None,
    **filters: Unpack[MemoryFilters],
) -> RecallRequest:
    return RecallRequest(
        query=query,
        limit=limit,
        kinds=None if kinds is None else tuple(check_kind(kind) for kind in kinds),
        sources=parse_sources(sources),
        purpose=check_purpose(purpose),
        as_of=None if as_of is None else check_moment(as_of, "as_of"),
        min_relevance=min_relevance,
        where=check_filters(**filters),
    )


def parse_sources(names: Collection[str] | None) -> Sequence[Source] | None:
    """Look up sources by name; None stays None, for the default.

    Raises: Invalid.
    """
    if names is None:
        return None
    known = {each.value: each for each in Source}
    for name in names:
        if name not in known:
            raise Invalid(f"There is no source {str(name)[:40]!r}; choose among {', '.join(known)}.")
    if not names:
        raise Invalid(f"Name at least one source: {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(names)]
