"""A keyed audit log, and heads kept elsewhere, through the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.conftest import Clock, Place
from wellkept import Settings, Wellkept
from wellkept.errors import Invalid, ReadOnly
from wellkept.model import AuditHead

KEY = "correct horse battery staple"
OTHER_KEY = "another key of good length"


def record(store: Wellkept, *messages: str) -> None:
    for message in messages:
        store.tenant("acme").audit.record("crm.call", message, meta={"seconds": 1e16})


def test_erasure_names_the_heads_it_changes(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as store:
        audit, heads = store.tenant("acme").audit, list[AuditHead]()
        for message in ("Called Bob", "Called Mara", "Called Bob"):
            record(store, message)
            heads.append(audit.head())

        store.tenant("acme").data.erase("text:Mara")

        event = next(each for each in audit.list() if each.action == "erase.run")
        assert event.meta["resealed_from"] == 2
        assert event.meta["head_before"] == {"id": 3, "hash": heads[2].hash}
        assert audit.verify().is_intact
        assert [(each.is_ok, each.says) for each in audit.check_heads(heads)] == [
            (True, ""),
            (True, f"Event 2 was re-sealed by the erasure of event {event.id}."),
            (True, f"Event 3 was re-sealed by the erasure of event {event.id}."),
        ]
        # The erasure told what its last event was: no other one is excused.
        assert not audit.check_heads([AuditHead(id=3, hash="0" * 64)])[0].is_ok
        assert not audit.check_heads([AuditHead(id=1, hash="0" * 64)])[0].is_ok


@pytest.mark.parametrize("id", [0, -1, 2**62, True, 1.5])
def test_what_is_no_head_is_refused(fresh_place: Place, clock: Clock, id: int) -> None:
    with fresh_place.open(clock) as store, pytest.raises(Invalid, match="A head needs"):
        store.tenant("acme").audit.check_heads([AuditHead(id=id, hash="")])


@pytest.mark.parametrize("key", ["", OTHER_KEY])
def test_nothing_is_written_without_the_key(fresh_place: Place, clock: Clock, key: str) -> None:
    with fresh_place.open(clock, audit_key=KEY) as store:
        store.agent("ann", "acme").remember("Mara drinks tea")
        record(store, "Called Mara")

    with fresh_place.open(clock, audit_key=key) as store:
        acme = store.tenant("acme")
        for write in (
            lambda: store.agent("ann", "acme").remember("Drinks coffee"),
            lambda: store.agent("ann", "acme").forget("m-1"),
            lambda: acme.data.erase("text:Mara"),
            lambda: acme.audit.record("crm.call", "Called Bob"),
            lambda: acme.agents.add("bob"),
        ):
            with pytest.raises(ReadOnly, match="audit_key") as refused:
                write()
            assert KEY not in str(refused.value)
        assert [each.text for each in store.agent("ann", "acme").list()] == ["Mara drinks tea"]
        assert [each.id for each in acme.agents.list()] == ["ann"]

    with fresh_place.open(clock, audit_key=KEY) as store:
        report = store.tenant("acme").audit.verify()
        assert (report.is_intact, report.events, report.keyed_from) == (True, 2, 1)
        (check,) = [each for each in store.check() if each.name == "audit log"]
        assert check.says == f"2 events are whole; heads: acme 2 {report.head.hash}"


def test_notes_in_a_file_are_not_written_without_the_key(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'memory.db'}", workspace=tmp_path)
    with Wellkept(settings=Settings(url=settings.url, workspace=tmp_path, audit_key=KEY)) as store:
        store.agent().remember("Drinks tea")
    file = tmp_path / ".aegis" / "memory" / "memories.jsonl"
    before = file.read_bytes()

    with Wellkept(settings=settings) as store:
        for write in (
            lambda: store.agent().remember("Drinks coffee"),
            lambda: store.agent().forget("m-1"),
            lambda: store.tenant().data.erase("text:tea"),
        ):
            with pytest.raises(ReadOnly, match="audit_key"):
                write()

    assert file.read_bytes() == before


@pytest.mark.parametrize(("key", "is_copied"), [(KEY, True), (OTHER_KEY, False), ("", False)])
def test_keyed_log_moves_to_another_store(
    fresh_place: Place, clock: Clock, tmp_path: Path, key: str, is_copied: bool
) -> None:
    path = tmp_path / "acme.jsonl"
    with fresh_place.open(clock, audit_key=KEY) as store:
        record(store, "Called Bob", "Called Ann")
        store.agent("ann", "acme").remember("Drinks tea")
        store.tenant("acme").data.export(path)
        first, second = reversed(store.tenant("acme").audit.search("Called"))

    with Wellkept(settings=Settings(url=":memory:", audit_key=key)) as elsewhere:
        acme = elsewhere.tenant("acme")
        imported = acme.data.import_(path)
        report = acme.audit.verify()
        arrived = list(reversed(acme.audit.search("Called")))
        assert acme.data.import_(path).added == {}

    assert report.is_intact
    assert report.keyed_from == (1 if key else None)
    assert [each.meta["seconds"] for each in arrived] == [1e16, 1e16]
    if is_copied:
        assert (imported.problems, [each.hash for each in arrived]) == ((), [first.hash, second.hash])
    else:
        assert "audit_key that is not set here" in imported.problems[0]
        assert [each.meta["imported"]["hash"] for each in arrived] == [first.hash, second.hash]


def test_unkeyed_log_goes_on_keyed_in_another_store(fresh_place: Place, clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "acme.jsonl"
    with fresh_place.open(clock) as store:
        record(store, "Called Bob")
        store.agent("ann", "acme").remember("Drinks tea")
        store.tenant("acme").data.export(path)

    with Wellkept(settings=Settings(url=":memory:", audit_key=KEY)) as elsewhere:
        assert elsewhere.tenant("acme").data.import_(path).problems == ()
        report = elsewhere.tenant("acme").audit.verify()
    assert (report.is_intact, report.keyed_from) == (True, 3)
