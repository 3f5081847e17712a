"""Secret detection: check texts before they are written, and scan stored ones."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.deadline import iter_with_deadline
from recollect.errors import Invalid, SecretRejected
from recollect.lazy import LazyModule
from recollect.model import Memory, Owner
from recollect.ports import AllowanceStore, Clock, Store
from recollect.services.walk import Progress, iter_owners

if TYPE_CHECKING:
    from recollect.policy.secrets import scan
else:
    scan = LazyModule("recollect.policy.secrets.scan")

REJECTED = "text appears to contain a secret — not stored"
FLAG = "secret"


def allowance_hash(text: str) -> str:
    """Return the hash under which an allowed text is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


class SecretGuard:
    """Guard that checks every text before it is written and rejects, redacts or flags it."""

    def __init__(self, store: AllowanceStore, now: Clock, *, mode: str) -> None:
        self._store = store
        self._now = now
        self._mode = mode

    @property
    def mode(self) -> str:
        """Configured handling of a text that contains a secret."""
        return self._mode

    @property
    def is_flagging(self) -> bool:
        """True if secrets are stored unchanged and flagged."""
        return self._mode == "flag"

    def check(self, memory: Memory) -> Memory:
        """Return the memory unchanged, redacted, or flagged with the matching rule.

        Raises: SecretRejected in mode `reject`, and in every mode for a secret inside a tag.
        """
        if any(self.findings(memory.owner.tenant, tag) for tag in memory.tags):
            raise SecretRejected(REJECTED)
        found = self.findings(memory.owner.tenant, memory.text)
        if not found:
            return memory
        if self._mode == "redact":
            return replace(memory, text=scan.redact(memory.text, found))
        if self._mode == "flag":
            return replace(memory, flag="; ".join(filter(None, [memory.flag, f"{FLAG}: {found[0].rule}"])))
        raise SecretRejected(REJECTED)

    def check_text(self, tenant: str, text: str) -> str:
        """Return a text that cannot carry a flag: unchanged (also in mode `flag`) or redacted.

        Raises: SecretRejected in mode `reject`.
        """
        if self._mode == "flag" or not (found := self.findings(tenant, text)):
            return text
        if self._mode == "redact":
            return scan.redact(text, found)
        raise SecretRejected(REJECTED)

    def redact(self, tenant: str, text: str) -> str:
        """Replace every secret by a mark, in every mode. For descriptions and messages."""
        return scan.redact(text, found) if (found := self.findings(tenant, text)) else text

    def clean(self, tenant: str, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a text that must not be rejected, and the rules that found a secret in it.

        The text is redacted, except in mode `flag`.
        """
        found = self.findings(tenant, text)
        rules = tuple(dict.fromkeys(each.rule for each in found))
        return (text if self.is_flagging or not found else scan.redact(text, found)), rules

    def findings(self, tenant: str, text: str) -> list[scan.SecretFinding]:
        """Return the secrets found in a text that are not allowed. Queries the store only if there are any."""
        found = scan.find_secrets(text)
        if not found:
            return []
        allowed: Collection[str] = self._store.list_allowances(tenant)
        return [each for each in found if allowance_hash(text[each.start : each.end]) not in allowed]

    def allow(self, tenant: str, text: str) -> int:
        """Allow the secrets found in `text` from now on; return their number. Only hashes are stored.

        Raises: Invalid when nothing in `text` looks like a secret.
        """
        pieces = [text[each.start : each.end] for each in scan.find_secrets(text)]
        if not pieces:
            raise Invalid("Nothing in this text looks like a secret; there is nothing to allow.")
        for piece in pieces:
            self._store.add_allowance(tenant, allowance_hash(piece), now=self._now())
        return len(pieces)


PAGE = 500


@dataclass(frozen=True, slots=True)
class Sighting:
    """Memory that appears to contain a secret, with the matching rules; never the secret itself."""

    owner: Owner
    id: str
    rules: tuple[str, ...]


class SecretScan:
    """Scan of every memory of a tenant, in any state."""

    def __init__(self, store: Store, guard: SecretGuard, now: Clock) -> None:
        self._store = store
        self._guard = guard
        self._now = now

    def __call__(self, tenant: str, *, progress: Progress | None = None) -> Iterator[Sighting]:
        """Yield each sighting as it is found. `progress` is called after each agent."""
        total = sum(1 for _ in iter_owners(self._store, tenant)) if progress is not None else 0
        for done, owner in enumerate(iter_owners(self._store, tenant), start=1):
            for memory in iter_with_deadline(self._memories(owner)):
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
