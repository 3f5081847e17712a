"""Looking for secrets in what is already stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.deadline import checked_steps
from recollect.model import Memory, Owner
from recollect.ports import Clock, Store
from recollect.services.secrets import SecretGuard
from recollect.services.walk import Progress, owners

PAGE = 500


@dataclass(frozen=True, slots=True)
class Sighting:
    """A memory that seems to hold a secret, and which rules say so. Never the secret."""

    owner: Owner
    id: str
    rules: tuple[str, ...]


class Scan:
    """Walks over every memory of a tenant, whatever its state."""

    def __init__(self, store: Store, guard: SecretGuard, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._now = now

    def __call__(self, tenant: str, *, progress: Progress | None = None) -> Iterator[Sighting]:
        """What was found, one by one as it is found. `progress` is told after each agent how many are done."""
        total = sum(1 for _ in owners(self._store, tenant)) if progress is not None else 0
        for done, owner in enumerate(owners(self._store, tenant), start=1):
            for memory in checked_steps(self._memories(owner)):
                rules = self._rules(memory)
                if rules:
                    yield Sighting(owner, memory.id, rules)
            if progress is not None:
                progress(done, total)

    def _memories(self, owner: Owner) -> Iterator[Memory]:
        before = None
        while page := self._store.list_memories(owner, state=None, now=self._now(), before=before, limit=PAGE):
            yield from page
            before = int(page[-1].id.removeprefix("m-"))

    def _rules(self, memory: Memory) -> tuple[str, ...]:
        texts = [memory.text, *memory.tags]
        if memory.version > 1:
            for old in self._store.list_versions(memory.owner, memory.id):
                texts += [old.text, *old.tags]
        return tuple(dict.fromkeys(f.rule for text in texts for f in self._guard.findings(memory.owner.tenant, text)))
