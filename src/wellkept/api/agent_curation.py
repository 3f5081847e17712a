"""Methods to look after an agent's memories: facts of conversations, history, review, and restoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from wellkept.api.agent_records import MAX_PAGE, AgentView, parse_state
from wellkept.errors import Invalid
from wellkept.facts.requests import make_request
from wellkept.language.values import check_before, check_limit
from wellkept.memory.rules_filters import MemoryFilters, check_filters, leave_out_items
from wellkept.memory.rules_kinds import check_kind
from wellkept.model import AddedFacts, KindName, Memory, MemoryVersion, StateName

NOTHING_NAMED = (
    "Name the memories to restore: their ids, state= with archived or expired, or where=; optionally with kind, tag "
    "and other filters."
)
BOTH_NAMED = "Name the memories to restore either by their ids or by state, where and other filters, not by both."


class AgentCuration(AgentView):
    """Methods to store the facts of conversations, and to restore memories."""

    def add(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session_id: str | None = None,
        dry_run: bool = False,
        user: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AddedFacts:
        """Store the lasting facts, preferences, decisions and promises of a conversation, in one transaction.

        `messages` are mappings with `role` and `content`, as chat models take them. A configured model reads them;
        without one, and when it fails, rules keep statements in the user's own words. The result lists what was
        `added`, `updated`, `superseded` and `dropped`, each with its turn; its `undo()` reverts all of it. With
        `dry_run`, nothing is stored. `user` is the end user they belong to; by default that of the session. `metadata`,
        a JSON object of up to 8 KB, is that of each new memory; memories that are only edited keep their own.

        Raises: Invalid; SecretRejected when the session id or the metadata looks like a secret.
        """
        request = make_request(messages, session_id=session_id, dry_run=dry_run, metadata=metadata)
        return self._services.facts(self._narrow(user), request)

    def history(self, id: str, *, before: int | None = None, limit: int | None = None) -> Sequence[MemoryVersion]:
        """List earlier versions of a memory, newest first.

        `before` (a version) and `limit` page through them; by default all are returned.

        Raises: NotFound, Invalid.
        """
        most = None if limit is None else check_limit(limit, most=MAX_PAGE)
        return self._store.list_versions(self.owner, id, before=check_before(before), limit=most)

    def restore(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        state: StateName | None = None,
        kind: KindName | None = None,
        **filters: Unpack[MemoryFilters],
    ) -> Sequence[Memory]:
        """Make archived or expired memories live again, and return them.

        Name one id or several, or restore all that are in a `state` (archived or expired), have this kind and pass the
        filters of `list`. `where` may name the state instead, or leave it out for both. The end of a restored memory is
        renewed by the lifetime of its category, and its decay starts again. By id, a live memory is returned unchanged.
        Otherwise, memories that were corrected stay as they are.

        Raises: Invalid, NotFound; Conflict when a memory was corrected, or a live one has the same text; Forbidden.
        """
        restore, is_filtered = self._services.restore, any((state, kind, *filters.values()))
        if ids is not None:
            if is_filtered:
                raise Invalid(BOTH_NAMED)
            return restore(self.owner, [ids] if isinstance(ids, str) else list(ids))
        named = None if state is None else parse_state(state)
        where = check_filters(**filters)
        if named is None and (state is not None or not filters.get("where")):
            raise Invalid(NOTHING_NAMED)
        of_kind = None if kind is None else check_kind(kind)
        return restore.restore_matching(self.owner, named, kind=of_kind, where=leave_out_items(where, of_kind))
