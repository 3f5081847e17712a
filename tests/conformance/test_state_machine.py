"""Long random lives: each engine does the same as a few lines of plain Python, whatever the order of calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.conformance.conftest import Place
from tests.conformance.examples import ALL_KINDS, DIMENSIONS, EARLIER, EMBEDDER, LATER, NOW, note, owner, vector
from wellkept.errors import Conflict, NotFound
from wellkept.language.text import fold, terms
from wellkept.model import Kind, Memory, Owner, State
from wellkept.model.stored import Vector
from wellkept.store.sqlstore import SqlStore

# No two of these directions are equally far from a third, so the order of the nearest is never in doubt.
DIRECTIONS = tuple(vector(math.cos(math.radians(d)), math.sin(math.radians(d))) for d in (0, 10, 25, 45, 70, 100))

WORDS = st.lists(st.sampled_from(["apple", "Apples", "pear", "Straße", "100%", "the", "東京"]), min_size=1, max_size=4)
WORDLESS = ["👍", "...", "the", "x", "é", "京", "7", "!"]
TEXTS = st.one_of(WORDS.map(" ".join), st.sampled_from(WORDLESS))
KINDS = st.sampled_from(Kind)
WANTED_KINDS = st.sets(KINDS)
VECTORS = st.none() | st.sampled_from(range(len(DIRECTIONS)))
EXPIRIES = st.sampled_from([None, None, EARLIER, NOW, LATER])
AGENTS = st.integers(0, 3)  # two tenants with two agents each


@dataclass
class Expected:
    """What one agent should remember, in plain Python."""

    last: int = 0
    memories: dict[int, Memory] = field(default_factory=dict)
    directions: dict[int, int | None] = field(default_factory=dict)
    edits: dict[int, list[str]] = field(default_factory=dict)

    def add(self, memory: Memory, direction: int | None) -> None:
        self.last += 1
        self.memories[self.last] = replace(memory, id=f"m-{self.last}")
        self.directions[self.last] = direction
        self.edits[self.last] = []

    def live(self, kinds: set[Kind]) -> dict[int, Memory]:
        return {
            seq: memory
            for seq, memory in self.memories.items()
            if memory.kind in kinds and memory.state(NOW) is State.LIVE
        }


class Lives(RuleBasedStateMachine):
    """Four agents, and what a store says of them."""

    def __init__(self, place: Place, store: SqlStore) -> None:
        super().__init__()
        self.place = place
        self.store = store
        self.is_own_store = False

    @initialize()
    def begin(self) -> None:
        ours, theirs = owner(), owner()
        self.owners = [ours, Owner(ours.tenant, "bob"), theirs, Owner(theirs.tenant, "bob")]
        self.expected = [Expected() for _ in self.owners]

    def whose(self, agent: int) -> tuple[Owner, Expected]:
        return self.owners[agent], self.expected[agent]

    @rule(agent=AGENTS, text=TEXTS, kind=KINDS, direction=VECTORS, expires_at=EXPIRIES)
    def add(self, agent: int, text: str, kind: Kind, direction: int | None, expires_at: datetime | None) -> None:
        owner, expected = self.whose(agent)
        memory = note(text, owner, kind=kind, expires_at=expires_at)
        expected.add(memory, direction)
        assert self.store.add_memory(memory, _vector(direction)) == expected.memories[expected.last]

    @rule(agent=AGENTS, texts=st.lists(TEXTS, max_size=5), direction=VECTORS, is_failing=st.booleans())
    def add_many(self, agent: int, texts: Sequence[str], direction: int | None, is_failing: bool) -> None:
        owner, expected = self.whose(agent)
        memories = [note(text, owner) for text in texts]
        if is_failing:
            with pytest.raises(Conflict):
                self.store.add_memories([*memories, note("bad", owner, importance=math.nan)], [None] * (len(texts) + 1))
            return
        added = self.store.add_memories(memories, [_vector(direction)] * len(texts))
        for memory in memories:
            expected.add(memory, direction)
        assert list(added) == list(expected.memories.values())[-len(added) :] if added else not texts

    @rule(agent=AGENTS, pick=st.integers(1, 12), text=TEXTS, direction=VECTORS, is_archived=st.booleans())
    def update(self, agent: int, pick: int, text: str, direction: int | None, is_archived: bool) -> None:
        owner, expected = self.whose(agent)
        old = expected.memories.get(pick)
        if old is None:
            with pytest.raises(NotFound):
                self.store.update_memory(note(text, owner, id=f"m-{pick}"), replaced_at=NOW)
            return
        wanted = replace(old, text=text, archived_at=NOW if is_archived else None)
        written = self.store.update_memory(wanted, _vector(direction), replaced_at=NOW)
        assert written == replace(wanted, version=old.version + 1, updated_at=NOW)
        with pytest.raises(Conflict):
            self.store.update_memory(wanted, replaced_at=NOW)
        expected.memories[pick] = written
        expected.directions[pick] = direction
        expected.edits[pick].append(old.text)

    @rule(agent=AGENTS, pick=st.integers(1, 12))
    def delete(self, agent: int, pick: int) -> None:
        owner, expected = self.whose(agent)
        if expected.memories.pop(pick, None) is None:
            with pytest.raises(NotFound):
                self.store.delete_memory(owner, f"m-{pick}")
        else:
            self.store.delete_memory(owner, f"m-{pick}")

    @rule(agent=AGENTS)
    def delete_all_with_words(self, agent: int) -> None:
        """Leave only texts without words, in an index that has held some."""
        _, expected = self.whose(agent)
        self.search(agent, "apple pear", set(Kind))
        for seq in [seq for seq, memory in expected.memories.items() if terms(memory.text)]:
            self.delete(agent, seq)
        self.search(agent, "apple pear", set(Kind))

    @rule(agent=AGENTS, kind=KINDS, keep=st.integers(0, 4))
    def prune(self, agent: int, kind: Kind, keep: int) -> None:
        owner, expected = self.whose(agent)
        gone = sorted(seq for seq, memory in expected.memories.items() if memory.kind is kind)[: -keep or None]
        assert self.store.prune_memories(owner, kind, keep=keep) == [f"m-{seq}" for seq in gone]
        for seq in gone:
            del expected.memories[seq]

    @rule(agent=AGENTS, needle=st.sampled_from(["", "APPLE", "STRASSE", "%", "京"]), kind=st.none() | KINDS)
    def list(self, agent: int, needle: str, kind: Kind | None) -> None:
        owner, expected = self.whose(agent)
        for state in (None, *State):
            listed = self.store.list_memories(owner, kind=kind, needle=needle, state=state, now=NOW, limit=100)
            assert listed == [
                memory
                for _, memory in sorted(expected.memories.items(), reverse=True)
                if fold(needle) in fold(memory.text)
                and state in (None, memory.state(NOW))
                and kind in (None, memory.kind)
            ]

    @rule(agent=AGENTS, query=TEXTS, kinds=WANTED_KINDS)
    def search(self, agent: int, query: str, kinds: set[Kind]) -> None:
        owner, expected = self.whose(agent)
        found = self.store.search_memories(owner, query, kinds=kinds, now=NOW, limit=100)
        sharing = {seq for seq, memory in expected.live(kinds).items() if {*terms(memory.text)} & {*terms(query)}}
        assert {match.seq for match in found} == sharing
        assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)

    @rule(agent=AGENTS, question=st.sampled_from(DIRECTIONS), kinds=WANTED_KINDS, limit=st.integers(1, 10))
    def nearest(self, agent: int, question: Vector, kinds: set[Kind], limit: int) -> None:
        owner, expected = self.whose(agent)
        found = self.store.nearest_memories(owner, question, kinds=kinds, now=NOW, limit=limit)
        placed = {
            seq: float(DIRECTIONS[direction] @ question)
            for seq in expected.live(kinds)
            if (direction := expected.directions[seq]) is not None
        }
        assert [match.seq for match in found] == sorted(placed, key=lambda seq: (-placed[seq], -seq))[:limit]

    @rule(agent=AGENTS, pick=st.integers(1, 12))
    def history(self, agent: int, pick: int) -> None:
        owner, expected = self.whose(agent)
        if pick in expected.memories:
            versions = self.store.list_versions(owner, f"m-{pick}")
            assert [version.text for version in versions] == expected.edits[pick][::-1]

    @precondition(lambda self: self.place.is_lasting)
    @rule()
    def reopen(self) -> None:
        self.teardown()
        self.store = self.place.open(pool_size=1)
        self.store.use_embedder(EMBEDDER, DIMENSIONS)
        self.is_own_store = True

    @invariant()
    def the_counts_are_right(self) -> None:
        for each, expected in zip(self.owners, self.expected, strict=True):
            kinds = [memory.kind for memory in expected.memories.values() if memory.archived_at is None]
            assert self.store.count_memories(each) == {kind: kinds.count(kind) for kind in ALL_KINDS}

    def teardown(self) -> None:
        if self.is_own_store:
            self.store.close()


def _vector(direction: int | None) -> Vector | None:
    return None if direction is None else DIRECTIONS[direction]


def test_every_life_is_told_alike(place: Place, store: SqlStore) -> None:
    tries = settings(settings.default, stateful_step_count=40)
    run_state_machine_as_test(lambda: Lives(place, store), settings=tries)  # type: ignore[arg-type]
