"""Secret detection: check texts before they are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wellkept.deadline import check_deadline
from wellkept.errors import Invalid, SecretRejected
from wellkept.extension import Clock, Progress
from wellkept.memory.rules_kinds import check_metadata
from wellkept.meter import METER
from wellkept.model import Json, Kind, Memory
from wellkept.secrets import rules_scan as scan
from wellkept.text_cache import cache_text
from wellkept.transfer.rules import CONTENTS, KEYS, read_facts

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore


REJECTED = "text appears to contain a secret — not stored"
METADATA_REJECTED = "metadata appears to contain a secret — not stored"
VALUE_REJECTED = "value appears to contain a secret — not stored"
FLAG = "secret"
RANDOM_RUN = "random-run"
MAX_KNOWN_NAMES = 4_096


def allowance_hash(text: str) -> str:
    """Return the hash under which an allowed text is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


class SecretGuard:
    """Guard that checks every text before it is written and rejects, redacts or flags it."""

    def __init__(self, store: SqlStore, now: Clock, *, mode: str, also_allowed: Collection[str] = ()) -> None:
        """Set up; `mode` is what is done with a text that contains a secret."""
        self._store, self._now, self._also_allowed = store, now, also_allowed
        self.mode = mode
        self.is_flagging = mode == "flag"

    def refuse(self, message: str, *, rule: str) -> SecretRejected:
        """Count a refused text and return the exception to raise."""
        METER.get().count_secret("reject")
        return SecretRejected(message, rule=rule)

    def check(self, memory: Memory) -> Memory:
        """Return the memory unchanged, redacted, or flagged with the matching rule.

        Raises: SecretRejected in mode `reject`, and in every mode for a secret in a tag, a category, an id, a key or a
        namespace.
        """
        tenant = memory.owner.tenant
        for tag in memory.tags:
            if found := self.findings(tenant, tag):
                raise self.refuse(REJECTED, rule=found[0].rule)
        self.check_names(tenant, session_id=memory.session_id, category=memory.category)
        # Joined by "/", its names would read as one long one.
        self.check_names(tenant, namespace=(memory.namespace or "").replace("/", "\n"), key=memory.item_key)
        metadata, rule = self.check_metadata(tenant, memory.metadata, is_item=memory.kind is Kind.ITEM)
        found = self.findings(tenant, memory.text)
        rule = found[0].rule if found else rule
        if not rule:
            return memory
        if self.mode != "reject":
            METER.get().count_secret(self.mode)
        if self.mode == "redact":
            return replace(memory, text=scan.redact(memory.text, found), metadata=metadata)
        if self.mode == "flag":
            return replace(memory, flag="; ".join(filter(None, [memory.flag, f"{FLAG}: {rule}"])))
        raise self.refuse(REJECTED, rule=rule)

    def check_metadata(
        self, tenant: str, metadata: Mapping[str, Any], *, is_item: bool = False
    ) -> tuple[Mapping[str, Any], str]:
        """Return metadata unchanged (also in mode `flag`) or redacted, and the rule that found a secret in it, or "".

        Raises: SecretRejected in mode `reject`, and if what is left would be no JSON.
        """
        text = json.dumps(metadata, ensure_ascii=False) if metadata else ""
        if not text or not (found := self.findings(tenant, text)):
            return metadata, ""
        if self.mode == "redact":
            with suppress(ValueError):
                cleaned = json.loads(scan.redact(text, found))
                # A mark may make it longer than metadata may be.
                return (cleaned if is_item else check_metadata(cleaned)), found[0].rule
        elif self.mode == "flag":
            return metadata, found[0].rule
        raise self.refuse(VALUE_REJECTED if is_item else METADATA_REJECTED, rule=found[0].rule)

    def check_text(self, tenant: str, text: str) -> str:
        """Return a text that cannot carry a flag: unchanged (also in mode `flag`) or redacted.

        Raises: SecretRejected in mode `reject`.
        """
        if self.mode == "flag" or not (found := self.findings(tenant, text)):
            return text
        if self.mode == "redact":
            METER.get().count_secret("redact")
            return scan.redact(text, found)
        raise self.refuse(REJECTED, rule=found[0].rule)

    def check_names(self, tenant: str, **names: str | None) -> None:
        """Check ids and other short texts that cannot be redacted, each given by what it is.

        An id may be random, so a random run counts as a secret only if a rule knows its shape.

        Raises: SecretRejected in every mode.
        """
        for what, name in names.items():
            if not name or _is_clean(name):
                continue
            for found in self.findings(tenant, name):
                if found.rule != RANDOM_RUN:
                    what = what.replace("_", " ")
                    raise self.refuse(f"{what} appears to contain a secret — not stored", rule=found.rule)

    def redact(self, tenant: str, text: str) -> str:
        """Replace every secret by a mark, in every mode. For descriptions and messages."""
        return scan.redact(text, found) if (found := self.findings(tenant, text)) else text

    def clean(self, tenant: str, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a text that must not be rejected, and the rules that found a secret in it.

        The text is redacted, except in mode `flag`.
        """
        found = self.findings(tenant, text)
        rules = tuple(dict.fromkeys(each.rule for each in found))
        if found:
            METER.get().count_secret("flag" if self.is_flagging else "redact")
        return (text if self.is_flagging or not found else scan.redact(text, found)), rules

    def findings(self, tenant: str, text: str) -> list[scan.SecretFinding]:
        """Return the secrets found in a text that are not allowed. Queries the store only if there are any."""
        found = scan.find_secrets(text)
        if not found:
            return []
        allowed = {*self._store.list_allowances(tenant), *self._also_allowed}
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


@cache_text(MAX_KNOWN_NAMES)
def _is_clean(name: str) -> bool:
    """Return True if nothing in `name` looks like a secret. Ids are written again and again."""
    return not scan.find_secrets(name)


SHELVES: Mapping[str, str] = {table: shelf for table, (shelf,) in read_facts("shelf").items()}
SHELF_ORDER = "agents memories changes transcripts details documents workflows prompts audit".split()
"""Names of the shelves in the order in which they are listed."""

MACHINE_COLUMNS = frozenset(
    """hash prev_hash content_hash created_at updated_at expires_at replaced_at archived_at last_retrieved_at valid_from
    valid_to held_at at kind role scope origin state change seq""".split()
)
"""Columns that the program fills by itself."""

ID_COLUMNS = frozenset(["id", "agent_id", "session_id", "document_id", "workflow_id", "key", "source"])
"""Columns with ids, which may be random."""

OVERLAP = 500
"""Characters of a long text that are read again with the next piece, for a secret between two pieces."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Record that appears to contain a secret, with the matching rules; never the secret itself."""

    shelf: str = field(metadata={"description": "Where it is stored.", "examples": ["memories"]})
    agent: str | None = field(metadata={"description": "null: it belongs to all agents."})
    id: str
    rules: tuple[str, ...] = field(metadata={"description": "Rules that matched."})


def scan_tenant(
    store: SqlStore, guard: SecretGuard, tenant: str, progress: Progress | None = None
) -> Iterator[Sighting]:
    """Scan every text of a tenant, in any state, as of one moment; yield each record with a secret, by shelf.

    `progress` is called after each row, with a total of 0.
    """
    found: dict[tuple[str, str | None, str], dict[str, None]] = {}
    in_contents: dict[str, dict[str, None]] = {}
    last_hash, last_text, done = "", "", 0

    def take(table: str, row: Json) -> None:
        nonlocal last_hash, last_text, done
        check_deadline()
        if table == CONTENTS:
            # A piece of a long text; the details that refer to it come later.
            hash, text = str(row["content_hash"]), str(row.get("text", ""))
            before = last_text[-OVERLAP:] if hash == last_hash else ""
            last_hash, last_text = hash, text
            if findings := guard.findings(tenant, before + text):
                in_contents.setdefault(hash, {}).update({each.rule: None for each in findings})
        elif table in SHELVES:
            rules = _find_rules(guard, tenant, row)
            if table == "details":
                rules |= in_contents.get(str(row["content_hash"]), {})
            if rules:
                agent = row["id"] if table == "agents" else row.get("agent_id")
                found.setdefault((SHELVES[table], agent, _record_id(table, row)), {}).update(rules)
        done += 1
        if progress is not None:
            progress(done, 0)

    store.export_rows(tenant, take)
    for shelf, agent, id in sorted(found, key=lambda each: SHELF_ORDER.index(each[0])):
        yield Sighting(shelf, agent, id, tuple(found[shelf, agent, id]))


def _find_rules(guard: SecretGuard, tenant: str, row: Json) -> dict[str, None]:
    rules: dict[str, None] = {}
    for column, value in row.items():
        if column in MACHINE_COLUMNS or not value or isinstance(value, int | float):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found = (each.rule for each in guard.findings(tenant, text))
        rules |= {rule: None for rule in found if not (column in ID_COLUMNS and rule == RANDOM_RUN)}
    return rules


def _record_id(table: str, row: Json) -> str:
    """Return the id under which people find the record."""
    if table in ("memories", "memory_versions", "changes"):
        return f"{'c' if table == 'changes' else 'm'}-{row['seq']}"
    if table == "kb_chunks":
        return str(row["document_id"])
    return "/".join(str(row[column]) for column in KEYS[table] if column != "agent_id")
