"""`SqlStore`: what agents did together, in order, and finding it by its words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import LATER, NOW, step, workflow
from wellkept.errors import Conflict, NotFound
from wellkept.history.rules_history import STEP_CHARS
from wellkept.model import Owner, Workflow, WorkflowStep
from wellkept.store.sqlstore import SqlStore

ALSO_ON_OLDER = True


@pytest.fixture
def tenant(ann: Owner, store: SqlStore) -> str:
    store.add_workflow(workflow("run", ann.tenant))
    return ann.tenant


def found(store: SqlStore, tenant: str, query: str, **options: Any) -> list[str]:
    matches = store.search_steps(tenant, query, **options)
    steps = store.find_steps(tenant, [match.seq for match in matches])
    return [steps[match.seq].id for match in matches]


def test_a_workflow_comes_back_as_it_was_added(store: SqlStore, tenant: str) -> None:
    wanted = Workflow(id="it's", tenant=tenant, name="Ein 'Lauf' — 100%", created_at=NOW)

    assert store.add_workflow(wanted) == wanted
    assert store.get_workflow(tenant, "it's") == wanted
    with pytest.raises(Conflict, match=r"^Workflow .* already exists"):
        store.add_workflow(wanted)
    with pytest.raises(NotFound, match=r"^There is no such workflow\.$"):
        store.get_workflow(tenant, "its")


def test_a_workflow_is_found_by_its_id_or_else_by_its_name(store: SqlStore, tenant: str) -> None:
    for id, name, at in (("a", "Same", NOW), ("b", "Same", LATER), ("Same-1", "c", NOW), ("c", "other", NOW)):
        store.add_workflow(workflow(id, tenant, name=name, created_at=at))

    names = {name: store.find_workflow(tenant, name) for name in ("a", "Same", "c", "nothing", "same")}
    assert {name: each.id if each else None for name, each in names.items()} == {
        "a": "a",
        "Same": "b",  # the newest
        "c": "c",  # an id comes before a name
        "nothing": None,
        "same": None,
    }


def test_workflows_are_listed_by_id_in_pages(store: SqlStore, tenant: str) -> None:
    for id in ("b-1", "b", "Z", "b1"):
        store.add_workflow(workflow(id, tenant))

    first = [each.id for each in store.list_workflows(tenant, limit=3)]
    assert first + [each.id for each in store.list_workflows(tenant, after=first[-1])] == ["Z", "b", "b-1", "b1", "run"]


def test_a_step_comes_back_as_it_was_added_with_its_place(store: SqlStore, tenant: str) -> None:
    wanted = WorkflowStep(
        tenant=tenant,
        workflow_id="run",
        name="ship",
        output="Größe 東京",
        status="failed",
        agent_id="bob",
        completed_at=LATER,
    )
    first, second = store.add_step(step("plan", tenant)), store.add_step(wanted)

    assert (first.id, second.id) == ("run/1", "run/2")
    assert (second.name, second.output, second.status, second.agent_id) == ("ship", "Größe 東京", "failed", "bob")
    assert second.workflow_name == "Run"
    assert store.list_steps(tenant, "run") == [first, second]
    assert store.list_steps(tenant, "run", after=1) == [second]
    assert store.list_steps(tenant, "run", limit=1) == [first]
    for attempt in (lambda: store.list_steps(tenant, "walk"), lambda: store.add_step(step("x", tenant, "walk"))):
        with pytest.raises(NotFound, match=r"^There is no such workflow\.$"):
            attempt()


def test_many_at_once_add_steps_behind_each_other(store: SqlStore, tenant: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda number: store.add_step(step(f"refund {number}", tenant)), range(20)))

    assert [each.position for each in store.list_steps(tenant, "run")] == list(range(1, 21))
    assert len(found(store, tenant, "refund", limit=100)) == 20


def test_steps_are_found_by_the_words_of_their_names_and_their_output(store: SqlStore, tenant: str) -> None:
    store.add_step(step("check receipt", tenant, output="Found it: 30 euro are due"))
    store.add_step(step("pay", tenant, output="Paid 30 euros back to the customer"))
    store.add_step(step("talk", tenant, output="x " * STEP_CHARS + "unicorn"))

    assert found(store, tenant, "were the customers PAID?") == ["run/2"]
    assert set(found(store, tenant, "euro")) == {"run/1", "run/2"}
    assert found(store, tenant, "receipts") == ["run/1"]
    assert found(store, tenant, "unicorn") == []  # only the beginning of a long output is searched
    assert len(found(store, tenant, "run", limit=2)) == 2  # the workflow's name
    assert found(store, tenant, "% ' OR") == []


def test_another_open_store_finds_every_new_step(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    other = lasting_place.open()
    try:
        for number in range(1, 4):
            (store, other)[number % 2].add_step(step("refund", tenant))
            assert len(found(store, tenant, "refund")) == len(found(other, tenant, "refund")) == number
    finally:
        other.close()


def test_steps_are_found_only_in_their_tenant(store: SqlStore, tenant: str, stranger: Owner) -> None:
    store.add_workflow(workflow("run", stranger.tenant))
    store.add_step(step("refund", tenant))
    theirs = store.add_step(step("refund", stranger.tenant))

    assert found(store, stranger.tenant, "refund") == ["run/1"]
    assert store.list_steps(stranger.tenant, "run") == [theirs]


def test_a_step_is_part_of_its_transaction(store: SqlStore, tenant: str) -> None:
    def work() -> None:
        store.add_step(step("undone", tenant))
        raise LookupError

    with pytest.raises(LookupError):
        store.transaction(tenant, work)

    assert store.list_steps(tenant, "run") == []
    assert found(store, tenant, "undone") == []
    assert store.add_step(step("kept", tenant)).position == 1
    assert found(store, tenant, "kept") == ["run/1"]
