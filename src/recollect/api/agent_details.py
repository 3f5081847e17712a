"""The verbs of an agent's long texts and its consolidation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from recollect.api.agent_records import AgentView
from recollect.caller import current_caller
from recollect.capturing import captured
from recollect.errors import Invalid
from recollect.model import Captured, Detail, DetailPage, Proposal, ProposalState
from recollect.policy.memories import trust
from recollect.policy.memories.trust import check_removal
from recollect.policy.names import proposal_seq
from recollect.policy.numbers import checked_whole
from recollect.ports import Place
from recollect.services.details.capture import COMMAND_OUTPUT
from recollect.services.details.pieces import Text
from recollect.services.recall.recall import checked_limit

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


class Capturing(AgentView):
    """The verbs that stand between a tool and a prompt."""

    def capture(
        self,
        output: str,
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """What to put into the prompt for an output: the output itself if it is short, else the line that stands for
        it. Then all of it is stored, and `read_detail` reads it in parts. `source` is the command or tool.

        Raises: Invalid.
        """
        return self.capture_output(
            output,
            source=source,
            status=status,
            type=type,
            session_id=session_id,
            duration=duration,
            metadata=metadata,
        ).text

    def capture_output(
        self,
        output: str | IO[bytes],
        *,
        source: str = "",
        status: str = "",
        type: str = COMMAND_OUTPUT,
        session_id: str | None = None,
        duration: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Captured:
        """The same, told with the key; `output` may also be a seekable file, of which only a piece is in memory.

        Raises: Invalid.
        """
        capture = self._services.capture
        keep: Callable[..., Captured] = capture.file if hasattr(output, "read") else capture
        return keep(
            self.owner,
            output,
            source=source,
            status=status,
            type=type,
            session_id=session_id,
            duration=duration,
            metadata=metadata,
        )

    def captured(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A decorator for tool functions, `@atlas.captured` or `@atlas.captured(source=…)`: `recollect.captured` for
        this agent."""
        return captured(self, **options) if function is None else captured(self, **options)(function)


ANY_STATE = "all"
PAGE = 100


class Consolidation(AgentView):
    """The verbs that fold memories into fewer."""

    def consolidate(self) -> Sequence[Proposal]:
        """Look for memories that one could stand for, by a model if one is configured, by rules in any case; the new
        proposals, applied already where the settings say so and they are trusted enough."""
        return self._services.consolidate(self.owner)

    def proposals(
        self, *, state: str = ProposalState.OPEN, before: str | None = None, limit: int = PAGE
    ) -> Sequence[Proposal]:
        """What was proposed, newest first; `state` is open, applied, rejected, undone or all.

        Raises: Invalid.
        """
        seq = None if before is None else proposal_seq(before)
        if before is not None and seq is None:
            raise Invalid("`before` is the id of a proposal, such as p-3.")
        return self._store.list_proposals(
            self.owner, state=_checked_state(state), before=seq, limit=checked_limit(limit, most=MAX_PAGE)
        )

    def apply_proposal(self, id: str) -> Proposal:
        """Let the proposed memory stand for those it takes in, which are ended but kept.

        Raises: NotFound; Conflict when it is not open, or one of them has changed since; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.apply(self.owner, id)

    def reject_proposal(self, id: str) -> Proposal:
        """Leave everything as it is; the same is not proposed again.

        Raises: NotFound; Conflict when it is not open; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.reject(self.owner, id)

    def undo_proposal(self, id: str) -> Proposal:
        """Take an applied proposal back: what it took in is as it was, and what it made is gone.

        Raises: NotFound; Conflict when it is not applied, or one of its memories has changed since; Forbidden.
        """
        trust.check_decision(current_caller().trust)
        return self._services.consolidate.undo(self.owner, id)


def _checked_state(state: str) -> ProposalState | None:
    if state == ANY_STATE:
        return None
    try:
        return ProposalState(state)
    except ValueError:
        choices = ", ".join(ProposalState)
        raise Invalid(f"There is no state {str(state)[:40]!r}; choose {choices} or {ANY_STATE}.") from None
