"""The audit log's chain: one text for every engine, keyed hashes, and heads that were kept elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import event
from tests.conformance.test_audit import tamper
from wellkept.errors import Invalid, ReadOnly
from wellkept.history.rules_history import START, canonical_json, event_hash, is_keyed
from wellkept.model import AuditHead, Owner, Trace
from wellkept.store import open_store
from wellkept.store.sqlstore import SqlStore
from wellkept.upkeep.rules_erasure import ERASED

KEY = "correct horse battery staple"
OTHER_KEY = "another key of good length"

ODD: dict[str, Any] = {
    "floats": [1e16, 1e20, 1e22, 1e308, -0.0, 5e-324, 0.1, 1e-7, 1.0, 1763310848.123456789],
    "ints": [0, -1, 2**63, 10**300],
    "words": ["ü", "𝄞", "\u2028", '"\\/', "<|im_start|>"],
    "é": {"b": {"z": None, "a": True}, "a": [], "": {}},
    "z": 1,
}


@pytest.fixture
def tenant(ann: Owner) -> str:
    return ann.tenant


def keyed(place: Place, key: str = KEY) -> SqlStore:
    return open_store(place.url, busy_timeout=100, pool_size=2, index_cache_mb=8, audit_key=key)


def fill(store: SqlStore, tenant: str, count: int = 3) -> None:
    for number in range(count):
        store.add_event(event(f"event {number}", tenant, meta={"number": number}))


def recompute(place: Place, store: SqlStore, tenant: str, *, first: int = 1) -> None:
    """Write the chain anew from `first` on, without a key, as somebody with the database's password could."""
    *_, before = [START, *(each.hash for each in reversed(store.list_events(tenant)) if each.id < first)]
    for each in reversed(store.list_events(tenant)):
        if each.id >= first:
            hash = event_hash(replace(each, previous_hash=before), before)
            tamper(
                place,
                tenant,
                f"UPDATE audit_log SET previous_hash = '{before}', hash = '{hash}' "
                f"WHERE tenant_id = '{{tenant}}' AND id = {each.id}",
            )
            before = hash
    tamper(
        place, tenant, f"UPDATE shelves SET last_hash = '{before}' WHERE tenant_id = '{{tenant}}' AND shelf = 'audit'"
    )


def test_canonical_text_survives_reading() -> None:
    assert canonical_json(json.loads(canonical_json(ODD))) == canonical_json(ODD)


@pytest.mark.parametrize("meta", [ODD, {"x": 1e16}, {"x": -0.0}, {10: "a", 9: "b", "c": (1, 2)}])
def test_any_number_keeps_the_chain_whole(store: SqlStore, tenant: str, meta: dict[str, Any]) -> None:
    store.add_event(event("first", tenant, meta=meta))
    store.add_event(event("second", tenant))

    assert store.verify_events(tenant).is_intact
    (found,) = store.find_events(tenant, [1]).values()
    assert canonical_json(found.meta) == canonical_json(json.loads(json.dumps(meta)))


def test_verify_goes_on_behind_a_broken_event(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 9)
    for change in ("SET message = 'other' WHERE id = 2", "SET action = 'other' WHERE id = 7"):
        tamper(lasting_place, tenant, f"UPDATE audit_log {change} AND tenant_id = '{{tenant}}'")
    tamper(lasting_place, tenant, "DELETE FROM audit_log WHERE tenant_id = '{tenant}' AND id IN (4, 5)")

    report = store.verify_events(tenant)

    assert (report.is_intact, report.events, report.broken_at) == (False, 1, 2)
    assert report.problem == "Event 2 was changed after it was written."
    assert report.broken == (2, 4, 5, 7)


def test_verify_names_at_most_twenty(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 30)
    tamper(lasting_place, tenant, "UPDATE audit_log SET message = 'x' WHERE tenant_id = '{tenant}' AND id > 2")

    assert store.verify_events(tenant).broken == tuple(range(3, 23))


def test_verify_reports_the_head(store: SqlStore, tenant: str) -> None:
    assert store.verify_events(tenant).head == store.audit_head(tenant) == AuditHead()
    fill(store, tenant, 2)
    last = store.list_events(tenant)[0]

    assert store.verify_events(tenant).head == store.audit_head(tenant) == AuditHead(id=2, hash=last.hash)


# --- keyed


def test_keyed_log_verifies_only_with_its_key(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 2)
    with_key, with_other = keyed(lasting_place), keyed(lasting_place, OTHER_KEY)
    try:
        fill(with_key, tenant, 2)

        report = with_key.verify_events(tenant)
        assert (report.is_intact, report.events, report.keyed_from) == (True, 4, 3)
        assert [is_keyed(each.hash) for each in store.list_events(tenant)] == [True, True, False, False]
        for other in (store, with_other):
            report = other.verify_events(tenant)
            assert (report.is_intact, report.broken_at, report.keyed_from) == (False, 3, 3)
            assert "audit_key" in report.problem
    finally:
        with_key.close()
        with_other.close()


def test_log_is_not_written_without_its_key(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    with_key, with_other = keyed(lasting_place), keyed(lasting_place, OTHER_KEY)
    try:
        fill(with_key, tenant, 1)
        for other in (store, with_other):
            with pytest.raises(ReadOnly, match="audit_key"):
                fill(other, tenant, 1)
            with pytest.raises(ReadOnly, match="audit_key"):
                other.erase_traces(tenant, [], [Trace(table="audit_log", key=(1,))])

        assert len(with_key.list_events(tenant)) == 1
        assert with_key.add_event(event("next", tenant)).id == 2
        assert with_key.verify_events(tenant).is_intact
    finally:
        with_key.close()
        with_other.close()


@pytest.mark.parametrize("first", [1, 3])
def test_recomputed_chain_shows_with_a_key(lasting_place: Place, store: SqlStore, tenant: str, first: int) -> None:
    with_key = keyed(lasting_place)
    try:
        fill(with_key, tenant, 4)
        tamper(
            lasting_place,
            tenant,
            "UPDATE audit_log SET message = 'other', folded_message = 'other' WHERE tenant_id = '{tenant}' AND id = 3",
        )
        recompute(lasting_place, store, tenant, first=first)

        report = with_key.verify_events(tenant)
        assert not report.is_intact
        assert report.broken == (() if first == 1 else (3, 4))
        assert ("No event is keyed" if first == 1 else "Event 3 is not keyed") in report.problem
    finally:
        with_key.close()


def test_erasing_seals_a_keyed_log_again(lasting_place: Place, tenant: str) -> None:
    with_key = keyed(lasting_place)
    try:
        fill(with_key, tenant, 3)
        before = with_key.audit_head(tenant)

        erased = with_key.erase_traces(tenant, [], [Trace(table="audit_log", key=(2,))])

        assert (erased.resealed_from, erased.head_before) == (2, before)
        report = with_key.verify_events(tenant)
        assert (report.is_intact, report.keyed_from) == (True, 1)
    finally:
        with_key.close()


@pytest.mark.parametrize("key", ["", KEY])
def test_log_that_grows_or_is_sealed_after_planning_stays_whole(lasting_place: Place, tenant: str, key: str) -> None:
    with_key, gone = keyed(lasting_place, key), [Trace(table="audit_log", key=(2,))]
    try:
        fill(with_key, tenant, 3)
        sealing = with_key.plan_sealing(tenant, gone)
        fill(with_key, tenant, 2)
        late = with_key.plan_sealing(tenant, [Trace(table="audit_log", key=(3,))])
        before = with_key.audit_head(tenant)

        erased = with_key.erase_traces(tenant, [], gone, sealing=sealing)
        assert (erased.resealed_from, erased.head_before) == (2, before)
        with_key.erase_traces(tenant, [], [Trace(table="audit_log", key=(3,))], sealing=late)

        report = with_key.verify_events(tenant)
        assert (report.is_intact, report.events) == (True, 5)
        assert [each.message for each in with_key.list_events(tenant)][2:4] == [ERASED, ERASED]
    finally:
        with_key.close()


def test_log_that_was_changed_after_planning_stays_broken(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 4)
    gone = [Trace(table="audit_log", key=(2,))]
    sealing = store.plan_sealing(tenant, gone)
    tamper(lasting_place, tenant, "UPDATE audit_log SET message = 'no' WHERE tenant_id = '{tenant}' AND id = 3")

    store.erase_traces(tenant, [], gone, sealing=sealing)

    assert store.verify_events(tenant).broken == (3,)


def test_key_set_on_an_old_log_does_not_stop_erasing(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 3)
    with_key = keyed(lasting_place)
    try:
        assert not with_key.verify_events(tenant).is_intact
        with_key.erase_traces(tenant, [], [Trace(table="audit_log", key=(2,))])

        report = with_key.verify_events(tenant)
        assert (report.is_intact, report.keyed_from) == (True, 2)
    finally:
        with_key.close()


def test_short_key_is_refused_without_being_shown() -> None:
    with pytest.raises(Invalid, match="16 characters") as refused:
        open_store(":memory:", busy_timeout=1, pool_size=1, index_cache_mb=1, audit_key="hunter2")
    assert "hunter2" not in str(refused.value)


# --- heads


def test_heads_of_an_honest_log_fit(store: SqlStore, tenant: str) -> None:
    heads = []
    for _ in range(3):
        fill(store, tenant, 1)
        heads.append(store.audit_head(tenant))

    assert [(each.head, each.is_ok, each.says) for each in store.check_heads(tenant, heads)] == [
        (head, True, "") for head in heads
    ]


def test_recomputed_or_cut_chain_does_not_fit_its_heads(lasting_place: Place, store: SqlStore, tenant: str) -> None:
    fill(store, tenant, 4)
    heads = [AuditHead(id=each.id, hash=each.hash) for each in reversed(store.list_events(tenant))]
    tamper(
        lasting_place,
        tenant,
        "UPDATE audit_log SET message = 'other', folded_message = 'other' WHERE tenant_id = '{tenant}' AND id = 2",
    )
    recompute(lasting_place, store, tenant)
    tamper(lasting_place, tenant, "DELETE FROM audit_log WHERE tenant_id = '{tenant}' AND id = 4")
    last = store.list_events(tenant)[0]
    tamper(
        lasting_place,
        tenant,
        f"UPDATE shelves SET last_id = 3, last_hash = '{last.hash}' WHERE tenant_id = '{{tenant}}' AND shelf = 'audit'",
    )

    assert store.verify_events(tenant).is_intact  # nobody can tell from the log alone
    found = store.check_heads(tenant, heads)
    assert [each.is_ok for each in found] == [True, False, False, False]
    assert [each.says for each in found[1:]] == [
        "Event 2 has a different hash than recorded: the log was rewritten.",
        "Event 3 has a different hash than recorded: the log was rewritten.",
        "Event 4 was recorded as the last one and is missing.",
    ]
