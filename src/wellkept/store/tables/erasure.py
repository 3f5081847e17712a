"""Erasure of texts: the tables that hold them, and the rows to remove or clear with each.

`TABLES` lists every table of tenants with the columns that hold user text, read from `transfer/tables.toml`; a test
compares it with the schema.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from wellkept.caller import OWN_ACTORS
from wellkept.deadline import check_deadline
from wellkept.history.rules_history import START, event_hash
from wellkept.language.text import index_terms
from wellkept.model import ACTOR, Erased, Key, Trace
from wellkept.store.engine import Row, Unit
from wellkept.store.tables.agents import renew_index
from wellkept.store.tables.history import PAGE, AuditRows, ChainWalk, read_head, refuse_foreign
from wellkept.store.tables.history import SHELF as AUDIT
from wellkept.store.tables.knowledge import SHELF as KNOWLEDGE
from wellkept.store.tables.rows import (
    event_from,
    is_searchable,
    memory_from,
    memory_values,
    moment,
    note_entries,
    stamp,
)
from wellkept.transfer.rules import read_facts
from wellkept.upkeep.rules_erasure import BY_ID, ERASED, ERASED_ACTION, MARKED, SALT_CHARS, hash_mark, mark_row

NOTES_FILE = "notes_file"
"""Pseudo-table for the lines of a workspace's file that are no notes. The database has no copy of them."""

BATCH = 500
"""Maximum number of rows removed by one statement."""


@dataclass(frozen=True, slots=True)
class ErasureTable:
    """Columns of one table of tenants' rows."""

    start: Key  # sorts before every key; one entry per key column
    is_agents: bool = False  # has an agent_id and is read agent by agent
    json: tuple[str, ...] = ()  # columns with texts inside JSON
    texts: tuple[str, ...] = ()  # plain text columns


TABLES: Mapping[str, ErasureTable] = {
    table: ErasureTable(
        tuple(facts["start"]),
        facts.get("is_agents", False),
        json=tuple(facts.get("json", "").split()),
        texts=tuple(facts.get("texts", "").split()),
    )
    for table, facts in read_facts("erasure").items()
}

DEPENDENT_TABLES = tuple(read_facts("unsearched"))
"""Tables of tenants that need no search."""

GOES_WITH: Mapping[str, tuple[tuple[str, str], ...]] = {
    "memories": (("erase_memory_index", "memory_index"), ("erase_versions_of_memories", "memory_versions")),
    "chat_sessions": (("erase_messages_of_sessions", "chat_messages"),),
    "kb_chunks": (("erase_chunk_index", "chunk_index"),),
    "kb_documents": (("erase_chunk_index_of_documents", "chunk_index"), ("erase_chunks_of_documents", "kb_chunks")),
    "workflow_steps": (("erase_step_index", "step_index"),),
    "workflows": (("erase_step_index_of_workflows", "step_index"), ("erase_steps_of_workflows", "workflow_steps")),
}
"""Statements that remove the dependent rows of a table, and the table each one removes from."""

CHILDREN: Mapping[str, tuple[str, str]] = {
    "chat_sessions": ("messages_of_sessions", "chat_messages"),
    "kb_documents": ("chunks_of_documents", "kb_chunks"),
    "workflows": ("steps_of_workflows", "workflow_steps"),
}
"""Tables with potentially many child rows: the statement that lists the children, and their table."""

ORDER = (
    *("memory_versions", "memories", "changes", "context_calls", "details", "chat_messages", "chat_sessions"),
    *("kb_chunks", "kb_documents", "workflow_steps", "workflows", "secret_allowances", "agents"),
)
"""Order of removal. Agents come last, so that rows added to one meanwhile are removed with it."""

CLEARED = ("chat_messages", "chat_sessions", "api_keys", "audit_log")
"""Tables whose rows are kept with their text cleared."""


class Sealing:
    """New hashes of the audit log after some events are cleared.

    They are computed from a snapshot first, so that writers wait only for the events added since.
    """

    def __init__(self, cleared: Mapping[int, Trace], key: str) -> None:
        """Set up for the cleared events, by number."""
        self.first = min(cleared)
        self._cleared = cleared
        self._key = key
        self._start()

    def follow(self, unit: Unit) -> None:
        """Read on to the end of the log, or to the first broken event."""
        while rows := unit.all("events_after", tenant=unit.tenant, id=self._walk.at, limit=PAGE):
            check_deadline()
            for row in rows:
                self._walk.take(row)
                if self._walk.is_broken:
                    return
                self._add_hash(row)

    def is_complete(self, unit: Unit) -> bool:
        """Read the events added since; return False if the log is broken."""
        at = unit.all("events_after", tenant=unit.tenant, id=self._walk.at - 1, limit=1)
        # Another erasure re-sealed the log meanwhile.
        if at and at[0][8] != self._walk.hash:
            self._start()
        if not self._walk.is_broken:
            self.follow(unit)
        return not self._walk.report(read_head(unit)).broken

    def write(self, unit: Unit) -> None:
        """Store the new hashes of the events and of the head."""
        before = [self._before, *self._hashes]
        unit.run_many(
            "seal_event",
            (
                {"tenant": unit.tenant, "id": id, "previous_hash": previous_hash, "hash": hash}
                for id, previous_hash, hash in zip(count(self.first), before, self._hashes, strict=False)
            ),
        )
        unit.put("keep_audit_hash", tenant=unit.tenant, hash=before[-1])

    def _start(self) -> None:
        self._walk = ChainWalk(self._key)
        self._before = START
        self._hashes: list[str] = []

    def _add_hash(self, row: Row) -> None:
        event = event_from(row[:-1])
        if event.id < self.first:
            self._before = event.hash
            return
        if event.id in self._cleared:
            trace = self._cleared[event.id]
            agent = None if trace.has_ids else event.agent_id
            action = ERASED_ACTION if trace.has_action else event.action
            event = replace(event, message=ERASED, meta={}, agent_id=agent, action=action)
        previous_hash = self._hashes[-1] if self._hashes else self._before
        self._hashes.append(event_hash(replace(event, previous_hash=previous_hash), previous_hash, self._key))


class ErasureRows(AuditRows):
    """Erasure of rows without a trace."""

    def list_traces(
        self,
        tenant: str,
        table: str,
        *,
        agent: str = "",
        session_id: str = "",
        user: str | None = None,
        after: Key = (),
        limit: int = 500,
    ) -> Sequence[Trace]:
        """List the rows of a table with all their texts, by key, starting after `after`.

        Tables of agents' rows are read for one agent; `session_id` limits the listing to that session, `user` to the
        rows of that user, or with "" to those of no user.
        """
        if table == NOTES_FILE:
            return []
        start = after or TABLES[table].start
        values = {"tenant": tenant, "agent": agent, "session": session_id, "after": start[0], "limit": limit}
        values |= {"after_too": start[-1]} | ({} if user is None else {"user": user})
        read = self._read_sealed if table == "audit_log" else self.read
        rows = read(tenant, lambda unit: unit.all(f"traces_in_{table}", **values))
        return [_trace_from(table, row) for row in rows]

    def list_hanging(self, tenant: str, parents: Sequence[Trace]) -> Sequence[Trace]:
        """List the messages, passages and steps that belong to the sessions, documents and workflows in `parents`.

        Their texts are not loaded.
        """

        def read(unit: Unit) -> list[Trace]:
            found = []
            for _, table, keys in _iter_batches((each for each in parents if each.table in CHILDREN), (*CHILDREN,)):
                statement, child = CHILDREN[table]
                rows = unit.all(statement, tenant=tenant, names=[str(key) for key in keys])
                found += [Trace(table=child, key=tuple(key), size=size or 0) for *key, size in rows]
            return found

        return self.read(tenant, read)

    def plan_sealing(self, tenant: str, cleared: Sequence[Trace]) -> Sealing | None:
        """Compute the sealed audit log without the texts of these events, for `erase_traces`.

        This is slow and writes nothing: call it before the transaction.
        """
        sealing = self._make_sealing(cleared)
        if sealing is not None:
            self.read(tenant, sealing.follow)
        return sealing

    def erase_traces(
        self, tenant: str, gone: Sequence[Trace], cleared: Sequence[Trace], *, sealing: object = None
    ) -> Erased:
        """Delete the `gone` rows with their dependents, and replace the texts of the `cleared` ones by a mark.

        Rows that no longer exist are skipped. An intact audit log stays an intact chain.
        """

        def erase(unit: Unit) -> Erased:
            removed, marked = Counter[str](), Counter[str]()
            self._lock_rows(unit, [*gone, *cleared])
            head = read_head(unit)
            refuse_foreign(head.hash, self.audit_key)
            for statement, table, values in self._iter_removals(tenant, gone):
                removed[table] += unit.run(statement, **values)
            self._reindex(unit, gone)
            # Re-seal only an intact log: one that was tampered with must stay visibly broken.
            seal = sealing if isinstance(sealing, Sealing) else self._make_sealing(cleared)
            is_intact = seal is not None and seal.is_complete(unit)
            for has_ids in (False, True):
                chosen = [each for each in cleared if each.has_ids is has_ids]
                for (agent, parent), table, keys in _iter_batches(chosen, CLEARED):
                    values = self._batch_params(tenant, agent, parent, keys) | {"mark": ERASED}
                    marked[table] += unit.run(f"clear_{'ids_' * has_ids}{table}", **values)
            for (agent, parent), table, keys in _iter_batches((each for each in cleared if each.has_action), CLEARED):
                values = self._batch_params(tenant, agent, parent, keys)
                unit.run(f"clear_actions_{table}", **values, action=ERASED_ACTION)
            if seal is None or not is_intact:
                return Erased(removed=+removed, cleared=+marked)
            seal.write(unit)
            return Erased(removed=+removed, cleared=+marked, resealed_from=seal.first, head_before=head)

        return self.write(tenant, erase)

    def keep_erased(self, tenant: str, marks: Collection[str], *, now: datetime) -> None:
        """Remember that rows with these marks were erased. Only salted hashes are stored."""

        def keep(unit: Unit) -> None:
            salts = _list_salts(unit) or [secrets.token_hex(SALT_CHARS // 2)]
            hashes = ({"hash": hash_mark(salts[0], mark)} for mark in sorted(marks))
            unit.run_many("keep_erased", ({"tenant": tenant, "now": now} | each for each in hashes))

        self.write(tenant, keep)

    def find_erased(self, tenant: str, marks: Collection[str]) -> Mapping[str, datetime]:
        """Return those of the marks that were erased, and when they last were."""

        def find(unit: Unit) -> dict[str, datetime]:
            known = {hash_mark(salt, mark): mark for salt in _list_salts(unit) for mark in marks}
            rows = unit.all("find_erased", tenant=tenant, names=list(known)) if known else []
            return {known[hash]: moment(erased_at) for hash, erased_at in rows}

        return self.read(tenant, find)

    def forget_cached(self, tenant: str) -> None:
        """Drop the cached rows of a tenant."""
        self._engine.forget(tenant)

    def scrub(self, *, compact: bool | None = None) -> Sequence[str]:
        """Free the bytes of deleted rows; return where some may remain, and until when.

        `compact` rewrites the files while writers wait; None does only what lets them in between.
        """
        return self._engine.scrub([*TABLES, *DEPENDENT_TABLES], compact=compact)

    def _make_sealing(self, cleared: Sequence[Trace]) -> Sealing | None:
        events = {int(each.key[0]): each for each in cleared if each.table == "audit_log"}
        return Sealing(events, self.audit_key) if events else None

    def _lock_rows(self, unit: Unit, traces: Sequence[Trace]) -> None:
        """Lock the rows that every writer locks first, in a fixed order to avoid deadlocks. Invalidates caches."""
        for agent in sorted({each.agent for each in traces if each.table in ("memories", "memory_versions")}):
            renew_index(unit, agent)
        if any(each.table in ("kb_documents", "kb_chunks") for each in traces):
            unit.put("touch_shelf", tenant=unit.tenant, shelf=KNOWLEDGE)
        if any(each.table == "audit_log" for each in traces):
            unit.put("touch_shelf", tenant=unit.tenant, shelf=AUDIT)

    def _reindex(self, unit: Unit, gone: Sequence[Trace]) -> None:
        """Index memories that lose a former text by the text they have: a gist has the words of the one before."""
        for agent, seq in sorted({(each.agent, int(each.key[0])) for each in gone if each.table == "memory_versions"}):
            row = unit.one("find_memory", tenant=unit.tenant, agent=agent, seq=seq)
            if row is None:
                continue
            memory = memory_from(row)
            values = memory_values(memory, seq)
            unit.put("remove_from_index", tenant_id=unit.tenant, agent_id=agent, seq=seq)
            if is_searchable(values):
                (entry,) = self._engine.index.encoded([index_terms(memory.text)], [None])
                unit.put("index_memory", **values, **entry)
                note_entries(unit, [entry])

    def _iter_removals(self, tenant: str, gone: Sequence[Trace]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield (statement, table it removes from, parameters), children first so that their rows are counted."""
        for (agent, parent), table, keys in _iter_batches(gone, ORDER):
            values = self._batch_params(tenant, agent, parent, keys)
            for statement, hanging in GOES_WITH.get(table, ()):
                yield statement, hanging, values
            yield f"erase_{table}", table, values

    def _batch_params(self, tenant: str, agent: str, parent: str | int, keys: Sequence[str | int]) -> dict[str, Any]:
        numbers = [key for key in keys if isinstance(key, int)]
        names = [key for key in keys if isinstance(key, str)]
        return {
            "tenant": tenant,
            "agent": agent,
            "parent": parent,
            "numbers": numbers,
            "names": names,
        }


def _iter_batches(
    traces: Iterable[Trace], order: Sequence[str]
) -> Iterator[tuple[tuple[str, str | int], str, Sequence[str | int]]]:
    """Yield batches of keys for one statement each: same table, agent and parent (a session or a workflow)."""
    groups: dict[tuple[str, str, str | int], set[str | int]] = defaultdict(set)
    for each in traces:
        agent = each.agent if TABLES[each.table].is_agents else ""
        groups[each.table, agent, each.key[0] if len(each.key) > 1 else ""].add(each.key[-1])
    for table in order:
        for (name, agent, parent), found in groups.items():
            # The keys of a table are either all numbers or all names, so they can be sorted.
            keys = sorted(found) if name == table else ()
            for start in range(0, len(keys), BATCH):
                yield (agent, parent), table, keys[start : start + BATCH]


def _list_salts(unit: Unit) -> list[str]:
    return [row[0] for row in unit.all("list_erased_salts", tenant=unit.tenant)]


def _trace_from(table: str, row: Row) -> Trace:
    agent, belongs_to, *key = row[:4]
    texts = tuple(_iter_texts(table, row[5:]))
    made = stamp(row[4]) if isinstance(row[4], datetime) else row[4] or ""
    mark = mark_row(table, str(key[0]) if table in BY_ID else texts[0], made) if table in MARKED else ""
    return Trace(
        table=table,
        key=tuple(part for part in key if part is not None),
        agent=agent or "",
        belongs_to=belongs_to or "",
        texts=texts,
        size=sum(map(len, texts)),
        mark=mark,
    )


def _iter_texts(table: str, values: Row) -> Iterator[str]:
    if table == "audit_log":
        values = (*values[:-1], _without_own_actor(values[-1]))
    elif table == "changes":
        # Of what a change does to memories, only the tags of a proposed one are somebody's words.
        memories = _parse_json(values[-1]) if isinstance(values[-1], str) else values[-1]
        values = (*values[:-1], [each["after"].get("tags", []) for each in memories])
    for value in values:
        if isinstance(value, str):
            yield value
        elif value is not None:
            # PostgreSQL returns JSON columns already parsed.
            yield "\n".join(_iter_strings(value))
    for value in values if TABLES[table].json else ():
        if isinstance(value, str) and value[:1] in ("[", "{"):
            yield "\n".join(_iter_strings(_parse_json(value)))


def _without_own_actor(meta: Any) -> Any:
    """Remove an actor of wellkept itself from an event's meta, so that erasing "operator" matches no event."""
    read = _parse_json(meta) if isinstance(meta, str) else meta
    if isinstance(read, Mapping) and read.get(ACTOR) in OWN_ACTORS:
        return {name: value for name, value in read.items() if name != ACTOR}
    return meta


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # The text only looks like JSON; the caller has yielded it unchanged.
        return None


def _iter_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value in order, at any depth."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, Mapping):
            waiting += [each for pair in reversed([*inner.items()]) for each in reversed(pair)]
        elif isinstance(inner, list):
            waiting += reversed(inner)
