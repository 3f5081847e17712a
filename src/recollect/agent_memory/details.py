"""An agent's details: big texts that prompts only refer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.agent_memory.view import AgentView
from recollect.caller import current_caller
from recollect.model import Detail, DetailPage
from recollect.policy.numbers import checked_whole
from recollect.policy.trust import check_removal
from recollect.ports import Place
from recollect.services.pieces import Text
from recollect.services.recall import checked_limit

MAX_PAGE = 500


class AgentDetails(AgentView):
    """The verbs that store and read big texts."""

    def store_detail(
        self,
        content: Text,
        *,
        description: str = "",
        type: str = "text",
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Detail:
        """Keep a big text under a key; when this returns, it is on disk. `content` is the text itself, a `Path`, an
        open file or anything that gives it in parts; of those only the part at hand is in memory. The text is kept as
        it is; description, summary and metadata, which reach prompts, lose what looks like a credential.

        Raises: Invalid.
        """
        return self._services.details.store(
            self.owner, content, description=description, type=type, session_id=session_id, metadata=metadata
        )

    def read_detail(
        self,
        key: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        lines: str | None = None,
        head: int | None = None,
        tail: int | None = None,
        grep: str | None = None,
        context: int = 2,
        json_path: str | None = None,
    ) -> DetailPage:
        """A part of a big text: `limit` characters from `offset` on, or one of `lines` ("120-180"), `head` or `tail`
        (so many lines), `grep` (lines that hold this or match /this/, with `context` lines around) and `json_path`.
        `limit` (default 4,000 for a page, 50,000 otherwise) bounds every answer; `remaining` says how to go on.

        Raises: NotFound; Invalid; StoreError when the text is missing or damaged.
        """
        return self._services.details.read(
            self.owner,
            key,
            offset=offset,
            limit=limit,
            lines=lines,
            head=head,
            tail=tail,
            grep=grep,
            context=context,
            json_path=json_path,
        )

    def search_details(
        self, query: str = "", *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Details in whose key, type, description, summary or source the words stand: most of the words first, then
        the newest; `offset` of them are passed over. Without a word: the newest.

        Raises: Invalid.
        """
        return self._services.details.search(
            self.owner,
            query,
            session_id=session_id,
            offset=checked_whole(offset, "offset"),
            limit=checked_limit(limit, most=MAX_PAGE),
        )

    def list_details(
        self,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: str | Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """Details, newest first; `is_active` False lists hidden ones, None all. `before` continues a listing: a key, or
        `(created_at, key)`, which may be gone by now.

        Raises: Invalid; NotFound when the key is gone.
        """
        if isinstance(before, str):
            last = self.get_detail(before)
            before = last.created_at, last.key
        return self._store.list_details(
            self.owner,
            session_id=session_id,
            is_active=is_active,
            before=before,
            limit=checked_limit(limit, most=MAX_PAGE),
        )

    def get_detail(self, key: str) -> Detail:
        """What is known about a big text, also about a hidden one.

        Raises: NotFound.
        """
        return self._services.details.get(self.owner, key)

    def hide_detail(self, key: str, *, is_hidden: bool = True) -> Detail:
        """Keep a big text, but let nobody find or read it any more; or show it again.

        Raises: NotFound, Forbidden.
        """
        check_removal(current_caller().trust)
        return self._services.details.set_active(self.owner, key, not is_hidden)

    def delete_detail(self, key: str) -> None:
        """Delete a big text for good.

        Raises: NotFound, Forbidden.
        """
        check_removal(current_caller().trust)
        self._services.details.delete(self.owner, key)
