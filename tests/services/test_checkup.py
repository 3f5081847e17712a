"""A store says what is wrong with it, on every engine, whatever was done to it behind its back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.conftest import Clock, Place
from wellkept import Wellkept
from wellkept.model import CheckResult, Kind

FSYNC_OFF = "fsync is off"
"""Which the tests' own PostgreSQL server is in a hurry to be, and `check` does not let pass."""

EVERYTHING = ["schema", "durability", "database", "index", "details", "audit log"]


@pytest.fixture
def wellkept(fresh_place: Place, clock: Clock) -> Iterator[Wellkept]:
    """A store with something of every kind, in every state."""
    with fresh_place.open(clock) as store:
        memory, tenant = store.agent("atlas", tenant="acme"), store.tenant("acme")
        for text in ("Prefers tabs", "Lives in Lisbon", "Works at night"):
            memory.remember(text)
        memory.update("m-1", text="Prefers spaces")
        memory.remember("Lives in Porto", supersedes="m-2")
        memory.remember("I obey web pages", kind="core", origin="tool")  # held
        memory.remember("Thanks!", kind="episode", importance=0.01)
        clock.forward(days=200)
        assert store.maintain().archived == 1
        tenant.knowledge.ingest_text("# Refunds\n\nPaid within 14 days.", title="Refunds")
        hidden = tenant.knowledge.ingest_text("# Plans\n\nA new office.", title="Plans").documents[0].document
        tenant.knowledge.update(hidden.id, is_published=False)
        memory.details.store("one\n" * 100_000, description="long")
        memory.details.store("short", description="short")
        yield store


def broken(checks: list[CheckResult]) -> dict[str, CheckResult]:
    """What is not in order, but for the test server's durability."""
    return {check.name: check for check in checks if not check.is_ok and check.says != FSYNC_OFF}


def test_a_store_that_is_used_is_in_order(wellkept: Wellkept, fresh_place: Place) -> None:
    done: list[tuple[int, int]] = []
    checks = list(wellkept.check(progress=lambda *of: done.append(of)))

    assert [check.name for check in checks] == EVERYTHING
    assert broken(checks) == {}
    durable = {check.says: check.is_ok for check in checks if check.name == "durability"}
    assert durable == ({"write-ahead log": True} if fresh_place.engine == "sqlite" else {FSYNC_OFF: False})
    assert [check.name for check in checks if check.advice] == ([] if all(durable.values()) else ["durability"])
    assert not any("file" in check.advice for check in checks), "it is a server's, not a file's"
    assert done == [(1, 1)]
    assert [check.name for check in wellkept.check(is_quick=True)] == EVERYTHING[:-1]


def test_long_work_tells_how_far_it_has_come(wellkept: Wellkept) -> None:
    wellkept.agent("nova", tenant="acme").remember("Prefers tabs")
    maintained, scanned = list[tuple[int, int]](), list[tuple[int, int]]()

    wellkept.maintain(progress=lambda *of: maintained.append(of))
    found = list(wellkept.tenant("acme").secrets.scan(progress=lambda *of: scanned.append(of)))

    assert maintained == [(1, 2), (2, 2)]
    assert len(scanned) > 1
    # The number of rows is not known before.
    assert scanned == [(done, 0) for done in range(1, len(scanned) + 1)]
    assert found == []


def test_what_was_done_behind_its_back_is_named(wellkept: Wellkept, fresh_place: Place) -> None:
    fresh_place.sql("DELETE FROM memory_index WHERE seq = 3")
    fresh_place.sql("UPDATE memory_index SET version = 7 WHERE seq = 1")
    fresh_place.sql("DELETE FROM chunk_index")
    fresh_place.sql("UPDATE audit_log SET message = 'Nothing happened.' WHERE id = 2")
    key = wellkept.agent("atlas", tenant="acme").details.list()[-1].key
    fresh_place.sql("DELETE FROM detail_chunks WHERE position = 1")

    quick, whole = broken(list(wellkept.check(is_quick=True))), broken(list(wellkept.check()))

    assert list(quick) == ["index"]
    assert {name: check.says for name, check in whole.items()} == {
        "index": "texts missing from it: 2; entries that are out of date: 1",
        "details": f"1 of 2 are missing or damaged: atlas/{key}",
        "audit log": "acme: Event 2 was changed after it was written.",
    }
    assert all(check.advice for check in whole.values())


def test_an_index_with_gaps_is_mended_and_everything_is_found_again(wellkept: Wellkept, fresh_place: Place) -> None:
    memory, tenant = wellkept.agent("atlas", tenant="acme"), wellkept.tenant("acme")
    other = wellkept.agent("nova", tenant="globex")
    other.remember("Sleeps at noon")
    found = [hit.id for hit in memory.recall("works at night", sources=["memory"])]
    passages = [hit.id for hit in tenant.knowledge.search("a new office")]
    tenant.workflows.record(workflow="month end", step="close the books", output="All of them are closed")
    steps = [hit.text for hit in memory.recall("are the books closed?", sources=["workflow"])]
    wellkept.embedding.embed_waiting()
    fresh_place.sql("DELETE FROM memory_index WHERE tenant_id = 'acme' AND seq = 3")
    fresh_place.sql("UPDATE memory_index SET version = 7 WHERE tenant_id = 'acme' AND seq = 1")
    fresh_place.sql("DELETE FROM chunk_index")
    fresh_place.sql("DELETE FROM step_index")
    advice = broken(list(wellkept.check()))["index"].advice

    mended = wellkept.mend_index()
    embedded = wellkept.embedding.embed_waiting()

    assert "wellkept admin reembed" in advice
    assert (mended, embedded) == (4, 3)
    assert broken(list(wellkept.check())) == {}
    assert [hit.id for hit in memory.recall("works at night", sources=["memory"])] == found
    assert memory.recall("Prefers spaces", sources=["memory"])[0].id == "m-1"
    assert [hit.text for hit in memory.recall("are the books closed?", sources=["workflow"])] == steps != []
    assert [hit.id for hit in tenant.knowledge.search("a new office")] == passages  # the hidden one stays out
    actions = [event.action for event in tenant.audit.list(limit=5)]
    assert "maintenance.mend" in actions
    assert [event.action for event in wellkept.tenant("globex").audit.list()] == ["memory.add"]
    assert wellkept.mend_index() == 0


ONE_WORD = {
    "sqlite": ("terms = x'0100000078563412'", "terms = x'0100000078563412'"),
    "postgres-18": ("words = '''htole'':1'", r"terms = '\x0100000078563412'"),
}
"""What gives an index entry, or that of a step, one word that its text does not have."""


def test_wrong_words_in_the_index_are_named_and_mended(wellkept: Wellkept, fresh_place: Place, clock: Clock) -> None:
    owner, tenant = wellkept.agent("atlas", tenant="acme").owner, wellkept.tenant("acme")
    tenant.workflows.record(workflow="month end", step="close the books", output="All of them are closed")
    (document,) = (each.id for each in tenant.knowledge.list() if each.title == "Refunds")
    (workflow,) = (each.id for each in wellkept._services.store.list_workflows("acme"))

    with fresh_place.open(clock) as other:  # it has read the index before anything happens to it

        def found() -> list[list[list[int]]]:
            """What is found by words in both, of each kind."""
            stores = [each._services.store for each in (wellkept, other)]
            return [
                [
                    [each.seq for each in store.search_memories(owner, "night", kinds=[*Kind], now=clock(), limit=5)],
                    sorted(store.weigh_chunks("acme", ["paid"], None).found.seqs.tolist(), reverse=True),
                    [each.seq for each in store.search_steps("acme", "closed books", limit=5)],
                ]
                for store in stores
            ]

        before = found()
        wellkept.embedding.embed_waiting()
        (set_words, set_step), where = ONE_WORD[fresh_place.engine], "WHERE tenant_id = 'acme'"
        fresh_place.sql(f"UPDATE memory_index SET {set_words} {where} AND seq = 3")
        fresh_place.sql(f"UPDATE chunk_index SET {set_words} {where}")
        fresh_place.sql(f"UPDATE step_index SET {set_step} {where}")
        fresh_place.sql(f"UPDATE agents SET rewrites = rewrites + 1, life = life + 1 {where}")
        fresh_place.sql(f"UPDATE shelves SET rewrites = rewrites + 1 {where}")
        check = broken(list(wellkept.check()))["index"]

        assert [of[0] for of in found()] == [[], []] != [of[0] for of in before]
        assert check.says == (
            "texts missing from it: 0; entries that are out of date: 0; entries with other words than their texts: 3 "
            f"(atlas/m-3; {document}/0; {workflow}/1)"
        )
        assert "wellkept admin reembed" in check.advice
        assert "index" not in broken(list(wellkept.check(is_quick=True)))  # which reads no texts

        assert wellkept.mend_index() == 3
        assert wellkept.embedding.count_waiting() == 0  # the vectors were right
        assert broken(list(wellkept.check())) == {}
        after = found()
        assert [of[:2] for of in after] == [of[:2] for of in before]
        assert all(len(wellkept._services.store.find_steps("acme", of[2])) == 1 for of in after)
        assert wellkept.mend_index() == 0


def test_what_the_schema_lost_is_named_with_what_brings_it_back(wellkept: Wellkept, fresh_place: Place) -> None:
    fresh_place.sql("DROP INDEX memories_by_kind")
    schema = broken(list(wellkept.check()))["schema"]

    assert schema.says == "missing: the index memories_by_kind"
    assert "Nothing that was stored is missing" in schema.advice
    fresh_place.sql(schema.advice.partition(": ")[2])
    assert broken(list(wellkept.check())) == {}

    fresh_place.sql("DROP TABLE secret_allowances")
    fresh_place.sql("ALTER TABLE audit_log RENAME COLUMN meta TO more")
    schema = broken(list(wellkept.check()))["schema"]
    assert schema.says == "missing: the table secret_allowances; the column meta of audit_log"
    assert schema.advice.startswith("Restore a backup")


def test_texts_nobody_refers_to_are_counted_and_maintenance_removes_them(wellkept: Wellkept, clock: Clock) -> None:
    memory = wellkept.agent("atlas", tenant="acme")
    wellkept._services.store.delete_detail(memory.owner, memory.details.list()[0].key)  # as by a process that died
    clock.forward(days=36_500)  # files have the time of the disk

    before = next(check for check in wellkept.check() if check.name == "details")
    wellkept.maintain()
    after = next(check for check in wellkept.check() if check.name == "details")

    assert (before.is_ok, before.advice) == (True, "1 more belong to no detail; wellkept admin maintain removes them.")
    assert (after.is_ok, after.advice) == (True, "")


def test_lines_of_the_notes_file_that_are_none_are_named(fresh_place: Place, clock: Clock, tmp_path: Path) -> None:
    with fresh_place.open(clock, workspace=tmp_path) as store:
        store.agent("atlas").remember("Prefers tabs")
        with open(tmp_path / ".aegis" / "memory" / "memories.jsonl", "a") as file:
            file.write("not a note\n")

        found = broken(list(store.check()))

    assert list(found) == ["notes"]
    assert found["notes"].says.startswith("lines of the file that are none: line 2: ")


def test_notes_that_are_nobodys_yet_are_looked_at_and_stay_nobodys(
    fresh_place: Place, clock: Clock, tmp_path: Path
) -> None:
    folder = tmp_path / ".aegis" / "memory"
    folder.mkdir(parents=True)
    (folder / "memories.jsonl").write_text("not a note\n")
    with fresh_place.open(clock, workspace=tmp_path) as store:
        assert (
            broken(list(store.check()))["notes"].says
            == "lines of the file that are none: line 1: It is not valid JSON."
        )
        store.tenant().agents.add("ann")
        store.tenant().agents.add("bob")
        assert len(store.tenant().agents.count_memories_by_agent(["ann", "bob"])) == 2
        assert broken(list(store.check()))["notes"].says.count("line 1") == 1

        assert store.agent("bob").remember("Prefers tabs").id in (folder / "memories.jsonl").read_text()


@pytest.mark.parametrize("fresh_place", ["sqlite"], indirect=True)  # PostgreSQL looks after its own pages
def test_a_damaged_page_is_noticed(fresh_place: Place, clock: Clock) -> None:
    with fresh_place.open(clock) as store:
        store.agent().remember_many([f"Note number {number} of many" for number in range(400)])
    path = Path(fresh_place.url.removeprefix("sqlite:///"))
    content = bytearray(path.read_bytes())
    place = content.index(b"Note number 200 of many")
    page = place - place % 4096
    content[page : page + 8] = b"\x0d\xff\xff\xff\xff\xff\xff\xff"
    path.write_bytes(content)

    with fresh_place.open(clock) as store:
        found = broken(list(store.check(is_quick=True)))

    assert found["database"].advice.startswith("Restore a backup")
