"""What memory has put into prompts lately, so that it is recognised when it comes back."""

from __future__ import annotations

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
GUARDED = (Origin.AGENT, Origin.TOOL, Origin.MODEL)
"""A person may repeat what they said; a program that does is only hearing itself."""

ECHO_REFUSED = "This came out of memory, so it is remembered already; nothing was stored. Store only what is new."


class Echoes:
    """The latest texts each agent was shown, bounded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: OrderedDict[Owner, deque[str]] = OrderedDict()

    def shown(self, owner: Owner, texts: Iterable[str]) -> None:
        """Say that these texts went into a prompt or an answer."""
        with self._lock:
            latest = self._shown.setdefault(owner, deque(maxlen=TEXTS_PER_OWNER))
            latest.extend(texts)
            self._shown.move_to_end(owner)
            if len(self._shown) > OWNERS:
                self._shown.popitem(last=False)

    def forget(self, tenant: str) -> None:
        """Let go of every text a tenant's agents were shown."""
        with self._lock:
            for owner in [owner for owner in self._shown if owner.tenant == tenant]:
                del self._shown[owner]

    def is_echo(self, memory: Memory) -> bool:
        """Whether a program says only what it has lately been shown."""
        return memory.origin in GUARDED and loop_guard.is_echo(memory.text, self._latest(memory.owner))

    def _latest(self, owner: Owner) -> Sequence[str]:
        with self._lock:
            return tuple(self._shown.get(owner, ()))
