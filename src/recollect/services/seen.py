"""What an agent saw at an earlier call: the record of it, with the texts as they read now.

No text is kept with a call, so what was erased since is gone here, too; a digest tells what was changed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recollect.errors import NotFound
from recollect.model import BlockItem, ContextCall, Message, Owner
from recollect.policy.names import memory_seq
from recollect.policy.shown import digest
from recollect.ports import Store
from recollect.services.context_calls import ContextCalls
from recollect.services.skills import Skills

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
