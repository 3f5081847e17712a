"""Schema changes: each once, in order, whole or not at all, and never on a database that is not ours to change."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import psycopg
import pytest

from tests.conformance.conftest import Place
from tests.conformance.examples import EARLIER, NOW, event, messages, note, owner, session
from tests.postgres_server import PATIENCE, PostgresServer
from tests.processes import CLEAN
from tests.waiting import eventually
from wellkept.errors import SchemaMismatch, StoreBusy, StoreError
from wellkept.model import Kind, Owner, Role
from wellkept.store.migrations import Migration, load_migrations
from wellkept.store.postgres import schema as postgres
from wellkept.store.postgres.schema import migrate_database
from wellkept.store.sqlite import engine as schema
from wellkept.store.sqlstore import SqlStore

pytestmark = pytest.mark.proves("T2")

PROCESSES = 4


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database nobody has opened yet."""
    if request.param == "sqlite":
        yield Place("sqlite", f"sqlite:///{tmp_path_factory.mktemp('new') / 'folder' / 'memory.db'}")
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database()
        yield Place("postgres", url)
        server.drop_database(url)


def run(place: Place, statement: str) -> list[tuple[Any, ...]]:
    """Past the store, straight to the database."""
    if place.name == "sqlite":
        with closing(apsw.Connection(place.url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(place.url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def tables(place: Place) -> set[str]:
    if place.name == "sqlite":
        return {name for (name,) in run(place, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {name for (name,) in run(place, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def applied(place: Place) -> list[tuple[Any, ...]]:
    return run(place, "SELECT number, name, checksum FROM schema_migrations ORDER BY number")


def know(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    """Let the program have these steps besides its own."""

    def load(engine: str) -> Sequence[Migration]:
        return [*load_migrations(engine), *more]

    monkeypatch.setattr(schema, "load_migrations", load)
    monkeypatch.setattr(postgres, "load_migrations", load)


def step(number: int, *statements: str) -> Migration:
    return Migration(number, f"step_{number}", f"checksum of {number}", statements)


def next_number(place: Place) -> int:
    return load_migrations(place.name)[-1].number + 1


def test_a_new_database_gets_every_step(new_place: Place) -> None:
    new_place.open().close()

    ours = load_migrations(new_place.name)
    assert applied(new_place) == [(each.number, each.name, each.checksum) for each in ours]
    assert {"agents", "memories", "memory_index"} <= tables(new_place)


def test_a_current_database_is_left_as_it_is(new_place: Place) -> None:
    ann = owner()
    first = new_place.open()
    first.add_memory(note("apples", ann))
    first.close()
    before = applied(new_place), tables(new_place)

    second = new_place.open()
    assert len(second.list_memories(ann, now=NOW)) == 1
    second.close()
    assert (applied(new_place), tables(new_place)) == before


def test_an_older_database_gets_what_it_lacks(new_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    new_place.open().close()
    number = next_number(new_place)
    know(monkeypatch, step(number, "CREATE TABLE extra (x INTEGER)"), step(number + 1, "INSERT INTO extra VALUES (1)"))

    new_place.open().close()
    new_place.open().close()

    assert run(new_place, "SELECT x FROM extra") == [(1,)]
    assert [number for number, *_ in applied(new_place)][-2:] == [number, number + 1]


def test_memories_from_before_the_index_knew_who_said_them_when_know_it_after(new_place: Place) -> None:
    ann, bob = owner(), owner()
    store = new_place.open()
    for each in (ann, bob):
        talk = {"kind": Kind.EPISODE, "role": Role.ASSISTANT, "session_id": "s-1"}
        store.add_memories([note("apples", each, **talk), note("pears", each, valid_from=EARLIER)], [None, None])
    known = [weighed(store, each) for each in (ann, bob)]
    store.close()
    for column in ("session_id", "role", "since"):
        run(new_place, f"ALTER TABLE memory_index DROP COLUMN {column}")
    run(new_place, "DELETE FROM schema_migrations WHERE number = 3")

    store = new_place.open()

    assert [weighed(store, each) for each in (ann, bob)] == known
    store.close()


def weighed(store: SqlStore, owner: Owner) -> list[list[float]]:
    found = store.weigh_memories(owner, [], None, kinds=tuple(Kind), now=NOW)
    return [column.tolist() for column in (found.seqs, found.conversations, found.speakers, found.since)]


def test_proposals_of_former_versions_are_changes_after(new_place: Place) -> None:
    """Those that were open, applied and rejected, as version 0.2 had them."""
    is_sqlite = new_place.name == "sqlite"
    engine = schema if is_sqlite else postgres
    with pytest.MonkeyPatch.context() as former:
        former.setattr(
            engine, "load_migrations", lambda name: [each for each in load_migrations(name) if each.number < 28]
        )
        if is_sqlite:
            new_place.open().close()
        else:
            migrate_database(new_place.url)
    json, yes = ("", 1) if is_sqlite else ("::jsonb", "true")
    at = "'2026-03-01T12:00:00.000000Z'"
    run(new_place, f"INSERT INTO tenants (tenant_id, created_at) VALUES ('acme', {at})")
    session = "" if is_sqlite else "SET recollect.tenant = 'acme'; "
    run(
        new_place,
        f"{session}INSERT INTO agents (tenant_id, id, name, system_prompt, model, tools, colour, icon, is_active, "
        f"created_at, updated_at, knowledge_categories) "
        f"VALUES ('acme', 'ann', 'ann', '', '', '[]', '', '', {yes}, {at}, {at}, '[]')",
    )
    for seq, state, made, ended in (
        (1, "open", "NULL", "null"),
        (2, "applied", "9", "2"),
        (3, "rejected", "NULL", "null"),
    ):
        fold = f'[{{"id": "m-{seq}", "version": 1, "ended_version": {ended}, "valid_to": null}}]'
        run(
            new_place,
            f"{session}INSERT INTO proposals (tenant_id, agent_id, seq, kind, text, tags, folds, reason, origin, "
            f"state, memory_seq, is_new, created_at, decided_at, user_id) "
            f"VALUES ('acme', 'ann', {seq}, 'note', 'Text {seq}', "
            f"""'["a"]'{json}, '{fold}'{json}, 'Said twice.', 'user', '{state}', {made}, {yes}, {at}, NULL, 'u-7')""",
        )

    store = new_place.open()
    rejected, applied, proposed = store.list_changes(Owner("acme", "ann"))
    store.close()

    assert [each.state.value for each in (proposed, applied, rejected)] == ["proposed", "applied", "rejected"]
    assert (proposed.id, proposed.text, proposed.user, proposed.reason) == ("c-1", "Text 1", "u-7", "Said twice.")
    end, added = proposed.memories
    assert (end.action, end.id, end.version, end.new_version) == ("end", "m-1", 1, None)
    assert (added.action, added.id, added.after) == ("add", "", {"kind": "note", "tags": ["a"], "origin": "user"})
    end, added = applied.memories
    assert (end.new_version, end.before, added.id, added.new_version) == (2, {"valid_to": None}, "m-9", 1)
    assert (applied.text, rejected.text) == ("", "Text 3")


def test_a_step_that_fails_half_way_leaves_nothing(new_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    new_place.open().close()
    number = next_number(new_place)
    with monkeypatch.context() as broken:
        know(broken, step(number, "CREATE TABLE extra (x INTEGER)", "INSERT INTO no_such_table VALUES (1)"))
        with pytest.raises(StoreError):
            new_place.open()
    assert "extra" not in tables(new_place)
    assert len(applied(new_place)) == len(load_migrations(new_place.name))

    know(monkeypatch, step(number, "CREATE TABLE extra (x INTEGER)"))  # mended
    new_place.open().close()
    assert "extra" in tables(new_place)


def test_a_step_that_fails_takes_those_before_it_back(new_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    new_place.open().close()
    before, number = applied(new_place), next_number(new_place)
    first = step(number, "CREATE TABLE extra (x INTEGER)")
    with monkeypatch.context() as broken:
        know(broken, first, step(number + 1, "INSERT INTO no_such_table VALUES (1)"))
        with pytest.raises(StoreError) as refused:
            new_place.open()
    if new_place.name == "postgres":
        assert "(42P01)" in str(refused.value)
        said = f"The database is at schema {number - 1} as before, so a version that started until now still starts."
        assert said in str(refused.value)

    # Without the new steps it is the former version.
    assert applied(new_place) == before
    new_place.open().close()
    know(monkeypatch, first, step(number + 1, "INSERT INTO extra VALUES (1)"))
    new_place.open().close()
    assert [each[0] for each in applied(new_place)][-2:] == [number, number + 1]


def test_a_first_step_that_fails_leaves_an_empty_database(new_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [step(1, "CREATE TABLE extra (x INTEGER)", "CREATE TABLE extra (x INTEGER)")]
    monkeypatch.setattr(schema, "load_migrations", lambda engine: broken)
    monkeypatch.setattr(postgres, "load_migrations", lambda engine: broken)

    with pytest.raises(StoreError):
        new_place.open()

    assert tables(new_place) == set()


def test_a_newer_database_is_refused_with_the_command_that_mends_it(new_place: Place) -> None:
    new_place.open().close()
    run(new_place, "INSERT INTO schema_migrations (number, name, checksum) VALUES (99, 'of_the_future', 'x')")

    with pytest.raises(SchemaMismatch, match=r"has schema 99, .*pip install -U wellkept"):
        new_place.open()


def test_a_database_of_another_history_is_refused(new_place: Place) -> None:
    new_place.open().close()
    run(new_place, "UPDATE schema_migrations SET checksum = 'another' WHERE number = 1")

    with pytest.raises(SchemaMismatch, match=r"Migration 1 .*another build"):
        new_place.open()


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("other") / "letter.txt"
    path.write_bytes(b"Dear reader, " * 500)

    with pytest.raises(StoreError, match="damaged or not a wellkept database"):
        Place("sqlite", f"sqlite:///{path}").open()
    assert path.read_bytes() == b"Dear reader, " * 500


def open_and_write(url: str, gate: Barrier, ids: Any) -> None:
    """What each process does, all at the same moment."""
    gate.wait()
    store = Place("", url).open()
    ids.put(store.add_memory(note("here", owner("ann", tenant="shared"))).id)
    store.close()


def opened_at_once(place: Place) -> list[int | None]:
    """How several processes end that open the same database at the same moment."""
    gate, ids = CLEAN.Barrier(PROCESSES, timeout=100), CLEAN.SimpleQueue()
    processes = [CLEAN.Process(target=open_and_write, args=(place.url, gate, ids)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    if codes == [0] * PROCESSES:
        assert sorted(ids.get() for _ in processes) == [f"m-{number}" for number in range(1, PROCESSES + 1)]
    return codes


def test_processes_that_open_a_new_database_at_once_all_succeed(new_place: Place) -> None:
    assert opened_at_once(new_place) == [0] * PROCESSES
    assert len(applied(new_place)) == len(load_migrations(new_place.name))


@pytest.fixture
def postgres_place(postgres_server: PostgresServer) -> Iterator[Place]:
    """A PostgreSQL database nobody has opened yet."""
    url = postgres_server.create_database()
    yield Place("postgres", url)
    postgres_server.drop_database(url)


def test_a_migration_that_waits_for_a_long_reader_blocks_nobody_else(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_place.open().close()
    know(monkeypatch, step(next_number(postgres_place), "ALTER TABLE memories ADD COLUMN extra INTEGER"))
    has_given_way = threading.Event()
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: has_given_way.set())
    monkeypatch.setattr(postgres, "time", clock)

    with psycopg.connect(postgres_place.url) as reader, ThreadPoolExecutor() as pool:
        reader.execute("SELECT 1 FROM memories")
        opened = pool.submit(lambda: postgres_place.open().close())
        assert has_given_way.wait(PATIENCE)
        # It gave up its place in the queue, so others are served at once and it still tries.
        run(postgres_place, "SELECT 1 FROM memories")
        run(postgres_place, "UPDATE memories SET importance = 0")
        assert not opened.done()
        reader.rollback()
        opened.result()

    run(postgres_place, "SELECT extra FROM memories")


def test_a_migration_that_builds_indexes_runs_each_statement_alone_and_continues(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_place.open().close()
    number = next_number(postgres_place)
    build = "CREATE INDEX CONCURRENTLY memories_extra ON memories (tenant_id, agent_id, importance)"
    drop = "DROP INDEX memories_by_kind"
    with monkeypatch.context() as broken:
        know(broken, step(number, build, drop, "ALTER TABLE no_such_table ADD COLUMN extra INTEGER"))
        with pytest.raises(StoreError):
            postgres_place.open()
    # Nothing before it was applied either, so the former version still starts.
    postgres_place.open().close()
    # Each was a transaction of its own, so no lock was held while the next one ran.
    names = {name for (name,) in run(postgres_place, "SELECT indexname FROM pg_indexes WHERE tablename = 'memories'")}
    assert "memories_extra" in names
    assert "memories_by_kind" not in names

    know(monkeypatch, step(number, build, drop))
    postgres_place.open().close()
    assert applied(postgres_place)[-1][0] == number


def test_a_failure_behind_a_concurrent_migration_names_the_command_that_finishes(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_place.open().close()
    number = next_number(postgres_place)
    build = "CREATE INDEX CONCURRENTLY memories_extra ON memories (tenant_id, agent_id, importance)"
    steps = [step(number, "CREATE TABLE extra (x INTEGER)"), step(number + 1, build)]
    with monkeypatch.context() as broken:
        know(broken, *steps, step(number + 2, "INSERT INTO no_such_table VALUES (1)"))
        with pytest.raises(
            StoreError,
            match=rf"42P01.* is at schema {number} now, .* run `wellkept admin db migrate --url",
        ):
            postgres_place.open()
    assert applied(postgres_place)[-1][0] == number

    know(monkeypatch, *steps, step(number + 2, "INSERT INTO extra VALUES (1)"))
    assert migrate_database(postgres_place.url) == [f"{each:04} step_{each}" for each in (number + 1, number + 2)]
    postgres_place.open().close()


def test_an_upgrade_finds_its_turn_between_writers(postgres_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ann = postgres_place.open(), owner()
    number = next_number(postgres_place)
    # Against the order in which a writer comes to these tables, and slowly.
    know(
        monkeypatch,
        step(number, "ALTER TABLE audit_lanes ADD COLUMN extra INTEGER"),
        step(number + 1, "CREATE TABLE extra AS SELECT 1 AS x FROM pg_sleep(0.1)"),
        step(number + 2, "ALTER TABLE memories ADD COLUMN extra INTEGER"),
        step(number + 3, "CREATE TABLE more (tenant_id TEXT, id TEXT, FOREIGN KEY (tenant_id, id) REFERENCES agents)"),
    )
    is_done, written = threading.Event(), []

    def write() -> None:
        while not is_done.is_set():
            with suppress(StoreBusy):
                written.append(store.add_memory(note("apples", ann)))

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write) for _ in range(3)]
        try:
            eventually(lambda: len(written) > 10)
            migrate_database(postgres_place.url)
        finally:
            is_done.set()
        for each in writers:
            each.result()
    store.close()
    assert applied(postgres_place)[-1][0] == number + 3


def test_a_process_that_waits_for_another_ones_upgrade_says_so(
    postgres_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres_place.url, autocommit=True) as other, ThreadPoolExecutor() as pool:
        other.execute("SELECT pg_advisory_lock(%s)", [postgres.MIGRATION_LOCK])
        opened = pool.submit(lambda: postgres_place.open().close())
        eventually(lambda: "Another process upgrades the schema" in caplog.text)
        assert not opened.done()
        other.execute("SELECT pg_advisory_unlock(%s)", [postgres.MIGRATION_LOCK])
        opened.result()


# --- conversations from before


def drop_summary(place: Place) -> None:
    for column in ("summary", "summarized_count"):
        run(place, f"ALTER TABLE chat_sessions DROP COLUMN {column}")


def filled(place: Place) -> Owner:
    """A store with one conversation, whose table then loses the summary's columns."""
    ann, store = owner("ann", tenant="shared"), place.open()
    store.add_session(session("s-1", ann))
    store.add_messages(ann, "s-1", messages("hi", "hello"))
    store.close()
    drop_summary(place)
    return ann


def test_tables_without_the_summary_columns_get_them_and_lose_nothing(new_place: Place) -> None:
    ann = filled(new_place)

    store = new_place.open()
    known = store.get_session(ann, "s-1")
    assert (known.summary, known.summarized_count, known.message_count) == ("", 0, 2)
    assert [each.content for each in store.list_messages(ann, "s-1")] == ["hi", "hello"]
    store.update_summary(ann, "s-1", "they greeted", covers=2, instead_of=0)
    store.close()

    again = new_place.open()
    assert again.get_session(ann, "s-1").summary == "they greeted"
    again.close()


def test_processes_that_open_such_a_database_at_once_all_succeed(new_place: Place) -> None:
    ann = filled(new_place)

    assert opened_at_once(new_place) == [0] * PROCESSES

    store = new_place.open()
    assert store.get_session(ann, "s-1").message_count == 2
    store.close()


OTHER_PROGRAM = {
    "sqlite": (
        "CREATE TABLE chat_sessions (id TEXT PRIMARY KEY, name TEXT, created_at TEXT, updated_at TEXT{summary})",
        "CREATE TABLE chat_messages (id TEXT PRIMARY KEY, session_id TEXT REFERENCES chat_sessions (id), role TEXT, "
        "content TEXT, created_at TEXT)",
    ),
    "postgres": (
        "CREATE TABLE chat_sessions (id UUID PRIMARY KEY, name TEXT, created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ"
        "{summary})",
        "CREATE TABLE chat_messages (id UUID PRIMARY KEY, session_id UUID REFERENCES chat_sessions (id), role TEXT, "
        "content TEXT, created_at TIMESTAMPTZ)",
    ),
}
CHATS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(3)]


def other_program(place: Place, *, has_summary: bool) -> None:
    """What a program kept before: two sessions, one of them with four messages and a tool's chatter."""
    more = ", summary TEXT NOT NULL DEFAULT '', summarized_count INTEGER NOT NULL DEFAULT 0" if has_summary else ""
    if place.name == "sqlite":
        Path(place.url.removeprefix("sqlite:///")).parent.mkdir()
    for statement in OTHER_PROGRAM[place.name]:
        run(place, statement.format(summary=more))
    for chat in CHATS[:2]:
        run(
            place,
            f"INSERT INTO chat_sessions (id, name, created_at, updated_at) VALUES ('{chat}', 'Chat', "
            "'2025-01-01 10:00:00', '2025-01-02 10:00:00')",
        )
    said = [("user", "one"), ("assistant", "two"), ("tool", "ls"), ("user", "three"), ("assistant", "four")]
    for number, (role, content) in enumerate(said):
        run(
            place,
            "INSERT INTO chat_messages (id, session_id, role, content, created_at) VALUES "
            f"('10000000-0000-0000-0000-00000000000{9 - number}', '{CHATS[0]}', '{role}', '{content}', "
            f"'2025-01-01 10:00:0{number // 2}')",
        )
    if has_summary:
        run(place, f"UPDATE chat_sessions SET summary = 'counted', summarized_count = 2 WHERE id = '{CHATS[0]}'")


@pytest.mark.parametrize("has_summary", [False, True])
def test_another_programs_conversations_are_taken_over_and_stay_as_they_were(
    new_place: Place, has_summary: bool
) -> None:
    other_program(new_place, has_summary=has_summary)
    default = owner("default", tenant="default")

    store = new_place.open()
    found = store.list_sessions(default)
    assert sorted(each.id for each in found) == CHATS[:2]
    first = store.get_session(default, CHATS[0])
    assert [(each.position, each.content) for each in store.list_messages(default, CHATS[0])] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
        (4, "four"),
    ]
    assert (first.summary, first.summarized_count, first.message_count) == (
        ("counted", 2, 4) if has_summary else ("", 0, 4)
    )
    assert first.created_at.isoformat() == "2025-01-01T10:00:00+00:00"
    assert store.add_messages(default, CHATS[0], messages("five"))[0].position == 5
    store.close()
    assert run(new_place, "SELECT count(*) FROM chat_messages_before_wellkept") == [(5,)]
    new_place.open().close()


def test_processes_that_take_over_another_programs_conversations_at_once_all_succeed(new_place: Place) -> None:
    other_program(new_place, has_summary=False)

    assert opened_at_once(new_place) == [0] * PROCESSES

    store = new_place.open()
    assert len(store.list_messages(owner("default", tenant="default"), CHATS[0])) == 4
    store.close()


def test_tables_that_cannot_be_read_as_conversations_are_left_alone(new_place: Place) -> None:
    if new_place.name == "sqlite":
        Path(new_place.url.removeprefix("sqlite:///")).parent.mkdir()
    run(new_place, "CREATE TABLE chat_sessions (number INTEGER)")

    with pytest.raises(SchemaMismatch, match="Rename it"):
        new_place.open()
    assert tables(new_place) == {"chat_sessions"}


# --- events from before


def test_chain_from_before_events_were_kept_as_text_is_whole_after(new_place: Place) -> None:
    store = new_place.open()
    for meta in ({"b": 1, "a": [0.5, None]}, {"words": "ü", "z": {"y": 1.1, "x": 2**70}}, {}):
        store.add_event(event("done", "acme", meta=meta))
    known = store.list_events("acme")
    store.close()
    if new_place.name == "postgres":
        run(
            new_place,
            "ALTER TABLE audit_log ALTER COLUMN meta DROP DEFAULT, ALTER COLUMN meta TYPE JSONB USING meta::jsonb, "
            "ALTER COLUMN meta SET DEFAULT '{}'",
        )
    run(new_place, "DELETE FROM schema_migrations WHERE number = 14")

    store = new_place.open()

    assert store.list_events("acme") == known
    assert store.verify_events("acme").is_intact
    store.add_event(event("done", "acme", meta={"x": 1e16}))
    report = store.verify_events("acme")
    assert (report.is_intact, report.events) == (True, 4)
    store.close()
