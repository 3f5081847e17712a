"""Methods to look after an agent's memories: their history, the review of new ones, and restoring old ones."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.api.agent_records import MAX_PAGE, AgentView, parse_state
from recollect.errors import Invalid
from recollect.model import KindName, Memory, MemoryVersion, StateName
from recollect.policy.memories.kinds import check_kind
from recollect.policy.numbers import check_before
from recollect.policy.text import check_text
from recollect.services.memories.drafts import check_filter
from recollect.services.recall.recall import check_limit

NOTHING_NAMED = (
    "Name the memories to restore: their ids, or state= with archived or expired, optionally with kind, tag and "
    "session_id."
)
BOTH_NAMED = "Name the memories to restore either by their ids or by state, kind, tag and session_id, not by both."


class AgentCuration(AgentView):
    """Methods to review and restore memories."""

    def history(self, id: str, *, before: int | None = None, limit: int | None = None) -> Sequence[MemoryVersion]:
        """List earlier versions of a memory, newest first.

        `before` (a version) and `limit` page through them; by default all are returned.

        Raises: NotFound, Invalid.
        """
        most = None if limit is None else check_limit(limit, most=MAX_PAGE)
        return self._store.list_versions(self.owner, id, before=check_before(before), limit=most)

    def review(self) -> Sequence[Memory]:
        """List memories that await a person's decision: held for lack of trust, or marked as suspicious."""
        return self._store.list_for_review(self.owner, limit=MAX_PAGE)

    def approve(self, id: str) -> Memory:
        """Approve a memory from the review for use. Raises: NotFound."""
        return self._services.remember.approve(self.owner, id)

    def approve_workspace(self) -> int:
        """Trust the notes that came with the workspace file like the user's own; return how many there were.

        Raises: Invalid when the agent has no such file; Forbidden in a user's view.
        """
        return self._services.remember.approve_workspace(self.owner)

    def restore(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        state: StateName | None = None,
        kind: KindName | None = None,
        tag: str = "",
        session_id: str | None = None,
    ) -> Sequence[Memory]:
        """Make archived or expired memories live again, and return them.

        Name one id or several, or restore all that are in a `state` (archived or expired) and have this kind, tag and
        session. The end of a restored memory is renewed by the lifetime of its category, and its decay starts again.
        By id, a live memory is returned unchanged. By state, memories that were corrected stay as they are.

        Raises: Invalid, NotFound; Conflict when a memory was corrected, or a live one has the same text; Forbidden.
        """
        restore, is_filtered = self._services.restore, any((state, kind, tag, session_id))
        if ids is not None:
            if is_filtered:
                raise Invalid(BOTH_NAMED)
            return restore(self.owner, [ids] if isinstance(ids, str) else list(ids))
        named = None if state is None else parse_state(state)
        if named is None:
            raise Invalid(NOTHING_NAMED)
        return restore.restore_matching(
            self.owner,
            named,
            kind=None if kind is None else check_kind(kind),
            tag=check_text(tag, what="tag").strip(),
            only=check_filter(session_id, None, None, None, None),
        )
