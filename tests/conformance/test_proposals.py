"""Proposals of consolidation: what is kept, in which order, and that each is decided once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conformance.examples import LATER, NOW, note, owner, proposal
from wellkept.errors import Conflict, NotFound
from wellkept.model import FoldedMemory, Owner, ProposalState
from wellkept.store.sqlstore import SqlStore


def test_they_come_back_as_they_were_newest_first(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    first = proposal(ann, "m-1", tags=("a", "b"), text='Zürich "quoted" %_ 🙂')
    second = proposal(ann, "m-2", "m-3", folds=(FoldedMemory(id="m-2", version=7, ended_version=8, valid_to=NOW),))

    added = store.add_proposals(ann, [first, second])

    assert added == [replace(first, id="p-1"), replace(second, id="p-2")]
    assert store.list_proposals(ann) == [added[1], added[0]]
    assert store.list_proposals(ann, before=2) == [added[0]]
    assert store.list_proposals(ann, limit=1) == [added[1]]
    assert store.get_proposal(ann, "p-2") == added[1]


def test_a_memory_is_in_one_open_proposal_at_most(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    [first] = store.add_proposals(ann, [proposal(ann, "m-1", "m-2"), proposal(ann, "m-2", "m-3")])

    assert store.add_proposals(ann, [proposal(ann, "m-1")]) == []
    store.decide_proposal(replace(first, state=ProposalState.REJECTED), was=ProposalState.OPEN)
    assert [each.id for each in store.add_proposals(ann, [proposal(ann, "m-1")])] == ["p-2"]


def test_each_is_decided_once(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    [added] = store.add_proposals(ann, [proposal(ann, "m-1")])
    folds = (FoldedMemory(id="m-1", version=1, ended_version=2, valid_to=LATER),)
    applied = replace(added, state=ProposalState.APPLIED, folds=folds, memory_id="m-9", is_new=False, decided_at=LATER)

    assert store.decide_proposal(applied, was=ProposalState.OPEN) == applied
    with pytest.raises(Conflict):
        store.decide_proposal(replace(applied, state=ProposalState.REJECTED), was=ProposalState.OPEN)

    assert store.list_proposals(ann) == store.list_proposals(ann, state=ProposalState.APPLIED) == [applied]
    assert store.list_proposals(ann, state=ProposalState.OPEN) == []


def test_an_agent_nobody_has_written_to_gets_none(store: SqlStore) -> None:
    nobody = owner()

    assert store.add_proposals(nobody, [proposal(nobody, "m-1")]) == []
    assert store.list_proposals(nobody) == []


@pytest.mark.parametrize("id", ["p-1", "m-1", "p-01", "nonsense", ""])
def test_what_is_not_there_is_not_found(store: SqlStore, ann: Owner, id: str) -> None:
    store.add_memory(note("a", ann))
    with pytest.raises(NotFound):
        store.get_proposal(ann, id)
    with pytest.raises(NotFound):
        store.decide_proposal(proposal(ann, "m-1", id=id), was=ProposalState.OPEN)


def test_they_go_with_their_agent(store: SqlStore, ann: Owner) -> None:
    store.add_memory(note("a", ann))
    store.add_proposals(ann, [proposal(ann, "m-1")])
    store.delete_agent(ann)
    store.add_memory(note("a", ann))

    assert store.list_proposals(ann) == []
