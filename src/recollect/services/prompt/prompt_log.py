"""Record what each context call showed, and look it up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.errors import NotFound
from recollect.model import BackgroundStatus, BlockItem, ContextCall, Message, Owner
from recollect.policy.names import memory_seq
from recollect.policy.prompt.prompt_log import digest
from recollect.ports import ContextStore, Store
from recollect.services.background.writer import Later
from recollect.services.knowledge.skills import Skills

MAX_WAITING = 1_000
"""Calls that may wait for their agent to be made, or for the store to work again; beyond, the oldest are given up."""


class ContextCalls:
    """The calls that wait to be written, and those that were."""

    def __init__(self, store: ContextStore, *, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._later = Later[Owner, Sequence[ContextCall]](
            lambda owner, calls: store.add_context_calls(owner, calls, keep=keep),
            merge=lambda older, newer: [*older, *newer][-keep:],
            name="context-calls",
            failed="What agents were shown could not be written down",
            size=len,
            max_size=MAX_WAITING,
        )

    def add(self, call: ContextCall) -> None:
        """Have this call kept; returns at once."""
        if self._keep:
            self._later.add(call.owner, [call])

    def get(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""
        found = [call for call in self._unwritten(owner) if call.id == id]
        return found[0] if found else self._store.get_context_call(owner, id)

    def latest(self, owner: Owner, *, session_id: str, before: str, limit: int) -> Sequence[ContextCall]:
        """Newest first."""
        unwritten = [
            call
            for call in reversed(self._unwritten(owner))
            if session_id in ("", call.session_id) and (not before or call.id < before)
        ]
        stored = self._store.list_context_calls(owner, session_id=session_id, before=before, limit=limit)
        return [*unwritten, *stored][:limit] if unwritten else stored

    def flush(self, tenant: str) -> None:
        """Write down what has gathered of one tenant; what cannot be written goes on waiting."""
        self._later.flush(lambda owner: owner.tenant == tenant)

    def forget(self, tenant: str) -> None:
        """Give up the calls of a tenant's agents that wait to be written."""
        self._later.forget(lambda owner: owner.tenant == tenant)

    def status(self) -> BackgroundStatus:
        return self._later.status()

    def close(self) -> None:
        """Stop, with everything written.

        Raises: StoreError.
        """
        self._later.close()

    def _unwritten(self, owner: Owner) -> Sequence[ContextCall]:
        """Write down an agent's calls; return those the store does not take at the moment."""
        error = self._later.flush(lambda each: each == owner)
        return () if error is None else self._later.peek(owner) or ()


CHANGED, GONE = "changed", "gone"
_TURNS = re.compile(r"turns? (\d+)(?: to (\d+))?")


class Seen:
    """Looks at one call."""

    def __init__(self, store: Store, skills: Skills, calls: ContextCalls) -> None:
        self._store = store
        self._skills = skills
        self._calls = calls

    def __call__(self, owner: Owner, id: str) -> ContextCall:
        """Raises: NotFound."""
        call = self._calls.get(owner, id)
        texts = dict(self._texts(call))
        blocks = tuple(
            replace(block, items=tuple(_now(item, texts.get((item.source, item.id))) for item in block.items))
            for block in call.blocks
        )
        return replace(call, blocks=blocks)

    def _texts(self, call: ContextCall) -> Iterator[tuple[tuple[str, str], str]]:
        """The text of everything that can be looked up and is there, by source and id."""
        items = [item for block in call.blocks for item in block.items]
        seqs = {seq: item for item in items if (seq := memory_seq(item.id)) is not None}
        found = self._store.find_memories(call.owner, list(seqs))
        for item in items:
            memory = found.get(memory_seq(item.id) or 0)
            if memory is not None:
                yield (item.source, item.id), memory.text
        for skill in self._skills.for_agent(call.owner):
            yield ("skill", skill.name), skill.body
        for item in items:
            if item.source == "turn" and (said := self._said(call, item.id)):
                yield (item.source, item.id), "\0".join(message.content for message in said)

    def _said(self, call: ContextCall, turns: str) -> Sequence[Message]:
        named = _TURNS.fullmatch(turns)
        if named is None:
            return ()
        first, last = int(named[1]), int(named[2] or named[1])
        try:
            return self._store.list_messages(
                call.owner, call.session_id, after=2 * (first - 1), limit=2 * (last - first + 1)
            )
        except NotFound:  # the session was deleted
            return ()


def _now(item: BlockItem, text: str | None) -> BlockItem:
    if text is not None:
        since = "" if digest(text) == item.digest else CHANGED
        return replace(item, text=text.replace("\0", "\n\n"), since=since)
    can_be_found = item.source in ("turn", "skill") or memory_seq(item.id) is not None
    return replace(item, since=GONE) if can_be_found else item
