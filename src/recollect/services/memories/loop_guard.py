"""Loop guard: recognise text that memory itself recently put into a prompt."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from recollect.lazy import LazyModule
from recollect.model import Memory, Origin, Owner

if TYPE_CHECKING:
    from recollect.policy.memories import loop_guard
else:
    loop_guard = LazyModule("recollect.policy.memories.loop_guard")

TEXTS_PER_OWNER = 200
OWNERS = 1_000
GUARDED_ORIGINS = (Origin.AGENT, Origin.TOOL, Origin.MODEL)
"""Origins the guard applies to: a person may repeat a statement, a program would only store its own output again."""

BLOCK_MARK = re.compile(
    r"\[(?:recalled )?memories\]|\[knowledge\]|private memory|core memories|journal entries|\"(?:memories|results)\""
    r"|^[ \t>|]*[-*+•–]\s*\((?:m-\d|memory|audit|workflow|knowledge)",
    re.IGNORECASE | re.MULTILINE,
)
"""Mark of a block that memory put into a prompt. Most texts have none, and looking closer takes far longer."""

ECHO_REFUSED = "This came out of memory, so it is remembered already; nothing was stored. Store only what is new."


class LoopGuard:
    """Bounded record of the latest texts shown to each agent, separately for each user and for none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: OrderedDict[Owner, deque[str]] = OrderedDict()

    def shown(self, owner: Owner, texts: Iterable[str]) -> None:
        """Record texts that went into a prompt or an answer."""
        owner = owner.of(owner.user)
        with self._lock:
            latest = self._shown.setdefault(owner, deque(maxlen=TEXTS_PER_OWNER))
            latest.extend(texts)
            self._shown.move_to_end(owner)
            if len(self._shown) > OWNERS:
                self._shown.popitem(last=False)

    def forget(self, tenant: str) -> None:
        """Drop the recorded texts of a tenant's agents."""
        with self._lock:
            for owner in [owner for owner in self._shown if owner.tenant == tenant]:
                del self._shown[owner]

    def is_echo(self, memory: Memory) -> bool:
        """Return True if a program only repeats text it was recently shown, or anybody a whole block of a prompt."""
        if memory.origin in GUARDED_ORIGINS:
            return loop_guard.is_echo(memory.text, self._latest(memory.home))
        return BLOCK_MARK.search(memory.text) is not None and loop_guard.is_echo(memory.text, ())

    def _latest(self, owner: Owner) -> Sequence[str]:
        with self._lock:
            return tuple(self._shown.get(owner, ()))
