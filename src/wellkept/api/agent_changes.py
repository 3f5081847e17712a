"""Methods for the changes of an agent's memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wellkept.api.agent_records import ANY_STATE, MAX_PAGE, PAGE, AgentView
from wellkept.errors import Invalid
from wellkept.language.names import change_seq
from wellkept.language.text import check_text
from wellkept.language.values import check_limit
from wellkept.model import Change, ChangeState, Memory


class AgentChanges(AgentView):
    """Changes of an agent's memories: what add, turns, consolidation and edits of several did or propose."""

    def list(
        self, *, state: str = ChangeState.PROPOSED, before: str | None = None, limit: int = PAGE
    ) -> Sequence[Change]:
        """List changes, newest first.

        `state` is proposed, applied, rejected, undone or all; `before` (an id) continues a listing.

        Raises: Invalid.
        """
        seq = None if before is None else change_seq(before)
        if before is not None and seq is None:
            raise Invalid("`before` is the id of a change, such as c-3.")
        if state not in (*ChangeState, ANY_STATE):
            raise Invalid(f"There is no state {state[:40]!r}; choose {', '.join(ChangeState)} or {ANY_STATE}.")
        chosen = None if state == ANY_STATE else ChangeState(state)
        return self._services.changes.list(self.owner, chosen, before=seq, limit=check_limit(limit, most=MAX_PAGE))

    def get(self, id: str) -> Change:
        """Return one change, with what each of its memories says and said before. Raises: NotFound."""
        return self._services.changes.get(self.owner, id)

    def apply(self, id: str) -> Change:
        """Carry out a proposed change. Memories that it ends are kept, and `undo` restores them.

        Raises: NotFound; Conflict when it is not proposed, or one of its memories was edited or deleted since;
        Forbidden.
        """
        return self.get(self._services.changes.apply(self.owner, id).id)

    def reject(self, id: str) -> Change:
        """Reject a proposed change; the same is not proposed again until one of its memories changes.

        Raises: NotFound; Conflict when it is not proposed; Forbidden.
        """
        return self.get(self._services.changes.reject(self.owner, id).id)

    def undo(self, id: str) -> Change:
        """Undo an applied change as a whole: delete what it added, restore what it edited and ended.

        Raises: NotFound; Conflict when it is not applied, or one of its memories was edited or deleted since;
        Forbidden.
        """
        return self.get(self._services.changes.undo(self.owner, id).id)

    def edit(self, ids: Sequence[str], edit: Callable[[Memory], object], *, reason: str) -> Sequence[Change]:
        """Call `edit` with each of these memories, all or none, so that its updates can be undone together.

        `edit` may call `update`, `restore` or `review.approve` of this agent. The reason is shown with the changes, one
        for each user whose memories were edited.

        Raises: NotFound, Invalid, and any error of `edit`.
        """
        changes = self._services.changes.edit(self.owner, ids, edit, check_text(reason, what="reason"))
        return [self.get(each.id) for each in changes]

    def consolidate(self) -> Sequence[Change]:
        """Merge near-duplicates and end contradicted facts now, and return the changes made and proposed.

        Maintenance does it by rules; this also asks the configured model, whose suggestions are only proposed.
        """
        return [self.get(each.id) for each in self._services.consolidate(self.owner)]
