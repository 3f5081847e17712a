"""A tenant's rows leave one engine and arrive at another as they were, and no table can be forgotten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import (
    NOW,
    a_change,
    add_detail,
    call,
    detail,
    document,
    event,
    messages,
    note,
    owner,
    search_chunks,
    session,
    step,
    vector,
    workflow,
)
from wellkept.errors import Conflict, Invalid
from wellkept.model import Kind, Owner
from wellkept.store import open_store
from wellkept.store.migrations import load_migrations
from wellkept.store.sqlstore import SqlStore
from wellkept.store.tables.details import ContentDraft
from wellkept.store.tables.transfer import BY_NAME, TABLES
from wellkept.transfer.rules import CONTENTS, KEYS, PARENTS, TEXTS, upgrade_row

MADE_AGAIN = {
    "memory_index": "the words and vectors of memories",
    "chunk_index": "the words and vectors of passages",
    "step_index": "the words of steps; their numbers are exported with them",
    "detail_chunks": "exported as text, as rows of detail_contents",
}
NOT_EXPORTED = {
    "api_keys": "a key opens one database, and whoever holds an export shall not hold keys",
    "audit_lanes": "numbers of events that wait, in one database",
    "audit_waiting": "its events are added to the log before it is exported",
    "console_logins": "they open the console of one database for some hours",
    "recalls_by_day": "numbers for the overview of one database",
    "idempotency_keys": "they guard retries to one server for a day, and answers are copies of rows",
    "tenants": "a registry of ids",
    "vector_queue": "what waits for the embedder here",
    "shown_texts": "guards the prompts of one database, for a while",
}
LOCAL_COLUMNS = {
    "revision": "what caches of one database compare",
    "rewrites": "what caches of one database compare",
    "life": "what caches of one database compare",
    "consolidated": "an import is examined anew",
    "compared": "an import is examined anew",
    "lanes": "numbers of events that waited, in one database",
    "folded": "made from the text",
    "folded_message": "made from the message",
    "folded_tags": "made from the tags",
    "tenant_id": "stands in the first line",
}
MADE_OF_TEXT = {("memories", "content_hash")}

Rows = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def catalogue(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    Place("postgres-18", postgres_url).open().close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[SqlStore]:
    """A store on the other engine."""
    if place.name.startswith("postgres"):
        store = open_store(f"sqlite:///{tmp_path / 'other.db'}", busy_timeout=100, pool_size=2, index_cache_mb=8)
        yield store
        store.close()
    else:
        server = request.getfixturevalue("postgres_server")
        url = server.create_database(has_tables=True)
        store = open_store(url, busy_timeout=100, pool_size=2, index_cache_mb=8)
        yield store
        store.close()
        server.drop_database(url)


def exported(store: SqlStore, tenant: str) -> Rows:
    rows: Rows = []
    store.export_rows(tenant, lambda table, row: rows.append((table, row)))
    return rows


def restored(store: SqlStore, tenant: str, rows: Rows) -> Counter[str]:
    """Put rows back, as the service does: a text together with the first detail that follows it."""
    added: Counter[str] = Counter()
    draft = None
    for table, row in rows:
        if table == CONTENTS:
            draft = draft or ContentDraft()
            draft.feed(row["text"])
            continue
        store.check_row(table, row)
        added[table] += store.import_rows(tenant, table, [row], now=NOW, vectors=[None], text=draft)
        if draft is not None:
            draft.close()
            draft = None
    return added


def fill(store: SqlStore, ann: Owner) -> None:
    """Something in every table."""
    tenant = ann.tenant
    store.add_memories([note(f"note {i}", ann, tags=("a", "Ö")) for i in range(3)], [vector(1)] * 3)
    store.add_memory(note("gone", ann, kind=Kind.EPISODE, archived_at=NOW, supersedes="m-1", valid_from=NOW))
    store.delete_memory(ann, "m-3")
    store.update_memory(store.get_memory(ann, "m-2"), vector(2), replaced_at=NOW)
    store.add_session(session("s-1", ann, summary="they met", summarized_count=1))
    store.add_messages(ann, "s-1", messages("hello", "good day"))
    for key in ("log", "same-log"):
        add_detail(store, detail(key, ann, metadata={"source": "make", "exit": 1.5}), "line\n" * 50_000)
    store.set_detail_active(ann, "log", False)
    store.add_context_calls(ann, [call(ann)], keep=5)
    store.add_changes(ann, [a_change(ann, "m-1")])
    store.put_document(document("b", tenant), ["one passage", "another passage"], [vector(1)] * 2)
    store.put_document(document("a", tenant, is_published=False), ["hidden passage"], [None])
    store.add_workflow(workflow("w", tenant))
    store.add_workflow(workflow("v", tenant))
    for name in ("w", "v", "w"):
        store.add_step(step("does it", tenant, name, output="it was done"))
    store.add_allowance(tenant, "hash", now=NOW)
    store.keep_erased(tenant, ["text 17"], now=NOW)
    for i in range(3):
        store.add_event(event(f"event {i}", tenant))


# --- nothing is forgotten


def test_every_table_of_a_tenant_is_exported_or_there_is_a_reason(catalogue: psycopg.Connection[Any]) -> None:
    owned = {
        row[0]
        for row in catalogue.execute(
            "SELECT DISTINCT c.table_name FROM information_schema.columns c JOIN information_schema.tables t "
            "USING (table_schema, table_name) WHERE c.table_schema = 'public' AND c.column_name = 'tenant_id' "
            "AND t.table_type = 'BASE TABLE'"
        )
    }

    assert owned == {*BY_NAME, CONTENTS, *MADE_AGAIN, *NOT_EXPORTED}


def test_every_column_of_an_exported_table_is_exported_or_made_again(catalogue: psycopg.Connection[Any]) -> None:
    for table in TABLES:
        columns = {
            row[0]
            for row in catalogue.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s",
                [table.name],
            )
        }
        made_again = {column for name, column in MADE_OF_TEXT if name == table.name}
        assert columns - set(table.columns) - set(LOCAL_COLUMNS) == made_again, table.name
        nullable = {
            row[0]
            for row in catalogue.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = 'public' AND table_name = %s AND is_nullable = 'YES'",
                [table.name],
            )
        }
        assert table.optional == nullable, table.name


def test_a_proposal_of_an_older_file_is_a_change(store: SqlStore) -> None:
    at = "2026-03-01T12:00:00.000000Z"
    fold = {"id": "m-1", "version": 1, "ended_version": 2, "valid_to": None}
    told = {"kind": "note", "text": "Tea", "tags": ["a"], "origin": "user", "reason": "Said twice.", "memory_seq": 9}
    made = {"agent_id": "ann", "seq": 1, "is_new": True, "created_at": at, "decided_at": at}

    table, row = upgrade_row("proposals", {**told, **made, "state": "applied", "folds": [fold]})

    store.check_row(table, row)
    assert (table, row["state"], row["text"], row["user_id"]) == ("changes", "applied", "", "")
    assert [(each["action"], each["id"], each["new_version"]) for each in row["memories"]] == [
        ("end", "m-1", 2),
        ("add", "m-9", 1),
    ]
    with pytest.raises(Invalid):
        store.check_row(*upgrade_row("proposals", {**made, "state": "odd", "folds": [{}]}))


def test_the_key_of_a_table_is_unique_in_a_tenant(catalogue: psycopg.Connection[Any]) -> None:
    unique: dict[str, set[frozenset[str]]] = {}
    for name, columns in catalogue.execute(
        "SELECT i.indrelid::regclass::text, ARRAY(SELECT a.attname::text FROM pg_attribute a "
        "WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)) FROM pg_index i WHERE i.indisunique"
    ):
        unique.setdefault(name, set()).add(frozenset(columns) - {"tenant_id"})

    assert list(KEYS) == [table.name for table in TABLES]
    for table, key in KEYS.items():
        assert frozenset(key) in unique[table], table


def test_what_others_refer_to_comes_first() -> None:
    place = {table: number for number, table in enumerate(KEYS)}
    script = "".join(each for migration in load_migrations("sqlite") for each in migration.statements)
    references = re.findall(r"CREATE TABLE (\w+) \(([^;]*?)\) STRICT", script)

    assert references
    for table, body in references:
        for other in re.findall(r"REFERENCES (\w+)", body):
            if table in place and other in place:
                assert place[other] < place[table], (table, other)
    assert {*PARENTS, *TEXTS} <= set(KEYS)


# --- there and back


def test_rows_arrive_at_the_other_engine_as_they_were(store: SqlStore, elsewhere: SqlStore, ann: Owner) -> None:
    fill(store, ann)
    rows = exported(store, ann.tenant)

    added = restored(elsewhere, ann.tenant, rows)

    assert {table for table, _ in rows} == {*KEYS, CONTENTS}
    assert exported(elsewhere, ann.tenant) == rows
    assert added.total() == len([table for table, _ in rows if table not in ("shelves", CONTENTS)])
    assert elsewhere.verify_events(ann.tenant).is_intact
    assert "".join(elsewhere.open_content(ann, "same-log").chunk(i) for i in range(2)) == "line\n" * 50_000


def test_what_arrived_is_found_and_numbers_go_on(store: SqlStore, elsewhere: SqlStore, ann: Owner) -> None:
    fill(store, ann)
    restored(elsewhere, ann.tenant, exported(store, ann.tenant))

    found = elsewhere.search_memories(ann, "note", kinds=tuple(Kind), now=NOW)
    assert {match.seq for match in found} == {1, 2}
    assert [match.seq for match in search_chunks(elsewhere, ann.tenant, "another")] == [2]
    assert search_chunks(elsewhere, ann.tenant, "hidden") == []
    assert {match.seq for match in elsewhere.search_steps(ann.tenant, "done")} == {1, 2, 3}
    assert {match.seq for match in elsewhere.search_events(ann.tenant, "event")} == {1, 2, 3}
    assert elsewhere.count_unembedded(ann.tenant) == store.count_unembedded(ann.tenant) + 4
    assert elsewhere.add_memory(note("new", ann)).id == store.add_memory(note("new", ann)).id
    assert elsewhere.add_event(event("next", ann.tenant)).id == 4
    assert elsewhere.verify_events(ann.tenant).is_intact


def test_the_same_rows_again_change_nothing(store: SqlStore, ann: Owner) -> None:
    fill(store, ann)
    rows = exported(store, ann.tenant)
    again = [(table, row) for table, row in rows if table != "audit_log"]

    assert restored(store, ann.tenant, again).total() == 0
    assert exported(store, ann.tenant) == rows
    for table, row in rows:
        if table not in (CONTENTS, "shelves"):
            assert store.find_rows(ann.tenant, table, [row]) == [True]


def test_passages_and_steps_beside_others_get_numbers_of_their_own(
    store: SqlStore, elsewhere: SqlStore, ann: Owner
) -> None:
    fill(store, ann)
    elsewhere.put_document(document("c", ann.tenant), ["was here before"], [None])
    elsewhere.add_workflow(workflow("u", ann.tenant))
    elsewhere.add_step(step("was here before", ann.tenant, "u"))
    rows = [(table, row) for table, row in exported(store, ann.tenant) if table not in ("audit_log", "shelves")]

    restored(elsewhere, ann.tenant, rows)

    assert [chunk.text for chunk in elsewhere.list_chunks(ann.tenant, "b")] == ["one passage", "another passage"]
    assert [chunk.text for chunk in elsewhere.list_chunks(ann.tenant, "c")] == ["was here before"]
    assert len(elsewhere.search_steps(ann.tenant, "done")) == 3
    assert elsewhere.put_document(document("d", ann.tenant), ["next"], [None]).id == "d"
    assert [chunk.id for chunk in elsewhere.list_chunks(ann.tenant, "d")] == [5]


def test_something_else_under_the_same_key_is_told_apart(store: SqlStore, ann: Owner, stranger: Owner) -> None:
    fill(store, ann)
    fill(store, stranger)
    row = next(row for table, row in exported(store, ann.tenant) if table == "memories")

    other = row | {"created_at": "2020-01-01T00:00:00Z"}

    assert store.find_rows(stranger.tenant, "memories", [row, other, row | {"seq": 99}]) == [True, False, None]
    assert store.find_rows(owner("nobody").tenant, "memories", [row]) == [None]


def test_events_only_follow_those_that_are_there(store: SqlStore, ann: Owner) -> None:
    fill(store, ann)
    events = [row for table, row in exported(store, ann.tenant) if table == "audit_log"]

    with pytest.raises(Conflict, match="Import the file again"):
        store.import_rows(ann.tenant, "audit_log", events, now=NOW)


def test_a_log_that_lacks_its_end_shows_it_also_where_it_arrives(
    store: SqlStore, elsewhere: SqlStore, ann: Owner
) -> None:
    fill(store, ann)
    rows = [(table, row) for table, row in exported(store, ann.tenant) if table != "audit_log" or row["id"] < 3]

    restored(elsewhere, ann.tenant, rows)

    assert elsewhere.verify_events(ann.tenant).problem == "Events are missing from the end of the log."


# --- rows that make no sense

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("memories", {"kind": "dream"}, "kind is not valid"),
    ("memories", {"text": None}, "text is missing"),
    ("memories", {"text": "a\x00b"}, "NUL"),
    ("memories", {"created_at": "yesterday"}, "created_at is not valid"),
    ("memories", {"created_at": "2026-01-01T00:00:00"}, "created_at is not valid"),
    ("memories", {"importance": 2}, "importance is not valid"),
    ("memories", {"seq": "7"}, "seq is not valid"),
    ("memories", {"seq": 2**63}, "seq is not valid"),
    ("memories", {"tags": {"a": 1}}, "tags is not valid"),
    ("memories", {"mood": "good"}, "a newer version may have written it"),
    ("memories", {"tags": ["a", 1]}, "tags is not valid"),
    ("memories", {"version": -1}, "version is not valid"),
    ("changes", {"memories": [{"id": "m-1"}]}, "its nested values are not valid"),
    ("changes", {"memories": ["m-1"]}, "its nested values are not valid"),
    ("context_calls", {"blocks": [{"name": "notes"}]}, "its nested values are not valid"),
    ("agents", {"is_active": 1}, "is_active is not valid"),
    ("audit_log", {"meta": []}, "meta is not valid"),
    ("details", {"metadata": {"a": "\x00"}}, "holds a NUL"),
]


def test_a_row_that_makes_no_sense_is_refused(store: SqlStore, ann: Owner) -> None:
    fill(store, ann)
    known = dict(exported(store, ann.tenant))

    for table, change, problem in WRONG:
        store.check_row(table, known[table])
        with pytest.raises(Invalid, match=problem):
            store.check_row(table, known[table] | change)
