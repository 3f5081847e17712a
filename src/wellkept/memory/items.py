"""Items: JSON values under a namespace and a key, kept as memories of the kind `item`.

An item is found by the text of its chosen fields, so the same recall ranks it. A new value is a new version of the
memory; the former one stays in its history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from wellkept.caller import current_caller
from wellkept.errors import Conflict, StoreTimeout
from wellkept.extension import Clock
from wellkept.language.names import memory_seq
from wellkept.language.values import MAX_LIMIT, check_limit, check_query, check_whole
from wellkept.memory import rules_items as rules
from wellkept.memory import rules_trust as trust
from wellkept.memory.remember import Remember, naming_item
from wellkept.memory.rules_filters import Condition, Where, join_conditions, parse_filter
from wellkept.memory.rules_items import ItemDraft, Namespace, Place
from wellkept.memory.rules_kinds import check_choice, check_moment
from wellkept.model import AuditEvent, Item, Kind, Memory, Origin, Owner, Source, State
from wellkept.recall.recall import Recall, RetrievalMarks
from wellkept.recall.rules_ranking import RecallRequest
from wellkept.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from wellkept.store.sqlstore import SqlStore

MAX_NAMED = 100
"""Maximum number of items that an audit event names."""

MAX_PAGE = 500
MAX_OFFSET = 10_000
PATHS = 1_000
"""Namespaces that are read at once."""


class Items:
    """Service for the items of an agent, or of one of its users."""

    def __init__(
        self,
        store: SqlStore,
        embedding: Embedding,
        remember: Remember,
        recall: Recall,
        retrieval_marks: RetrievalMarks,
        now: Clock,
    ) -> None:
        self._store, self._embedding, self._now = store, embedding, now
        self._remember, self._recall, self._retrieval_marks = remember, recall, retrieval_marks

    def put(self, owner: Owner, drafts: Sequence[ItemDraft]) -> Sequence[Item | None]:
        """Write items in one transaction, all or none; return each as stored, None for one that is deleted.

        A value that is stored already makes no new version, but its lifetime starts again.

        Raises: Invalid, SecretRejected; Conflict when an item does not have the expected version; Forbidden when it is
        trusted more than the caller. `item` of the error is the position of the draft.
        """
        stored = self._run(owner, drafts)
        return [None if memory is None else rules.make_item(memory) for memory, _ in stored]

    def get(self, owner: Owner, places: Collection[Place], *, refresh: bool = True) -> Sequence[Item | None]:
        """Return the items at these places, None for each that is missing or has expired.

        `refresh` starts the lifetime of an item again, if it was written so.

        Raises: Invalid.
        """
        now, checked = self._now(), [rules.check_place(*place) for place in places]
        found = self._store.read_together(
            owner.tenant, lambda: [self._store.find_item(owner, *place) for place in checked]
        )
        live = [None if memory is None else self._live(memory, now) for memory in found]
        if refresh:
            live = self._refresh(owner, live, now)
        return [None if memory is None else rules.make_item(memory) for memory in live]

    def check(self, owner: Owner, draft: ItemDraft) -> Memory | None:
        """Return the memory that a draft would become; None for a deletion. Raises: Invalid, SecretRejected."""
        return self._check(owner, draft, self._now()).memory

    def delete(self, owner: Owner, place: Place, *, version: int | None = None) -> bool:
        """Delete an item and its history; return False if there is none.

        Raises: Invalid; Conflict when it does not have the expected version; Forbidden when it is trusted more than
        the caller.
        """
        namespace, key = place
        draft = ItemDraft(namespace=namespace, key=key, value=None, version=version)
        ((_, is_deleted),) = self._run(owner, [draft])
        return is_deleted

    def search(
        self,
        owner: Owner,
        prefix: Namespace = (),
        *,
        query: str | None = None,
        where: Where = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> Sequence[Item]:
        """Return live items of a namespace and all below it: the best for `query`, or the last written first.

        `where` is a filter (`memory`), in which `value.<key>` is a field of the value.

        Raises: Invalid; StoreTimeout when the search takes too long.
        """
        now, path = self._now(), rules.check_namespace(prefix, may_be_empty=True)
        condition = join_conditions(rules.find_below(path), parse_filter(where))
        check_limit(limit, most=MAX_PAGE)
        check_whole(offset, "The offset", most=MAX_OFFSET)
        found: list[tuple[Memory, float | None]]
        if query is None or not query.strip():

            def read() -> list[tuple[Memory, float | None]]:
                numbers = self._store.find_item_numbers(owner, condition, now=now, limit=limit, offset=offset)
                memories = self._store.find_memories(owner, numbers)
                return [(memories[number], None) for number in numbers if number in memories]

            # In one transaction, so that an item deleted meanwhile does not shorten the page.
            found = self._store.read_together(owner.tenant, read)
        else:
            found = self._rank(owner, check_query(query), condition, offset + limit)[offset:]
        live = [(memory, score) for each, score in found if (memory := self._live(each, now)) is not None]
        shown = self._refresh(owner, [memory for memory, _ in live], now) if refresh else [each for each, _ in live]
        return [
            rules.make_item(memory, score) for memory, (_, score) in zip(shown, live, strict=True) if memory is not None
        ]

    def namespaces(
        self,
        owner: Owner,
        prefix: Namespace = (),
        *,
        suffix: Namespace = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[tuple[str, ...]]:
        """List the namespaces that have items, by their paths; `*` in `prefix` and `suffix` stands for any name.

        `max_depth` cuts longer ones to so many names.

        Raises: Invalid.
        """
        first, last = (rules.split_path(rules.check_namespace(each, may_be_empty=True)) for each in (prefix, suffix))
        check_limit(limit, most=MAX_PAGE)
        check_whole(offset, "The offset", most=MAX_OFFSET)
        depth = None if max_depth is None else check_whole(max_depth, "`max_depth`", least=1)
        found: dict[tuple[str, ...], None] = {}
        start, now = rules.literal_path(first), self._now()
        end = rules.path_range(start)[1]
        while len(found) < offset + limit and (
            paths := self._store.list_item_paths(owner, start, end, now=now, limit=PATHS)
        ):
            named = map(rules.split_path, paths)
            found |= {names[:depth]: None for names in named if rules.matches(names, first, last)}
            # Names are printable, so no other path lies between one and the same with this character behind it.
            start = paths[-1] + "\x01"
        return list(found)[offset : offset + limit]

    def _rank(self, owner: Owner, query: str, where: Condition | None, most: int) -> list[tuple[Memory, float | None]]:
        request = RecallRequest(
            query=query,
            limit=min(most, MAX_LIMIT),
            kinds=(Kind.ITEM,),
            where=where,
            min_relevance=0,
            keeps_duplicates=True,
        )
        ranking = self._recall.rank(owner, request, depth=-(-most // MAX_LIMIT), most=most)
        for each in ranking.unanswered:
            if each.source == Source.MEMORY:
                raise StoreTimeout(each.reason)
        return [(hit.memory, hit.score) for hit in ranking.hits[:most] if hit.memory is not None]

    def _live(self, memory: Memory, now: datetime) -> Memory | None:
        """Return a memory with its queued mark, or None if it has expired or is held."""
        (shown,) = self._retrieval_marks.apply(memory.owner, [memory])
        return shown if shown.state(now) is State.LIVE else None

    def _refresh(self, owner: Owner, live: Sequence[Memory | None], now: datetime) -> list[Memory | None]:
        """Queue marks for the items whose life a reading extends; return all as they are then."""
        sliding = [memory for memory in live if memory is not None and memory.ttl_seconds is not None]
        self._retrieval_marks.mark(owner, [memory_seq(memory.id) or 0 for memory in sliding], now)
        ends = {memory.id: rules.end_of(now, memory.ttl_seconds) for memory in sliding}
        return [replace(each, expires_at=ends[each.id]) if each and each.id in ends else each for each in live]

    def _check(self, owner: Owner, draft: ItemDraft, now: datetime) -> _Write:
        path, key = rules.check_place(draft.namespace, draft.key)
        version = None if draft.version is None else check_whole(draft.version, "The version")
        if draft.value is None:
            return _Write((path, key), None, version)
        stored, ttl = rules.check_value(draft.value), rules.check_ttl(draft.ttl)
        memory = Memory(
            owner=owner.whole,
            kind=Kind.ITEM,
            text=rules.render_text(stored, rules.check_fields(draft.index)),
            origin=trust.lower_origin(check_choice(Origin, draft.origin, Origin.USER), current_caller().trust),
            created_at=now if draft.created_at is None else check_moment(draft.created_at, "created_at"),
            expires_at=rules.end_of(now, ttl),
            user=owner.user or None,
            metadata=stored,
            namespace=path,
            item_key=key,
            ttl_seconds=ttl if draft.refresh else None,
        )
        return _Write((path, key), self._remember.screen(memory, now), version)

    def _run(self, owner: Owner, drafts: Sequence[ItemDraft]) -> list[tuple[Memory | None, bool]]:
        """Write drafts in one transaction; return for each the stored memory, and True if an item was deleted."""
        # A user's view writes the user's own items, and the agent those of no user.
        owner = owner.of(owner.user)
        now, writes, done = self._now(), list[_Write](), dict[str, list[str]]()
        for position, draft in enumerate(drafts):
            with naming_item(position):
                writes.append(self._check(owner, draft, now))
        if not writes:
            return []

        def run() -> list[tuple[Memory | None, bool]]:
            self._store.hold_items(owner, now=now)
            results = []
            for position, write in enumerate(writes):
                with naming_item(position):
                    results.append(self._write(owner, write, now, done))
            self._record(owner, done, now)
            return results

        results = self._store.transaction(owner.tenant, run)
        self._embedding.wake()
        return results

    def _write(
        self, owner: Owner, write: _Write, now: datetime, done: dict[str, list[str]]
    ) -> tuple[Memory | None, bool]:
        old, new = self._store.find_item(owner, *write.place), write.memory
        if old is not None:
            (old,) = self._retrieval_marks.apply(owner, [old])
        is_there = old is not None and old.state(now) is not State.EXPIRED
        version = old.version if old is not None and is_there else 0
        if write.version not in (None, version):
            raise Conflict(f"This item is now at version {version}, not {write.version}; read it again.")
        if old is None or not is_there:
            if old is not None:
                self._store.delete_memory(owner, old.id)
            if new is None:
                return None, False
            added = self._store.add_memory(new)
            done.setdefault("stored", []).append(added.id)
            return added, False
        trust.check_change(old.origin, current_caller().trust)
        if new is None:
            self._store.delete_memory(owner, old.id)
            done.setdefault("deleted", []).append(old.id)
            return None, True
        kept = replace(old, expires_at=new.expires_at, ttl_seconds=new.ttl_seconds)
        # Writing it would change nothing but its lifetime.
        if (old.text, old.origin) == (new.text, new.origin) and rules.is_same_value(old.metadata, new.metadata):
            if kept != old:
                self._store.set_item_end(kept)
            return kept, False
        edited = replace(
            kept, text=new.text, metadata=new.metadata, origin=new.origin, held_at=new.held_at, flag=new.flag
        )
        done.setdefault("changed", []).append(old.id)
        return self._store.update_memory(edited, replaced_at=now), False

    def _record(self, owner: Owner, done: Mapping[str, Sequence[str]], now: datetime) -> None:
        for verb, action in (("stored", "add"), ("changed", "update"), ("deleted", "delete")):
            if ids := done.get(verb):
                message = f"Item {ids[0]} was {verb}." if len(ids) == 1 else f"{len(ids):,} items were {verb}."
                self._store.add_event(
                    AuditEvent(
                        tenant=owner.tenant,
                        at=now,
                        action=f"memory.{action}",
                        agent_id=owner.agent,
                        message=message,
                        meta={"id": ids[0]} if len(ids) == 1 else {"ids": ids[:MAX_NAMED]},
                    )
                )


class _Write(NamedTuple):
    """Checked draft: what to store at a path and a key (None: nothing), and the version it expects there."""

    place: tuple[str, str]
    memory: Memory | None
    version: int | None
