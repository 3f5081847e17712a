"""Rows of memories and their versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from wellkept.errors import Conflict, Invalid, NotFound
from wellkept.language.names import change_id, change_seq, memory_id, memory_seq
from wellkept.language.text import content_hash, fold, gist_terms, index_terms, like_literal, terms
from wellkept.memory.rules_filters import EQUAL, STATE, Comparison, Condition, join_conditions
from wellkept.model import (
    NO_USER,
    Change,
    ChangeAction,
    ChangedMemory,
    ChangeState,
    Kind,
    Match,
    Memory,
    MemoryVersion,
    Owner,
    State,
)
from wellkept.model.stored import Encoded, EncodedMemory, MemorySummary, Vector, Vectors
from wellkept.recall.rules_features import Evidence
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import Engine, IndexQuery, Row, Unit, Units, owner_params
from wellkept.store.tables.agents import ask_agent, hold_agent, keep_agent, run_counter, take_numbers, touch_index
from wellkept.store.tables.rows import (
    BEHIND_ALL,
    COLUMNS,
    MAX_PATTERN_BYTES,
    RecordRows,
    is_searchable,
    json_list,
    json_text,
    memory_from,
    memory_values,
    note_change,
    note_entries,
    number_memory,
    number_of,
    summary_from,
    version_from,
)

NO_WORKSPACE = "This agent has no notes in a workspace's file; set `workspace` to the folder that holds them."
NO_SUCH_MEMORY = "There is no such memory."
MAX_KNOWN = 10_000
"""Owners whose number of memories is kept in memory."""

# Statements that select the memories beyond the limit, and the oldest ones of low trust.
_PRUNE = ("beyond_kept", "oldest_low_trust")
_PRUNE_EPISODES = ("beyond_kept_episodes", "oldest_low_trust_episodes")

ADDED = "added"
"""Key of the memories of an agent that a transaction adds, in `Unit.memo`."""

Key = tuple[Owner, Kind]


@dataclass(frozen=True, slots=True)
class _Known:
    """Number of an owner's memories of one kind after a commit, and the state of the agent's row by then."""

    life: int
    rewrites: int
    last_seq: int
    count: int


class MemoryRows(Units):
    """Memories of every kind, among them items (`path` is a namespace as `memory.rules_items` joins it), their history
    and their search index."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._known: dict[Key, _Known] = {}

    def add_memory(self, memory: Memory, vector: Vector | None = None) -> Memory:
        """Add a memory and return it with its id.

        The agent is created if necessary. A memory without a vector waits for embedding.
        """
        return self.add_memories([memory], [vector])[0]

    def encode_memories(self, memories: Sequence[Memory], vectors: Vectors = ()) -> Sequence[EncodedMemory]:
        """Prepare memories before their transaction; return what `add_memories` takes instead of the vectors."""
        words, vectors = [index_terms(each.text) for each in memories], vectors or [None] * len(memories)
        entries = self._engine.index.encoded(words, vectors)
        return [EncodedMemory(memory_values(each, 0), entry) for each, entry in zip(memories, entries, strict=True)]

    def add_memories(self, memories: Sequence[Memory], vectors: Sequence[Encoded]) -> Sequence[Memory]:
        """Add memories of one owner in one transaction."""
        if not memories:
            return []
        owner, pairs = memories[0].owner, zip(memories, vectors, strict=True)
        if any(memory.owner != owner for memory in memories):
            raise Invalid("Memories that are added together must belong to one agent.")
        encoded = [
            each if isinstance(each, EncodedMemory) else self.encode_memories([one], [each])[0] for one, each in pairs
        ]
        rows = [each.row for each in encoded]

        def add(unit: Unit) -> int:
            last = take_numbers(unit, owner, len(memories), memories[0].created_at)
            first = last - len(memories) + 1
            for seq, row in enumerate(rows, first):
                row["seq"] = seq
            _put_all(unit, "add_memory", rows)
            found = [{**row, **entry} for row, entry in encoded if is_searchable(row)]
            note_entries(unit, found)
            _put_all(unit, "index_memory", found)
            unit.memo.setdefault((ADDED, owner.agent), []).extend(memories)
            return first

        first = self.write(owner.tenant, add)
        return [number_memory(memory, seq) for seq, memory in enumerate(memories, first)]

    def raise_counter(self, owner: Owner, seq: int, *, now: datetime) -> int:
        """Reserve all numbers up to `seq`; return the highest reserved so far. Add the agent if it is missing."""
        return self.write(owner.tenant, lambda unit: run_counter(unit, "raise_counter", owner, now, seq=seq))

    def get_memory(self, owner: Owner, id: str) -> Memory:
        """Return one memory. Raises: NotFound."""
        return memory_from(self._get(owner, "find_memory", NO_SUCH_MEMORY, seq=memory_seq(id) or 0))

    def find_memories(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, Memory]:
        """Return the existing ones of these memories, by number."""
        return {row[2]: memory_from(row) for row in self._all(owner, "find_memories", seqs=list(seqs))}

    def find_summaries(self, owner: Owner, seqs: Sequence[int]) -> Mapping[int, MemorySummary]:
        """Return the ranking fields of the existing ones of these memories, by number."""
        return {row[2]: summary_from(row) for row in self._all(owner, "find_memories", seqs=list(seqs))}

    def list_memories(
        self,
        owner: Owner,
        *,
        kind: Kind | None = None,
        needle: str = "",
        where: Condition | None = None,
        state: State | None = State.LIVE,
        now: datetime,
        is_past: bool = False,
        before: int | None = None,
        limit: int = 20,
    ) -> Sequence[Memory]:
        """List memories that meet the condition `where`, newest first.

        `needle` matches anywhere in the text, ignoring case; `state` None means any; `is_past` leaves out what was not
        yet true at `now`; `before` starts after that number.
        """
        pattern = f"%{like_literal(fold(needle))}%"
        if len(pattern.encode()) > MAX_PATTERN_BYTES:
            return []
        in_state = None if state is None else Comparison(STATE, EQUAL, state.value)
        clause = compile_filter(join_conditions(in_state, where), self._engine.name, now, is_past=is_past)
        values = {"needle": pattern, "now": now, "is_past": is_past, "before": BEHIND_ALL if before is None else before}
        name = "list_memories" if kind is None else "list_episodes"
        if kind is not None and kind is not Kind.EPISODE:
            name, values["kind"] = "list_memories_of_kind", kind.value
        return self._list(owner, name, memory_from, number_of, clause, limit=limit, **values)

    def list_told_texts(self, owner: Owner, *, now: datetime, limit: int) -> Sequence[tuple[int, str]]:
        return [(row[0], row[1]) for row in self._all(owner, "told_texts", now=now, limit=limit)]

    def list_told(self, owner: Owner, *, now: datetime, is_ended: bool = False, limit: int) -> Sequence[Memory]:
        name = "list_told_before" if is_ended else "list_told"
        return self._list(owner, name, memory_from, number_of, now=now, limit=limit)

    def approve_notes(self, owner: Owner) -> int:
        """Trust the notes that came with a workspace file like the user's own; return how many there were.

        Raises: Invalid when the agent has no such file.
        """
        raise Invalid(NO_WORKSPACE)

    def find_same_memory(self, owner: Owner, kind: Kind, text: str, *, now: datetime) -> Memory | None:
        """Return the newest live memory of a kind (not an episode) with the same text, ignoring case and white space.

        Inside a transaction, it also keeps other writers from adding one before that transaction ends.
        """
        values = {"kind": kind.value, "content_hash": content_hash(text), "now": now}
        if (unit := self._unit(owner.tenant)) is not None and not self._engine.has_single_writer:
            values |= owner_params(owner)
            held, same = ask_agent(unit, owner), unit.ask("find_same_memory", **values)
            if not keep_agent(unit, owner, held(), now):
                # Another writer may have added the agent meanwhile; look again, now that its row is locked.
                same = unit.ask("find_same_memory", **values)
            row = same()
        else:
            row = self._one(owner, "find_same_memory", **values)
        return None if row is None else memory_from(row)

    def find_last_episode(self, owner: Owner, session_id: str) -> Memory | None:
        """Return the newest episode of a session, if it is among the agent's last few hundred memories."""
        row = self._one(owner, "last_episode", session_id=session_id)
        return None if row is None else memory_from(row)

    def update_memory(
        self, memory: Memory, vector: Vector | None = None, *, replaced_at: datetime, whole: str | None = None
    ) -> Memory:
        """Replace the stored version that `memory` was made from (`memory.version`), and keep that one as history.

        `whole` is the text that a gist stands for: it stays indexed by the words and the vector of that.

        Raises: NotFound; Conflict when it has been edited since.
        """
        owner, seq = memory.owner, memory_seq(memory.id) or 0
        row = memory_values(memory, seq)
        words = gist_terms(memory.text, whole) if whole else index_terms(memory.text)
        (entry,) = self._engine.index.encoded([words], [vector])

        def update(unit: Unit) -> Memory:
            # Every write locks the agent's row first, to avoid deadlocks.
            touch_index(unit, owner)
            stored = memory_from(_get_row(unit, owner, memory.id))
            # Nobody else can change it now.
            if stored.version != memory.version or stored.user != memory.user:
                raise Conflict("This memory was edited meanwhile; read it again.")
            unit.put("keep_version", **_pick(row, "tenant_id agent_id seq version"), replaced_at=replaced_at)
            unit.put("update_memory", **_pick(row, _EDITABLE), replaced_at=replaced_at)
            known = (
                row | _pick(memory_values(stored, seq), "kind session_id role since") | {"version": memory.version + 1}
            )
            # The entry of a gist has words that its text has not; it keeps them as long as the text stays.
            is_same = is_searchable(row) and (whole is not None or stored.text == memory.text)
            note_change(unit)
            if not is_same or not unit.run("renew_entry", **_pick(known, "tenant_id agent_id seq version ends_at")):
                unit.put("remove_from_index", **_pick(row, "tenant_id agent_id seq"))
                if is_searchable(row):
                    unit.put("index_memory", **known, **entry)
                    note_entries(unit, [entry])
            elif whole is not None:
                unit.put("set_memory_words", **owner_params(owner), seq=seq, **entry)
            return _apply_edit(stored, memory, replaced_at)

        return self.write(owner.tenant, update)

    def can_hide(self, memory: Memory) -> bool:
        """Return True if a memory can be hidden and restored."""
        return True

    def list_versions(
        self, owner: Owner, id: str, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[MemoryVersion]:
        """List earlier versions of a memory, newest first, starting after version `before`; `limit` None returns all.

        Raises: NotFound.
        """
        page = {"before": BEHIND_ALL if before is None else before, "limit": BEHIND_ALL if limit is None else limit}

        def read(unit: Unit) -> Sequence[Row]:
            _get_row(unit, owner, id)
            return unit.all("list_versions", **owner_params(owner), seq=memory_seq(id), **page)

        return [version_from(row) for row in self.read(owner.tenant, read)]

    def delete_memory(self, owner: Owner, id: str) -> None:
        """Delete the memory, its history and its index entries. Raises: NotFound."""

        def delete(unit: Unit) -> None:
            touch_index(unit, owner)
            if not unit.run("delete_memory", **owner_params(owner), seq=memory_seq(id) or 0):
                raise NotFound(NO_SUCH_MEMORY)

        self.write(owner.tenant, delete)

    def prune_memories(self, owner: Owner, kind: Kind, *, keep: int, is_low_trust: bool = False) -> Sequence[str]:
        """Delete the oldest memories of a kind beyond `keep` and return their ids.

        `is_low_trust` deletes only those that came from neither the user nor an agent, which may be too few.
        """
        which = {**owner_params(owner), "kind": kind.value}

        def prune(unit: Unit) -> Sequence[str]:
            beyond, low = _PRUNE_EPISODES if kind is Kind.EPISODE else _PRUNE
            if kind is Kind.EPISODE or is_low_trust:
                rows = unit.all(beyond, **which, keep=keep, limit=BEHIND_ALL)
            else:
                rows = self._find_beyond(unit, (owner, kind), which, keep)
            if rows and is_low_trust:
                rows = unit.all(low, **which, limit=len(rows))
            if not rows:
                return []
            touch_index(unit, owner)
            _put_all(unit, "delete_memory", [{**owner_params(owner), "seq": seq} for (seq,) in rows])
            return [memory_id(seq) for seq in sorted(row[0] for row in rows)]

        return self.write(owner.tenant, prune)

    def _find_beyond(self, unit: Unit, key: Key, which: Mapping[str, Any], keep: int) -> Sequence[Row]:
        """Return the numbers of the rows beyond the newest `keep`.

        Stepping over all rows that are kept takes long, so their number is kept in memory. As long as the agent's row
        shows that nothing was removed, only the rows behind the last known one are counted.
        """
        state = unit.memo.get(("agent", key[0].agent)) or unit.one("hold_agent", **owner_params(key[0]))
        if state is None:
            return []
        last_seq, life, rewrites = state
        known = self._known.get(key)
        if known is None or (known.life, known.rewrites) != (life, rewrites):
            rows = unit.all("beyond_kept", **which, keep=keep, limit=BEHIND_ALL)
            count = keep if rows else self._count_after(unit, which, 0)
        # Each new row takes a number, so there are at most this many.
        elif known.count + last_seq - known.last_seq <= keep:
            return []
        else:
            own = unit.memo.get((ADDED, key[0].agent), ())
            count = known.count + (
                # Nobody else took a number meanwhile.
                sum(memory.kind is key[1] and (memory.user or NO_USER) == key[0].user for memory in own)
                if known.last_seq + len(own) == last_seq
                else self._count_after(unit, which, known.last_seq)
            )
            rows = unit.all("oldest_of_kind", **which, limit=count - keep) if count > keep else []
            count = min(count, keep)
        found = _Known(life, rewrites + bool(rows), last_seq, count)
        self._after_commit(lambda: self._remember(key, found))
        return rows

    def _count_after(self, unit: Unit, which: Mapping[str, Any], seq: int) -> int:
        row = unit.one("count_kind_after", **which, seq=seq)
        return 0 if row is None else int(row[0])

    def forget_counts(self, tenant: str) -> None:
        """Drop the numbers known of a tenant's agents."""
        for key in [key for key in self._known.copy() if key[0].tenant == tenant]:
            self._known.pop(key, None)

    def _remember(self, key: Key, found: _Known) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = found

    def search_memories(
        self, owner: Owner, query: str, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Find live memories that share words with `query`, ranked by BM25."""
        words = terms(query)
        if not words or not kinds:
            return []
        wanted = IndexQuery(terms=words, groups=kinds, now=now.timestamp())
        return self._search(owner.tenant).search_memories(owner, wanted, limit)

    def nearest_memories(
        self, owner: Owner, vector: Vector, *, kinds: Collection[Kind], now: datetime, limit: int = 10
    ) -> Sequence[Match]:
        """Find live memories by cosine similarity to `vector`, nearest first."""
        if not kinds:
            return []
        query = IndexQuery(vector=vector, groups=kinds, now=now.timestamp())
        return self._search(owner.tenant).nearest_memories(owner, query, limit)

    def weigh_memories(
        self,
        owner: Owner,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        kinds: Collection[Kind],
        now: datetime,
        is_past: bool = False,
        where: Condition | None = None,
    ) -> Evidence:
        """Return the evidence about every live memory for a question with these `terms` and this `vector`.

        `is_past` leaves out what was not yet true at `now`. `where` limits the memories that may be found; the others
        still count for comparison.
        """
        search = self._search(owner.tenant)
        if not kinds:
            return Evidence.empty()
        at, until = now.timestamp(), int(now.timestamp()) if is_past else None
        return search.weigh_memories(
            owner, IndexQuery(terms=terms, vector=vector, groups=kinds, now=at, until=until, where=where)
        )

    def find_item(self, owner: Owner, path: str, key: str) -> Memory | None:
        # Without a user, a key is that of no user.
        """Return the memory with this key of the owner's user, or else of no user; it may have expired."""
        owners = [owner.of(part.user) for part in owner.parts]

        def find(unit: Unit) -> Memory | None:
            rows = (unit.one("find_item", **owner_params(each), path=path, key=key) for each in owners)
            return next((memory_from(row) for row in rows if row is not None), None)

        return self.read(owner.tenant, find)

    def hold_items(self, owner: Owner, *, now: datetime) -> None:
        """Keep all others from writing items of the agent until this transaction ends."""
        self.write(owner.tenant, lambda unit: hold_agent(unit, owner, now))

    def set_item_end(self, memory: Memory) -> None:
        """Store `expires_at` and `ttl_seconds`. This is no edit, so no version is kept."""
        values = {**owner_params(memory.owner), "seq": memory_seq(memory.id) or 0, "until": memory.expires_at}

        def set_end(unit: Unit) -> None:
            # Every write to the index locks the agent's row first, to avoid deadlocks.
            touch_index(unit, memory.owner)
            unit.put("set_item_end", **values, ttl_seconds=memory.ttl_seconds)
            unit.put("prolong_entry", **values)

        self.write(memory.owner.tenant, set_end)

    def find_item_numbers(
        self, owner: Owner, where: Condition | None, *, now: datetime, limit: int, offset: int = 0
    ) -> Sequence[int]:
        """Return the numbers of the live items that meet a condition, the last written first."""
        clause = compile_filter(where, self._engine.name, now)
        return [row[0] for row in self._all(owner, "item_numbers", clause, now=now, limit=limit, offset=offset)]

    def list_item_paths(self, owner: Owner, first: str, last: str, *, now: datetime, limit: int) -> Sequence[str]:
        """List the different paths of live items from `first` to before `last`, in order."""
        return [row[0] for row in self._all(owner, "item_namespaces", now=now, first=first, last=last, limit=limit)]

    def archive_expired_items(self, owner: Owner, *, now: datetime, limit: int) -> int:
        """Archive expired items and return how many."""

        def archive(unit: Unit) -> int:
            place = {**owner_params(owner), "now": now}
            numbers = [seq for (seq,) in unit.all("expired_items", **place, limit=limit)]
            if not numbers:
                return 0
            touch_index(unit, owner)
            # The end of an item may have moved until the agent's row was locked.
            unit.put("archive_expired_items", **place, numbers=numbers)
            unit.put("remove_archived_from_index", **owner_params(owner), numbers=numbers)
            return len(numbers)

        return self.write(owner.tenant, archive)

    def delete_ended_items(self, owner: Owner, *, before: datetime, limit: int) -> int:
        """Delete items that had expired when they were archived, up to `before`; return how many."""
        return self._delete_old("ended_items", owner, before, limit)

    def delete_forgotten(self, owner: Owner, *, before: datetime, limit: int) -> int:
        """Delete memories that were hidden at a request to forget, up to `before`; return how many."""
        return self._delete_old("forgotten_memories", owner, before, limit)

    def _delete_old(self, name: str, owner: Owner, before: datetime, limit: int) -> int:
        def delete(unit: Unit) -> int:
            rows = unit.all(name, **owner_params(owner), before=before, limit=limit)
            if rows:
                touch_index(unit, owner)
                unit.run_many("delete_memory", [{**owner_params(owner), "seq": seq} for (seq,) in rows])
            return len(rows)

        return self.write(owner.tenant, delete)


_EDITABLE = (
    "tenant_id agent_id seq version text folded tags folded_tags scope importance category expires_at archived_at "
    "content_hash valid_to held_at flag metadata origin ttl_seconds user_id "
    "told sources ended_by ended_as forgotten_at"
)
"""Parameters of the statement `update_memory`."""


_EDITED_FIELDS = [
    each.name for each in fields(Memory) if each.name in _EDITABLE.split() and each.name not in ("version", "user")
]


def _apply_edit(stored: Memory, edited: Memory, replaced_at: datetime) -> Memory:
    """Copy the fields that an edit may change from `edited` to `stored`."""
    changed = {name: getattr(edited, name) for name in _EDITED_FIELDS}
    return replace(stored, **changed, updated_at=replaced_at, version=edited.version + 1)


def _pick(row: Mapping[str, object], names: str) -> dict[str, object]:
    return {name: row[name] for name in names.split()}


def _put_all(unit: Unit, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement for each row; for a single one without the cost of running it for many."""
    if len(rows) == 1:
        unit.put(name, **rows[0])
    else:
        unit.run_many(name, rows)


def _get_row(unit: Unit, owner: Owner, id: str) -> Row:
    row = unit.one("find_memory", **owner_params(owner), seq=memory_seq(id) or 0)
    if row is None:
        raise NotFound(NO_SUCH_MEMORY)
    return row


NO_SUCH_CHANGE = "There is no such change."
MAX_PROPOSED = 100
"""Changes of one user that wait for a decision; a new one takes the place of the oldest."""


class ChangeRows(Units):
    """Changes of an agent and their states."""

    def add_changes(self, owner: Owner, changes: Sequence[Change]) -> Sequence[Change]:
        """Add changes and return them with their ids; leave out proposals for a memory that another one waits for.

        Locks the agent, so that concurrent runs do not propose the same twice. The proposals of a user beyond
        `MAX_PROPOSED` make room. An agent that does not exist gets none.
        """

        def add(unit: Unit) -> Sequence[Change]:
            if unit.one("hold_agent", **owner_params(owner.whole)) is None:
                return []
            found = unit.one("last_change", **owner_params(owner.whole))
            last: int = found[0] if found else 0
            added: list[Change] = []
            waiting: dict[str | None, list[Change]] = {}
            for change in changes:
                if change.state is ChangeState.PROPOSED:
                    if change.user not in waiting:
                        waiting[change.user] = self._list_waiting(unit, owner.of(change.user))
                    touched = {each.id for known in waiting[change.user] for each in known.memories if each.id}
                    if not touched.isdisjoint(each.id for each in change.memories):
                        continue
                    waiting[change.user].append(change)
                added.append(replace(change, id=change_id(last + len(added) + 1)))
            for user, known in waiting.items():
                for old in known[:-MAX_PROPOSED]:
                    unit.run("delete_change", **owner_params(owner.of(user)), seq=change_seq(old.id) or 0)
            unit.run_many("add_change", map(_change_values, added))
            return added

        return self.write(owner.tenant, add)

    def _list_waiting(self, unit: Unit, owner: Owner) -> list[Change]:
        values = {"state": ChangeState.PROPOSED.value, "before": BEHIND_ALL, "limit": MAX_PROPOSED}
        return [*map(change_from, unit.all("list_changes", **owner_params(owner), **values))][::-1]

    def get_change(self, owner: Owner, id: str) -> Change:
        """Return one change. Raises: NotFound."""
        return change_from(self._get(owner, "find_change", NO_SUCH_CHANGE, seq=change_seq(id) or 0))

    def list_changes(
        self, owner: Owner, *, state: ChangeState | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[Change]:
        """List changes, newest first, starting after the number `before`; `state` None lists all."""
        place = {"state": "" if state is None else state.value, "before": before or BEHIND_ALL}
        return self._list(owner, "list_changes", change_from, _number_of, limit=limit, **place)

    def decide_change(self, change: Change, *, was: ChangeState) -> Change:
        """Store the new state of a change. Raises: Conflict when it is no longer in the state it `was` in."""
        if not self._run(change.owner.tenant, "decide_change", **_change_values(change), was=was.value):
            raise Conflict(f"This change is no longer {was.value}; read it again.")
        return change

    def delete_old_changes(self, owner: Owner, *, before: datetime, proposed_before: datetime) -> int:
        """Delete changes decided before a time, and those proposed before another one; return their number."""
        return self._run(owner, "delete_old_changes", before=before, proposed_before=proposed_before)


def _number_of(change: Change) -> int:
    return change_seq(change.id) or 0


def _parse_memories(memories: str | list[Any]) -> tuple[ChangedMemory, ...]:
    return tuple(
        ChangedMemory(
            action=ChangeAction(each["action"]),
            id=str(each["id"]),
            version=each["version"],
            new_version=each["new_version"],
            before=dict(each["before"]),
            after=dict(each["after"]),
        )
        for each in json_list(memories)
    )


def _render_memories(memories: Sequence[ChangedMemory]) -> str:
    names = ("action", "id", "version", "new_version", "before", "after")
    return json_text([{name: getattr(each, name) for name in names} for each in memories])


_CHANGES = RecordRows(
    Change,
    COLUMNS["change"],
    seq=("id", change_id, lambda id: change_seq(id) or 0),
    memories=("memories", _parse_memories, _render_memories),
)
change_from, _change_values = _CHANGES.parse, _CHANGES.render
