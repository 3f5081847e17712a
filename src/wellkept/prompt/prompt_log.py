"""Record what each context call showed, and look it up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from wellkept.errors import NotFound
from wellkept.knowledge.skills import Skills
from wellkept.language.names import memory_seq
from wellkept.model import BackgroundStatus, BlockItem, ContextCall, Message, Owner
from wellkept.prompt.rules_window import text_digest
from wellkept.upkeep.background import Queue

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_WAITING = 1_000
"""Maximum number of queued calls, while their agent does not exist or the store fails; the oldest are dropped first."""


CHANGED, GONE = "changed", "gone"
_TURNS = re.compile(r"turns? (\d+)(?: to (\d+))?")


class ContextCalls:
    """Log of context calls: the stored ones and those queued for writing."""

    def __init__(self, store: SqlStore, skills: Skills, *, keep: int) -> None:
        self._store, self._skills, self._keep = store, skills, keep
        self._writer = Queue[Owner, Sequence[ContextCall]](
            lambda owner, calls: store.add_context_calls(owner, calls, keep=keep),
            merge=lambda older, newer: [*older, *newer][-keep:],
            name="context-calls",
            failed="Context calls could not be recorded",
            size=len,
            max_size=MAX_WAITING,
        )

    def add(self, call: ContextCall) -> None:
        """Queue a call for writing and return at once."""
        if self._keep:
            self._writer.add(call.owner, [call])

    def get(self, owner: Owner, id: str) -> ContextCall:
        """Return a call by its id.

        Raises: NotFound.
        """
        found = [call for call in self._unwritten(owner) if call.id == id]
        return found[0] if found else self._store.get_context_call(owner, id)

    def latest(
        self, owner: Owner, *, session_id: str, before: str, limit: int, item: str | None = None
    ) -> Sequence[ContextCall]:
        """Return the latest calls, newest first; `item` is that of the store."""
        unwritten = [
            call if item is None else _replace_items(call, lambda items: [each for each in items if each.id == item])
            for call in reversed(self._unwritten(owner))
            if session_id in ("", call.session_id) and (not before or call.id < before)
        ]
        stored = self._store.list_context_calls(owner, session_id=session_id, before=before, limit=limit, item=item)
        return [*unwritten, *stored][:limit] if unwritten else stored

    def inspect(self, owner: Owner, id: str) -> ContextCall:
        """Return a call with each item's current text, marked if it changed or is gone.

        Raises: NotFound.
        """
        call = self.get(owner, id)
        texts = dict(self._texts(owner, call))
        return _replace_items(
            call, lambda items: [_with_current_text(item, texts.get((item.source, item.id))) for item in items]
        )

    def flush(self, tenant: str) -> None:
        """Write the queued calls of one tenant; calls that cannot be written stay queued."""
        self._writer.flush(lambda owner: owner.tenant == tenant)

    def forget(self, tenant: str) -> None:
        """Drop the queued calls of a tenant's agents."""
        self._writer.forget(lambda owner: owner.tenant == tenant)

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued calls and stop the thread.

        Raises: StoreError.
        """
        self._writer.close()

    def _unwritten(self, owner: Owner) -> Sequence[ContextCall]:
        """Write an agent's queued calls; return those that the store does not accept now."""
        error = self._writer.flush(lambda each: each == owner.whole)
        waiting = () if error is None else self._writer.peek(owner.whole) or ()
        return [call for call in waiting if owner.has(call.user)]

    def _texts(self, owner: Owner, call: ContextCall) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the text of every item that still exists, by source and id."""
        items = [item for block in call.blocks for item in block.items]
        seqs = {seq: item for item in items if (seq := memory_seq(item.id)) is not None}
        found = self._store.find_memories(owner, list(seqs))
        for item in items:
            memory = found.get(memory_seq(item.id) or 0)
            if memory is not None:
                yield (item.source, item.id), memory.text
        for skill in self._skills.for_agent(owner):
            yield ("skill", skill.name), skill.body
        for item in items:
            if item.source == "turn" and (messages := self._list_turns(owner, call, item.id)):
                yield (item.source, item.id), "\0".join(message.content for message in messages)

    def _list_turns(self, owner: Owner, call: ContextCall, turns: str) -> Sequence[Message]:
        """Return the messages of an item id such as `turns 3 to 5`; each turn has two."""
        match = _TURNS.fullmatch(turns)
        if match is None:
            return ()
        first, last = int(match[1]), int(match[2] or match[1])
        try:
            return self._store.list_messages(
                owner, call.session_id, after=2 * (first - 1), limit=2 * (last - first + 1)
            )
        # The session was deleted.
        except NotFound:
            return ()


def _replace_items(call: ContextCall, change: Callable[[Sequence[BlockItem]], Sequence[BlockItem]]) -> ContextCall:
    return replace(call, blocks=tuple(replace(block, items=tuple(change(block.items))) for block in call.blocks))


def _with_current_text(item: BlockItem, text: str | None) -> BlockItem:
    if text is not None:
        since = "" if text_digest(text) == item.digest else CHANGED
        return replace(item, text=text.replace("\0", "\n\n"), since=since)
    can_be_found = item.source in ("turn", "skill") or memory_seq(item.id) is not None
    return replace(item, since=GONE) if can_be_found else item
