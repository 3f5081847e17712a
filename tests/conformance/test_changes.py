"""Changes: what is kept, in which order, and that each is decided once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.conformance.examples import LATER, NOW, a_change, note, owner
from wellkept.errors import Conflict, NotFound
from wellkept.model import ChangeAction, ChangedMemory, ChangeState, Owner
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.memories import MAX_PROPOSED


def test_they_come_back_as_they_were_newest_first(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    first = a_change(ann, "m-1", text='Zürich "quoted" %_ 🙂', actor="k-1")
    ended = ChangedMemory(
        action=ChangeAction.END,
        id="m-3",
        version=7,
        new_version=8,
        before={"valid_to": None},
        after={"valid_to": NOW.isoformat(), "sources": ["m-1"]},
    )
    second = a_change(ann, memories=(ended,), state=ChangeState.APPLIED, decided_at=LATER)

    added = store.add_changes(ann, [first, second])

    assert added == [replace(first, id="c-1"), replace(second, id="c-2")]
    assert store.list_changes(ann) == [added[1], added[0]]
    assert store.list_changes(ann, before=2) == [added[0]]
    assert store.list_changes(ann, limit=1) == [added[1]]
    assert store.get_change(ann, "c-2") == added[1]


def test_a_memory_is_in_one_proposed_change_at_most(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    [first] = store.add_changes(ann, [a_change(ann, "m-1", "m-2"), a_change(ann, "m-2", "m-3")])

    assert store.add_changes(ann, [a_change(ann, "m-1")]) == []
    assert [each.id for each in store.add_changes(ann, [a_change(ann, "m-1", state=ChangeState.APPLIED)])] == ["c-2"]
    store.decide_change(replace(first, state=ChangeState.REJECTED), was=ChangeState.PROPOSED)
    assert [each.id for each in store.add_changes(ann, [a_change(ann, "m-1")])] == ["c-3"]


def test_the_oldest_proposed_make_room(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    for number in range(MAX_PROPOSED):
        store.add_changes(ann, [a_change(ann, f"m-{number + 1}")])
    store.add_changes(ann, [a_change(ann, "m-900"), a_change(ann, "m-901")])
    store.add_changes(ann, [a_change(ann, "m-1", user="u-7")])

    kept = store.list_changes(ann, limit=500)
    assert len(kept) == MAX_PROPOSED + 1
    assert {each.id for each in kept}.isdisjoint({"c-1", "c-2"})


def test_each_is_decided_once(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    [added] = store.add_changes(ann, [a_change(ann, "m-1", text="a")])
    ended = ChangedMemory(action=ChangeAction.END, id="m-1", version=1, new_version=2)
    applied = replace(added, state=ChangeState.APPLIED, memories=(ended,), text="", decided_at=LATER, actor="k-2")

    assert store.decide_change(applied, was=ChangeState.PROPOSED) == applied
    with pytest.raises(Conflict):
        store.decide_change(replace(applied, state=ChangeState.REJECTED), was=ChangeState.PROPOSED)

    assert store.list_changes(ann) == store.list_changes(ann, state=ChangeState.APPLIED) == [applied]
    assert store.list_changes(ann, state=ChangeState.PROPOSED) == []


def test_an_agent_nobody_has_written_to_gets_none(store: SqlStore) -> None:
    nobody = owner()

    assert store.add_changes(nobody, [a_change(nobody, "m-1")]) == []
    assert store.list_changes(nobody) == []


@pytest.mark.parametrize("id", ["c-1", "m-1", "c-01", "nonsense", ""])
def test_what_is_not_there_is_not_found(store: SqlStore, ann: Owner, id: str) -> None:
    store.add_memory(note("a", ann))
    with pytest.raises(NotFound):
        store.get_change(ann, id)


def test_they_go_with_their_agent(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    store.add_changes(ann, [a_change(ann, "m-1")])
    store.delete_agent(ann)
    store.add_memory(note("a", ann))

    assert store.list_changes(ann) == []


def test_old_ones_are_deleted(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    applied = a_change(ann, "m-1", state=ChangeState.APPLIED, decided_at=NOW)
    store.add_changes(ann, [applied, a_change(ann, "m-2")])
    second = timedelta(seconds=1)

    assert store.delete_old_changes(ann, before=NOW, proposed_before=NOW) == 0
    assert store.delete_old_changes(ann, before=NOW, proposed_before=NOW + second) == 1
    assert [each.state for each in store.list_changes(ann)] == [ChangeState.APPLIED]
    assert store.delete_old_changes(ann, before=NOW + second, proposed_before=NOW) == 1


def test_what_consolidation_has_examined_is_counted(store: SqlStore, ann: Owner) -> None:
    assert store.find_consolidated(ann) == (0, 0)
    store.add_memory(note("a", ann))
    store.keep_consolidated(ann, 1)
    store.add_memory(note("b", ann))

    assert store.find_consolidated(ann) == (2, 1)
