"""Everything that is done to a memory leaves one event, without its text, in a log that shows when it was touched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.services.conftest import Clock, Place
from wellkept import Conflict, Invalid, NotFound, SecretRejected, Wellkept
from wellkept.api.wellkept import AgentMemory, TenantMemory
from wellkept.model import AuditEvent

pytestmark = pytest.mark.proves("E7")

WORDS = ("hedwig", "errol", "pigwidgeon", "barnowl", "owlery")
"""Every text, tag and session below holds one of them; no event may."""

MUTATIONS: dict[str, tuple[Callable[[AgentMemory], Any], str, str, dict[str, Any]]] = {
    "add": (
        lambda ann: ann.remember("Hedwig is white", tags=["barnowl"], session_id="owlery"),
        "memory.add",
        "Note m-4 was stored.",
        {"ids": ["m-4", "m-4"]},
    ),
    "add for review": (
        lambda ann: ann.remember("I am Errol", kind="core", origin="model"),
        "memory.add",
        "Core m-4 was stored for review.",
        {"ids": ["m-4", "m-4"]},
    ),
    "add many": (
        lambda ann: ann.remember_many([{"text": f"Errol {n}", "kind": "episode"} for n in range(1_200)]),
        "memory.add",
        "1,200 memories, m-4 to m-1203, were stored.",
        {"ids": ["m-4", "m-1203"]},
    ),
    "correct": (
        lambda ann: ann.remember("Hedwig is grey", supersedes="m-1"),
        "memory.add",
        "Note m-4 was stored; m-1 was corrected.",
        {"ids": ["m-4", "m-4"], "corrected": ["m-1"]},
    ),
    "call a tool": (
        lambda ann: ann.call_tool("save_to_journal", {"content": "Errol crashed"}),
        "memory.add",
        "Journal m-4 was stored.",
        {"ids": ["m-4", "m-4"]},
    ),
    "update": (
        lambda ann: ann.update("m-1", text="Pigwidgeon is small", tags=["owlery"]),
        "memory.update",
        "Memory m-1 was edited.",
        {"id": "m-1"},
    ),
    "approve": (lambda ann: ann.review.approve("m-2"), "memory.approve", "Memory m-2 was approved.", {"id": "m-2"}),
    "delete": (lambda ann: ann.forget("m-1"), "memory.delete", "Memory m-1 was deleted.", {"id": "m-1"}),
    "delete by tool": (
        lambda ann: ann.call_tool("memory_delete", {"id": "m-1"}),
        "memory.delete",
        "Memory m-1 was deleted.",
        {"id": "m-1"},
    ),
}

NOTHING_DONE: dict[str, tuple[Callable[[AgentMemory], Any], type[Exception] | None]] = {
    "what is there already": (lambda ann: ann.remember("HEDWIG is an owl"), None),
    "an edit that changes nothing": (lambda ann: ann.update("m-1", text="Hedwig is an owl"), None),
    "approving what waits for nobody": (lambda ann: ann.review.approve("m-1"), None),
    "an empty batch": (lambda ann: ann.remember_many([]), None),
    "looking": (
        lambda ann: (ann.recall("owl"), ann.prompts.inject("owl"), ann.private_memory(), ann.review.similar("m-1")),
        None,
    ),
    "blank": (lambda ann: ann.remember(" "), Invalid),
    "a stale edit": (lambda ann: ann.update("m-1", text="x", version=7), Conflict),
    "a missing one": (lambda ann: ann.forget("m-99"), NotFound),
}


@pytest.fixture
def owls(ann: AgentMemory) -> AgentMemory:
    """An agent with a note, something held and an episode."""
    ann.remember("Hedwig is an owl")
    ann.remember("I am an owlery", kind="core", origin="tool")
    ann.remember("Errol flew by", kind="episode")
    return ann


def shown(event: AuditEvent) -> str:
    return f"{event.action} {event.agent_id} {event.message} {dict(event.meta)}".lower()


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_mutation_leaves_one_event_without_the_text(
    tenant: TenantMemory, owls: AgentMemory, clock: Clock, what: str
) -> None:
    mutate, action, message, meta = MUTATIONS[what]
    before = tenant.audit.list(limit=100)
    clock.forward(minutes=1)

    mutate(owls)

    event, *earlier = tenant.audit.list(limit=100)
    assert earlier == before
    assert (event.action, event.agent_id, event.at) == (action, "ann", clock())
    assert (event.message, event.meta) == (message, meta)
    assert not any(word in shown(each) for each in (event, *earlier) for word in WORDS)
    report = tenant.audit.verify()
    assert (report.is_intact, report.events) == (True, 4)


def test_a_refusal_leaves_one_event_without_the_text(tenant: TenantMemory, owls: AgentMemory) -> None:
    owls.recall("Errol")
    before = tenant.audit.list()

    with pytest.raises(SecretRejected):
        owls.remember("my password is hunter2, says Hedwig")
    with pytest.raises(SecretRejected):
        owls.update("m-1", text="my password is hunter2, says Hedwig")
    assert "error" in owls.call_tool("save_to_journal", {"content": "Errol flew by"})

    *refusals, first, second, third = tenant.audit.list()
    assert [first, second, third] == before
    assert [(event.action, event.message, event.meta) for event in refusals] == [
        ("memory.refuse", "A journal was refused: it came out of memory.", {"kind": "journal"}),
        ("memory.refuse", "A note was refused: it seems to hold a secret.", {"kind": "note"}),
        ("memory.refuse", "A note was refused: it seems to hold a secret.", {"kind": "note"}),
    ]
    assert tenant.audit.verify().is_intact


def test_what_makes_room_is_told_with_what_it_made_room_for(place: Place, clock: Clock, tenant_id: str) -> None:
    with place.open(clock, max_total=2) as wellkept:
        ann, tenant = wellkept.agent("ann", tenant_id), wellkept.tenant(tenant_id)
        ann.remember("Hedwig")
        ann.remember_many(["Errol", "Pigwidgeon"])
        ann.remember("Owlery")

        newest, batch, first = tenant.audit.list()
        assert (first.message, first.meta) == ("Note m-1 was stored.", {"ids": ["m-1", "m-1"]})
        assert batch.message == "2 memories, m-2 to m-3, were stored; the oldest 1 made room."
        assert batch.meta == {"ids": ["m-2", "m-3"], "pruned": 1, "pruned_ids": ["m-1"]}
        assert newest.message == "Note m-4 was stored; the oldest 1 made room."


def test_agents_and_allowances_leave_events_too(tenant: TenantMemory, clock: Clock) -> None:
    told: list[Any] = []

    def tell() -> None:
        event, *earlier = tenant.audit.list()
        assert len(earlier) == len(told)
        # PostgreSQL keeps events of one moment in order by moving them on by microseconds.
        assert event.at - clock() < timedelta(milliseconds=1)
        assert not any(word in shown(event) for word in ("hunter2", "beak", "claw"))
        told.append((event.action, event.agent_id))

    tenant.agents.add("atlas", name="Beak", system_prompt="You have a beak.")
    tell()
    tenant.agents.update("atlas", name="Claw", model="claw-1")
    tell()
    tenant.agents.delete("atlas")
    tell()
    tenant.secrets.allow("my password is hunter2")
    tell()

    changes = [("agent.add", "atlas"), ("agent.update", "atlas"), ("agent.delete", "atlas"), ("secret.allow", None)]
    assert told == changes
    for refused in (lambda: tenant.agents.delete("atlas"), lambda: tenant.secrets.allow("nothing at all")):
        with pytest.raises((NotFound, Invalid)):
            refused()
    assert len(tenant.audit.list()) == 4
    assert tenant.audit.verify().is_intact


@pytest.mark.parametrize("what", NOTHING_DONE)
def test_where_nothing_is_done_nothing_is_recorded(tenant: TenantMemory, owls: AgentMemory, what: str) -> None:
    act, error = NOTHING_DONE[what]
    before = tenant.audit.list()

    if error is None:
        act(owls)
    else:
        with pytest.raises(error):
            act(owls)

    assert tenant.audit.list() == before


def test_maintenance_leaves_one_event_for_each_tenant(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock, embedder="off") as wellkept:
        tenants = [wellkept.tenant(name) for name in ("one", "two")]
        for tenant in tenants:
            tenant.agent("ann").remember_many(
                [{"text": f"Errol {n}", "kind": "episode", "category": "routine"} for n in range(5)]
            )
        clock.forward(days=8)

        wellkept.maintain()

        for tenant in tenants:
            event, added = tenant.audit.list()
            assert (event.action, event.message) == ("maintenance.run", "Maintenance archived 5 episodes.")
            assert added.action == "memory.add"
            assert not any(word in shown(each) for each in (event, added) for word in WORDS)
            assert tenant.audit.verify().is_intact


def test_events_can_be_searched_and_belong_to_one_tenant(tenant: TenantMemory, owls: AgentMemory) -> None:
    owls.forget("m-1")

    assert [event.message for event in tenant.audit.search("DELETED")] == ["Memory m-1 was deleted."]
    assert tenant.audit.search("%") == []
    assert [event.id for event in tenant.audit.list(limit=2)] == [4, 3]
    assert [event.id for event in tenant.audit.list(before=3)] == [2, 1]


# Tampering, with the database in one's hands

CHANGES = {
    "tenant_id": "'somebody-else'",
    "id": "id + 100",
    "at": "'2020-01-01T00:00:00.000000Z'",
    "action": "'memory.look'",
    "agent_id": "'eve'",
    "agent_id to nothing": "NULL",
    "message": "'Nothing happened.'",
    "folded_message": "'nothing happened.'",
    "meta": """'{"id": "m-666"}'""",
    "meta to nothing": "'{}'",
    "meta to a word": """'"word"'""",
    "previous_hash": "'0000'",
    "hash": "'0000'",
    "hash and message": "'0000', message = 'Nothing happened.'",
}
UNREADABLE = {"at": "'the day before'", "meta": "'{'", "meta as a list": "'[[[1]]]'"}
ONLY_IN_SQLITE = ("at",)
"""PostgreSQL lets nobody write these."""


def log_of_four(tenant: TenantMemory) -> None:
    ann = tenant.agent("ann")
    ann.remember("Hedwig is an owl")
    ann.remember("Errol is an owl")
    ann.update("m-1", text="Hedwig is a white owl")
    ann.forget("m-2")
    assert tenant.audit.verify().events == 4


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_to_any_column_of_any_row_shows(place: Place, wellkept: Wellkept, tenant_id: str, change: str) -> None:
    column, value = change.split()[0], CHANGES[change]
    for number in (1, 2, 3, 4):
        tenant = wellkept.tenant(f"{tenant_id}-{number}")
        log_of_four(tenant)

        place.sql(f"UPDATE audit_log SET {column} = {value} WHERE tenant_id = '{tenant.id}' AND id = {number}")

        report = tenant.audit.verify()
        assert (report.is_intact, report.events, report.broken_at) == (False, number - 1, number)
        assert report.problem
        assert tenant.agent("ann").remember("life goes on").id == "m-3"
        assert tenant.audit.verify().broken_at == number


@pytest.mark.parametrize("change", UNREADABLE)
def test_what_cannot_even_be_read_shows_as_well(place: Place, tenant: TenantMemory, change: str) -> None:
    log_of_four(tenant)
    column, value = change.split()[0], UNREADABLE[change]
    statement = f"UPDATE audit_log SET {column} = {value} WHERE tenant_id = '{tenant.id}' AND id = 2"
    if place.engine != "sqlite" and change in ONLY_IN_SQLITE:
        with pytest.raises(psycopg.DataError):
            place.sql(statement)
        return

    place.sql(statement)

    assert tenant.audit.verify().broken_at == 2


def test_every_column_is_tried(place: Place) -> None:
    if place.engine == "sqlite":
        rows = place.sql("SELECT name FROM pragma_table_info('audit_log')")
    else:
        rows = place.sql("SELECT column_name FROM information_schema.columns WHERE table_name = 'audit_log'")

    assert {name for (name,) in rows} <= {change.split()[0] for change in CHANGES}


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("DELETE FROM audit_log WHERE tenant_id = '{0}' AND id = 1", 1),
        ("DELETE FROM audit_log WHERE tenant_id = '{0}' AND id = 2", 2),
        ("DELETE FROM audit_log WHERE tenant_id = '{0}' AND id = 3", 3),
        ("DELETE FROM audit_log WHERE tenant_id = '{0}' AND id = 4", 4),
        ("DELETE FROM audit_log WHERE tenant_id = '{0}' AND id > 2", 3),
        ("DELETE FROM audit_log WHERE tenant_id = '{0}'", 1),
        ("UPDATE shelves SET last_id = last_id - 1 WHERE tenant_id = '{0}' AND shelf = 'audit'", 5),
        ("UPDATE shelves SET last_hash = '0000' WHERE tenant_id = '{0}' AND shelf = 'audit'", 5),
        ("DELETE FROM shelves WHERE tenant_id = '{0}' AND shelf = 'audit'", 5),
        (
            "INSERT INTO audit_log "
            "SELECT tenant_id, 5, at, action, agent_id, message, folded_message, meta, hash, hash FROM audit_log "
            "WHERE tenant_id = '{0}' AND id = 4",
            5,
        ),
        (
            "UPDATE audit_log SET message = (SELECT message FROM audit_log WHERE tenant_id = '{0}' AND id = 1), "
            "folded_message = (SELECT folded_message FROM audit_log WHERE tenant_id = '{0}' AND id = 1) "
            "WHERE tenant_id = '{0}' AND id = 4",
            4,
        ),
    ],
)
def test_a_missing_added_or_exchanged_row_shows(
    place: Place, tenant: TenantMemory, statement: str, broken_at: int
) -> None:
    log_of_four(tenant)

    place.sql(statement.format(tenant.id))

    report = tenant.audit.verify()
    assert (report.is_intact, report.broken_at) == (False, broken_at)
    assert report.problem


def test_the_log_of_another_tenant_is_not_touched_by_it(place: Place, tenant: TenantMemory, wellkept: Wellkept) -> None:
    other = wellkept.tenant(f"{tenant.id}-other")
    log_of_four(tenant)
    log_of_four(other)

    place.sql(f"DELETE FROM audit_log WHERE tenant_id = '{tenant.id}' AND id = 2")

    assert (tenant.audit.verify().is_intact, other.audit.verify().is_intact) == (False, True)
