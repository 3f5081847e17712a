"""Loop guard: recognise text that memory itself recently put into a prompt."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from wellkept.errors import ReadOnly
from wellkept.extension import Clock
from wellkept.memory import rules_loop_guard as loop_guard
from wellkept.model import BackgroundStatus, Memory, Origin, Owner
from wellkept.upkeep.writer import BackgroundWriter

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

TEXTS_PER_OWNER = 200
OWNERS = 1_000
SHOWN_PER_OWNER = 2_000
"""Maximum number of hashes that the store keeps of an agent's shown texts."""

KEPT = timedelta(days=1)
"""Time for which the store keeps them: a loop comes back soon, and a fact may be told again."""

RENEWED = timedelta(hours=1)
"""Time after which a text that is shown again is written again."""

MAX_WAITING = 100_000
FORGOTTEN = "shown texts forgotten"
"""Start of the name of the record that says when a tenant's shown texts were last forgotten."""
GUARDED_ORIGINS = (Origin.AGENT, Origin.TOOL, Origin.MODEL)
"""Origins the guard applies to: a person may repeat a statement, a program would only store its own output again."""

BLOCK_SIGNS = ("[mem", "[recalled mem", "[know", "private mem", "core mem", "journal ent", '"count"', "(m-")
"""Texts of which every block that memory put into a prompt holds one. Looking closer takes far longer."""

ECHO_REFUSED = "This came out of memory, so it is remembered already; nothing was stored. Store only what is new."


class LoopGuard:
    """Bounded record of the latest texts shown to each agent, separately for each user and for none.

    This process remembers the texts themselves. Their hashes are written to the store in the background, so that other
    processes recognise them; a crash loses those of the last second.
    """

    def __init__(self, store: SqlStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._lock = threading.Lock()
        # The texts of each owner, with the time at which each was queued for the store.
        self._shown: OrderedDict[Owner, OrderedDict[str, datetime]] = OrderedDict()
        self._writer = BackgroundWriter[Owner, Mapping[str, datetime]](
            self._write,
            merge=lambda older, newer: {**older, **newer},
            name="shown",
            failed="Texts of a prompt could not be kept for the loop guard",
            size=len,
            max_size=MAX_WAITING,
        )

    def note_shown(self, owner: Owner, texts: Iterable[str]) -> None:
        """Record texts that went into a prompt or an answer, and return at once."""
        owner, now, new = owner.of(owner.user), self._now(), dict[str, datetime]()
        with self._lock:
            latest = self._shown.setdefault(owner, OrderedDict())
            for text in texts:
                if text not in latest or now - latest[text] > RENEWED:
                    new[text] = latest[text] = now
                latest.move_to_end(text)
            while len(latest) > TEXTS_PER_OWNER:
                latest.popitem(last=False)
            self._shown.move_to_end(owner)
            if len(self._shown) > OWNERS:
                self._shown.popitem(last=False)
        if new:
            self._writer.add(owner, new)

    def flush(self, tenant: str | None = None) -> None:
        """Write the queued hashes of one tenant or of all."""
        self._writer.flush(lambda owner: tenant in (None, owner.tenant))

    def forget(self, tenant: str) -> None:
        """Drop what is recorded of a tenant's agents, here and in the store."""
        with self._lock:
            for owner in [owner for owner in self._shown if owner.tenant == tenant]:
                del self._shown[owner]
        self._writer.forget(lambda owner: owner.tenant == tenant)
        self._store.forget_shown(tenant)
        # Other processes may have queued such texts before.
        self._store.put_record(f"{FORGOTTEN} {tenant}", "", at=self._now())

    def status(self) -> BackgroundStatus:
        """Return the state of the queue."""
        return self._writer.status()

    def close(self) -> None:
        """Write the queued hashes and stop the thread. Raises: StoreError."""
        self._writer.close()

    def is_echo(self, memory: Memory) -> bool:
        """Return True if a program only repeats text it was recently shown, or anybody a whole block of a prompt."""
        if memory.origin not in GUARDED_ORIGINS:
            lowered = memory.text.lower()
            has_sign = any(sign in lowered for sign in BLOCK_SIGNS)
            return has_sign and frozenset() in loop_guard.list_echo_hashes(memory.text)
        choices = loop_guard.list_echo_hashes(memory.text)
        with self._lock:
            latest = tuple(self._shown.get(memory.home, ()))
        known = frozenset(map(loop_guard.hash_shown, latest))
        if any(choice <= known for choice in choices):
            return True
        shared = [_add_user(memory.user, each) for each in choices]
        every = frozenset().union(*shared)
        found = self._store.find_shown(memory.owner, every, since=self._now() - KEPT) if every else frozenset()
        return any(choice.issubset(found) for choice in shared)

    def _write(self, owner: Owner, texts: Mapping[str, datetime]) -> bool:
        forgotten, at = self._store.find_record(f"{FORGOTTEN} {owner.tenant}"), max(texts.values())
        since = datetime.min.replace(tzinfo=UTC) if forgotten is None else forgotten[1]
        new = (loop_guard.hash_shown(text) for text, shown_at in texts.items() if shown_at > since)
        hashes = {found for found in new if found is not None}
        shown, since = _add_user(owner.user, hashes), at - KEPT
        try:
            return not hashes or self._store.add_shown(owner.whole, shown, at=at, since=since, keep=SHOWN_PER_OWNER)
        # Where nothing can be written, nothing can come back.
        except ReadOnly:
            return True


def _add_user(user: str | None, hashes: Collection[str]) -> frozenset[str]:
    """Return hashes that only this user has; those of no user stay as they are."""
    return frozenset(sha256(f"{user}\n{each}".encode()).hexdigest() if user else each for each in hashes)
