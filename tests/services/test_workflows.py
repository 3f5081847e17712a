"""Workflow steps are recorded by the library, guarded, told in the audit log, and found by every agent's recall."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.services.conftest import Clock, Place, on_one_engine
from wellkept import Invalid, NotFound, SecretRejected
from wellkept.api.wellkept import AgentMemory, TenantMemory

SECRET = "AKIAQYLPMN5HIEXAMP42"


@pytest.mark.proves("E8")
def test_a_step_is_recorded_and_found_by_every_agent(tenant: TenantMemory, ann: AgentMemory, clock: Clock) -> None:
    step = tenant.workflows.record(workflow="Refund run", step="check receipt", output="Receipt found", agent="billing")
    then = clock()
    clock.forward(seconds=1)
    again = tenant.workflows.record(workflow="refund-run", step="pay", output="Bank is closed", status="failed")

    assert (step.id, step.workflow_name, step.agent_id, step.completed_at) == (
        "refund-run/1",
        "Refund run",
        "billing",
        then,
    )
    assert (again.id, again.status, again.agent_id) == ("refund-run/2", "failed", None)
    assert [each.id for each in tenant.workflows.list()] == ["refund-run"]
    assert tenant.workflows.get("refund-run").name == "Refund run"
    assert tenant.workflows.steps("refund-run") == [step, again]
    assert ann.recall("was the receipt found?", sources=["workflow"])[0].id == "refund-run/1"
    assert tenant.agent("bob").recall("bank closed", sources=["workflow"])[0].id == "refund-run/2"
    assert [event.message for event in tenant.audit.list()] == [
        "Step 2 of workflow refund-run was recorded: failed.",
        "Step 1 of workflow refund-run was recorded: completed.",
        "Workflow refund-run was begun.",
    ]
    assert tenant.audit.verify().is_intact


def test_workflows_of_the_same_name_are_kept_apart(tenant: TenantMemory) -> None:
    first, second = tenant.workflows.create("Refund run"), tenant.workflows.create("Refund run")

    assert first.id == "refund-run"
    assert second.id.startswith("refund-run-")
    assert tenant.workflows.record(workflow=first.id, step="x").workflow_id == first.id
    assert tenant.workflows.create("東京").id == "workflow"
    with pytest.raises(NotFound):
        tenant.workflows.record(workflow="walk", step="x", is_new=False)


def test_many_first_steps_at_once_begin_one_workflow(tenant: TenantMemory) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda n: tenant.workflows.record(workflow="Refund run", step=f"s{n}"), range(6)))

    assert [each.id for each in tenant.workflows.list()] == ["refund-run"]
    assert len(tenant.workflows.steps("refund-run")) == 6


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"workflow": " "}, "workflow's name has 1 to 200"),
        ({"step": "x" * 201}, "step's name has 1 to 200"),
        ({"output": "x" * 100_001}, "at most 100,000 characters; store a longer one as a detail"),
        ({"status": "Not done!"}, "a word in lower case"),
        ({"agent": "a b"}, "An agent id is"),
        ({"output": "\x00"}, "NUL"),
    ],
)
@on_one_engine
def test_what_is_not_acceptable_is_refused(tenant: TenantMemory, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        tenant.workflows.record(**{"workflow": "run", "step": "x", **wrong})
    assert tenant.workflows.list() == []


def test_a_secret_is_treated_as_the_settings_say(place: Place, clock: Clock, tenant_id: str) -> None:
    output = f"The key is {SECRET}"
    with place.open(clock) as wellkept:
        tenant = wellkept.tenant(tenant_id)
        for name in ("output", "step", "workflow"):
            given: dict[str, Any] = {"workflow": "run", "step": "x", name: output}
            with pytest.raises(SecretRejected):
                tenant.workflows.record(**given)
        assert tenant.workflows.list() == []
        assert {event.action for event in tenant.audit.list()} == {"workflow.refuse"}
        assert SECRET not in str(tenant.audit.list())
    with place.open(clock, secrets="redact") as wellkept:
        assert SECRET not in wellkept.tenant(tenant_id).workflows.record(workflow="run", step="x", output=output).output
    with place.open(clock, secrets="flag") as wellkept:
        assert wellkept.tenant(tenant_id).workflows.record(workflow="run", step="x", output=output).output == output


# --- events of a program's own


@pytest.mark.proves("E7")
def test_a_program_puts_its_own_events_on_record(tenant: TenantMemory, ann: AgentMemory, clock: Clock) -> None:
    event = tenant.audit.record("order.refund", " Refund of 30 € approved ", agent="billing", meta={"order": 7})

    assert (event.action, event.message, event.agent_id, event.at) == (
        "order.refund",
        "Refund of 30 € approved",
        "billing",
        clock(),
    )
    assert tenant.audit.list() == tenant.audit.search("REFUND of 30") == [event]
    assert tenant.audit.search("%") == []
    assert ann.recall("was a refund approved?")[0].id == "a-1"
    assert tenant.audit.verify().is_intact


@pytest.mark.parametrize(
    ("action", "message", "meta", "says"),
    [
        ("refund", "x", {}, "such as order.refund"),
        ("Order.Refund", "x", {}, "such as order.refund"),
        ("memory.add", "x", {}, "wellkept's own"),
        ("order.refund", " ", {}, "1 to 2,000"),
        ("order.refund", "x" * 2001, {}, "1 to 2,000"),
        ("order.refund", "x", {"at": object()}, "JSON cannot represent"),
        ("order.refund", "x", {"n": float("nan")}, "JSON cannot represent"),
        ("order.refund", "x", {"n": json.loads("[" * 900 + "]" * 900)}, "nested too deeply"),
        ("order.refund", "x", {"n": "y" * 10_000}, "at most 10,000"),
        ("order.refund", "x", {"n": "\x00"}, "holds a NUL"),
    ],
)
@on_one_engine
def test_an_event_that_is_not_acceptable_is_refused(
    tenant: TenantMemory, action: str, message: str, meta: dict[str, object], says: str
) -> None:
    with pytest.raises(Invalid, match=says):
        tenant.audit.record(action, message, meta=meta)
    assert tenant.audit.list() == []


def test_a_secret_never_enters_the_log(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, secrets="flag") as wellkept:
        audit = wellkept.tenant(tenant_id).audit
        for message, meta in ((f"The key is {SECRET}", {}), ("fine", {"key": f"the key is {SECRET}"})):
            with pytest.raises(SecretRejected):
                audit.record("order.refund", message, meta=meta)

        assert {event.action for event in audit.list()} == {"secret.refuse"}
        assert SECRET not in str(audit.list())
