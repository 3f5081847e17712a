"""Check what is written for credentials, and scan what is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.deadline import checked_steps
from recollect.errors import Invalid, SecretRejected
from recollect.lazy import LazyModule
from recollect.model import Memory, Owner
from recollect.ports import AllowanceStore, Clock, Store
from recollect.services.walk import Progress, owners

if TYPE_CHECKING:
    from recollect.policy.secrets import scan
else:
    scan = LazyModule("recollect.policy.secrets.scan")

REJECTED = "text appears to contain a secret — not stored"
FLAG = "secret"


def allowance_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SecretGuard:
    """Looks at every text before it is written, and does what the mode says."""

    def __init__(self, store: AllowanceStore, now: Clock, *, mode: str) -> None:
        self._store = store
        self._now = now
        self._mode = mode

    @property
    def mode(self) -> str:
        """What happens to a text that holds a secret."""
        return self._mode

    @property
    def is_flagging(self) -> bool:
        """Whether secrets are stored as they are, with a mark."""
        return self._mode == "flag"

    def checked(self, memory: Memory) -> Memory:
        """The memory as it may be stored: unchanged, redacted, or flagged with the rule that saw something.

        Raises: SecretRejected in mode `reject`, and always for a secret inside a tag.
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

    def checked_text(self, tenant: str, text: str) -> str:
        """A text that has no place for a flag, as it may be stored: unchanged (also in mode `flag`) or redacted.

        Raises: SecretRejected in mode `reject`.
        """
        if self._mode == "flag" or not (found := self.findings(tenant, text)):
            return text
        if self._mode == "redact":
            return scan.redact(text, found)
        raise SecretRejected(REJECTED)

    def redacted(self, tenant: str, text: str) -> str:
        """`text` with a mark in the place of every secret, whatever the mode: for what is said about a text."""
        return scan.redact(text, found) if (found := self.findings(tenant, text)) else text

    def cleaned(self, tenant: str, text: str) -> tuple[str, tuple[str, ...]]:
        """A text that must not be lost, as it may be kept, and the rules that saw a secret in it: in mode `flag` as it
        is, otherwise with a mark in the secret's place."""
        found = self.findings(tenant, text)
        rules = tuple(dict.fromkeys(each.rule for each in found))
        return (text if self.is_flagging or not found else scan.redact(text, found)), rules

    def findings(self, tenant: str, text: str) -> list[scan.Finding]:
        """What looks like a secret and has not been allowed. Asks the store only if something does."""
        found = scan.find_secrets(text)
        if not found:
            return []
        allowed: Collection[str] = self._store.list_allowances(tenant)
        return [each for each in found if allowance_hash(text[each.start : each.end]) not in allowed]

    def allow(self, tenant: str, text: str) -> int:
        """Say that what looks like a secret in `text` is none; how many such pieces there were. Only hashes are kept.

        Raises: Invalid when nothing in `text` looks like a secret.
        """
        pieces = [text[each.start : each.end] for each in scan.find_secrets(text)]
        if not pieces:
            raise Invalid("Nothing in this text looks like a secret, so there is nothing to allow.")
        for piece in pieces:
            self._store.add_allowance(tenant, allowance_hash(piece), now=self._now())
        return len(pieces)


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
