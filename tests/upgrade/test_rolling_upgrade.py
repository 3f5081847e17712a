"""Earlier versions and this one on the same database.

The first edition refuses, and nothing it wrote before is lost. The last release works on, beside this version.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, Self

import psycopg
import pytest

import wellkept
from tests.postgres_server import PostgresServer
from tests.waiting import eventually
from wellkept.program import FORMER_NAME
from wellkept.program import PROGRAM as PROGRAM_NAME

pytestmark = [pytest.mark.slow, pytest.mark.proves("T2")]

ROOT = Path(__file__).parents[2]
FIRST_EDITION = "16d1f2e"
"""Last commit of the first edition."""
LAST_RELEASE = "ab71ad7"
"""Commit of the last release, 0.2.0."""
DEPENDENCIES = ("snowballstemmer==3.1.1", "zstandard==0.25.0")
"""Dependencies of the first edition that this one does not have."""
PROGRAM = Path(__file__).with_name("program.py")
MANY = 7
"""More than five: then psycopg has prepared the statements, which the upgrade changes."""
MOST_NOTES = 400
"""Fewer than an agent keeps, so that none makes room for another."""

NEWER = rf"SchemaMismatch: .* used by a newer {FORMER_NAME}: run pip install -U {FORMER_NAME}"
"""How the first edition refuses a database of this one."""

Start = Callable[[], "Program"]
Change = tuple[str, str, tuple[Any, ...], dict[str, Any]]


class Refused(Exception):
    """The error that a program answered with."""


class Program:
    """A process that has the store open."""

    def __init__(self, url: str, sources: Sequence[Path], package: str, *options: str) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources))}
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM, url, "--package", package, *options],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def has_answered(self) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def wait_until_open(self) -> Self:
        self._read_answer()
        return self

    def call(self, target: str, method: str, *args: Any, **options: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([target, method, args, options]) + "\n")
        self._process.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> Any:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["result"]


@pytest.fixture(scope="session")
def first_edition(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Folders of the first edition and of its stemmer."""
    folder = tmp_path_factory.mktemp("first-edition")
    packages = folder / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", f"{packages}", *DEPENDENCIES]
    subprocess.run(install, check=True)
    return [extract_sources(FIRST_EDITION, folder), packages]


@pytest.fixture(scope="session")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the last release."""
    return extract_sources(LAST_RELEASE, tmp_path_factory.mktemp("last-release"))


def extract_sources(commit: str, folder: Path) -> Path:
    """Extract the sources of a commit and return their folder."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.fail(
            f"Commit {commit} is not in this clone. Fetch the whole history: git fetch --unshallow "
            f"({archive.stderr.decode().strip()})"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a new database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/memory.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    created = server.create_database()
    yield created
    server.drop_database(created)


@pytest.fixture
def start_old(url: str, first_edition: Sequence[Path]) -> Iterator[Start]:
    """Start the first edition."""
    with ExitStack() as running:
        yield lambda: running.enter_context(Program(url, first_edition, FORMER_NAME, "--first-edition"))


@pytest.fixture
def start_last(url: str, last_release: Path) -> Iterator[Start]:
    """Start the last release."""
    with ExitStack() as running:
        yield lambda: running.enter_context(Program(url, [last_release], FORMER_NAME))


@pytest.fixture
def start_new(url: str) -> Iterator[Start]:
    """Start this edition."""
    sources = [Path(wellkept.__file__).parents[1]]
    with ExitStack() as running:
        yield lambda: running.enter_context(Program(url, sources, PROGRAM_NAME))


def make_changes(name: str) -> list[Change]:
    """List one change of each kind, as arguments of `Program.call`."""
    return [
        ("agent", "remember", (f"The launches of {name} run on Tuesdays",), {}),
        (
            "agent",
            "log_turn",
            (f"session-{name}",),
            {"user": f"Is {name} ready?", "assistant": "Yes.", "remember": True},
        ),
        ("agent", "store_detail", (f"{name} has a long log\n" * 100,), {"description": f"Log of {name}"}),
        ("tenant", "ingest_text", (f"# Handbook\n\n{name} bills on Fridays.",), {"title": f"Handbook of {name}"}),
        ("tenant", "record_step", (), {"workflow": "deploy", "step": f"Test {name}", "output": "passed"}),
        ("audit", "record", ("custom.event", f"Looked at {name}"), {"meta": {"b": 1, "a": [0.5, name]}}),
        ("tenant", "add_key", ("write",), {"name": name}),
    ]


def write_all(program: Program, name: str, count: int) -> None:
    for number in range(count):
        for target, method, args, options in make_changes(f"{name} {number}"):
            program.call(target, method, *args, **options)


def read_records(program: Program) -> dict[str, Any]:
    """Read everything that both editions can show, without fields that only one of them has."""
    agent, tenant = ("agent", "tenant")
    sessions = program.call(agent, "sessions")
    details = program.call(agent, "list_details")
    documents = program.call(tenant, "list_documents")
    workflows = program.call(tenant, "list_workflows")
    return {
        "memories": pick(program.call(agent, "list", limit=200), "id", "kind", "text", "origin", "created_at"),
        "messages": [
            pick(program.call(agent, "messages", each["id"]), "position", "role", "content") for each in sessions
        ],
        "details": {each["key"]: program.call(agent, "read_detail", each["key"])["content"] for each in details},
        "documents": pick(documents, "id", "title"),
        "passages": [pick(program.call(tenant, "list_passages", each["id"]), "text") for each in documents],
        "steps": [
            pick(program.call(tenant, "list_steps", each["id"]), "position", "name", "output") for each in workflows
        ],
        "found": pick(program.call(agent, "search", "LAUNCHES of", limit=50), "id"),
        "knowledge": len(program.call(tenant, "search_knowledge", "bills Fridays", limit=50)),
    }


def recall_best(program: Program, query: str) -> str:
    """Return the text of the best hit."""
    return program.call("agent", "recall", query, limit=1)[0]["text"]


def read_events(program: Program) -> list[dict[str, Any]]:
    return pick(program.call("tenant", "audit_events", limit=100), "id", "action", "message", "meta", "hash")


def pick(records: Sequence[dict[str, Any]], *fields: str) -> list[dict[str, Any]]:
    """Keep only these fields of each record."""
    return [{field: each[field] for field in fields} for each in records]


def find_problems(program: Program) -> list[dict[str, Any]]:
    """Return the failed checks of `doctor` after the index was renewed. PostgreSQL runs without fsync in tests."""
    # Entries of the first edition lack the properties that recall goes by now.
    program.call("store", "mend_index")
    return [each for each in program.call("store", "check") if not each["is_ok"] and each["name"] != "durability"]


def test_an_upgrade_keeps_everything(start_old: Start, start_new: Start) -> None:
    old = start_old().wait_until_open()
    write_all(old, "old", MANY)
    records, events = read_records(old), read_events(old)
    assert (len(records["memories"]), len(records["found"]), records["knowledge"]) == (3 * MANY, MANY, MANY)

    new = start_new().wait_until_open()

    assert read_records(new) == records
    assert read_events(new) == events
    assert new.call("audit", "verify")["is_intact"]
    assert find_problems(new) == []


def test_an_open_first_edition_refuses_changes(start_old: Start, start_new: Start) -> None:
    old = start_old().wait_until_open()
    write_all(old, "old", MANY)
    before = read_records(old)

    new = start_new().wait_until_open()
    refusals = []
    for number in range(3):
        for target, method, args, options in make_changes(f"late {number}"):
            with pytest.raises(Refused) as refused:
                old.call(target, method, *args, **options)
            refusals.append(str(refused.value))
        write_all(new, f"new {number}", 1)

    records = read_records(new)
    assert all("lacks a table or column" in each or "has no column named" in each for each in refusals), refusals
    assert "late" not in json.dumps([records, read_events(new)])
    assert [each for each in records["memories"] if each in before["memories"]] == before["memories"]
    assert len({each["id"] for each in records["memories"]}) == len(records["memories"]) == 3 * (MANY + 3)
    # Reading does no harm, and each finds what the other wrote.
    assert read_records(old) == records
    assert recall_best(old, "When do the launches of new 2 run?") == "The launches of new 2 0 run on Tuesdays"
    assert recall_best(new, "When do the launches of old 5 run?") == "The launches of old 5 run on Tuesdays"
    assert new.call("audit", "verify")["is_intact"]
    assert find_problems(new) == []


def test_an_open_first_edition_accepts_no_key(start_old: Start, start_new: Start) -> None:
    old = start_old().wait_until_open()
    issued = old.call("tenant", "add_key", "write")["key"]
    assert old.call("store", "verify_key", issued)["scope"] == "write"

    new = start_new().wait_until_open()
    limited = new.call("tenant", "add_key", "write", agents=["other"], trust="tool")["key"]

    # The first edition would ignore the limits.
    for key in (limited, new.call("tenant", "add_key", "read")["key"]):
        with pytest.raises(Refused, match="Unauthorized"):
            old.call("store", "verify_key", key)
    with pytest.raises(Refused, match="lacks a table or column"):
        old.call("store", "verify_key", issued)
    assert new.call("store", "verify_key", issued)["agents"] == []
    assert new.call("store", "verify_key", limited)["agents"] == ["other"]


def test_a_first_edition_that_starts_later_names_the_upgrade(start_old: Start, start_new: Start) -> None:
    start_new().wait_until_open()

    with pytest.raises(Refused, match=NEWER):
        start_old().wait_until_open()


def test_an_upgrade_between_two_writes_loses_neither(start_old: Start, start_new: Start) -> None:
    old = start_old().wait_until_open()
    stored: list[tuple[str, str]] = []
    refused: list[str] = []

    def remember() -> None:
        text = f"Launch {len(stored) + len(refused)} is on a Tuesday"
        try:
            stored.append((old.call("agent", "remember", text)["id"], text))
        except Refused:
            refused.append(text)

    remember()
    new = start_new()
    while not new.has_answered() and len(stored) < MOST_NOTES:
        remember()
    new.wait_until_open()
    remember()

    found = new.call("agent", "list", limit=MOST_NOTES + 10)
    assert refused
    assert sorted((each["id"], each["text"]) for each in found) == sorted(stored)
    assert new.call("audit", "verify")["is_intact"]
    assert find_problems(new) == []


REFUSE = """
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN IF current_query() LIKE '%{}%' THEN RAISE 'refused on purpose' USING ERRCODE = '0A000'; END IF; END $$;
CREATE EVENT TRIGGER refusing ON ddl_command_start EXECUTE FUNCTION refuse();
"""


@contextmanager
def failing_at(admin_url: str, text: str) -> Iterator[None]:
    """Let the server refuse the statement with this text."""
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(REFUSE.format(text))
        yield
        admin.execute("DROP EVENT TRIGGER refusing; DROP FUNCTION refuse")


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize("text", ["TABLE idempotency_keys", "api_keys_trust_check", "TYPE TEXT USING meta", "item_key"])
def test_a_failed_upgrade_leaves_the_database_to_the_first_edition(
    url: str, text: str, start_old: Start, start_new: Start, postgres_server: PostgresServer
) -> None:
    old = start_old().wait_until_open()
    write_all(old, "old", 1)
    records = read_records(old)

    with failing_at(postgres_server.admin_url(url), text):
        with pytest.raises(Refused, match=r"refused on purpose\. .* at schema 10 as before"):
            start_new().wait_until_open()
        restarted = start_old().wait_until_open()
        assert read_records(restarted) == records
        write_all(restarted, "after", 1)
        write_all(old, "after, too", 1)
        records = read_records(old)

    new = start_new().wait_until_open()
    assert read_records(new) == records
    assert find_problems(new) == []


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "text", ["CONCURRENTLY IF NOT EXISTS memories_by_item_key", "TABLE console_logins", "recalls_by_day"]
)
def test_a_failure_after_the_first_edition_is_refused_names_the_command_that_finishes(
    url: str, text: str, start_old: Start, start_new: Start, postgres_server: PostgresServer
) -> None:
    old = start_old().wait_until_open()
    write_all(old, "old", 1)
    records = read_records(old)

    with failing_at(postgres_server.admin_url(url), text):
        for _ in range(2):
            with pytest.raises(Refused, match=r"refused on purpose\. ") as refused:
                start_new().wait_until_open()
            assert "run `wellkept admin db migrate --url …`" in str(refused.value)
        with pytest.raises(Refused, match=NEWER):
            start_old().wait_until_open()

    command = [sys.executable, "-m", "wellkept", "admin", "db", "migrate", "--url", url]
    subprocess.run(command, check=True, capture_output=True)
    new = start_new().wait_until_open()
    assert read_records(new) == records
    assert find_problems(new) == []


def test_the_last_release_works_beside_this_version(url: str, start_last: Start, start_new: Start) -> None:
    last = start_last().wait_until_open()
    write_all(last, "before", MANY)

    new = start_new().wait_until_open()
    for number in range(3):
        write_all(last, f"apollo{number}", 1)
        write_all(new, f"hermes{number}", 1)
        # Each finds at once what the other has just written.
        for program in (last, new):
            for name in (f"apollo{number}", f"hermes{number}"):
                assert recall_best(program, f"When do the launches of {name} run?").startswith(
                    f"The launches of {name}"
                )

    records = read_records(new)
    if url.startswith("sqlite"):
        # The last release looks for long texts in files, and this version keeps them in rows.
        last.call("agent", "read_detail", next(key for key in records["details"] if "apollo2" in key))
        with pytest.raises(Refused, match="is missing from the store"):
            last.call("agent", "read_detail", next(key for key in records["details"] if "hermes2" in key))
        last = start_new().wait_until_open()
    assert records == read_records(last)
    assert len({each["id"] for each in records["memories"]}) == len(records["memories"]) == 3 * (MANY + 6)
    assert read_events(new) == read_events(last)
    assert [program.call("audit", "verify")["is_intact"] for program in (last, new)] == [True, True]
    assert find_problems(new) == []


def test_keys_of_the_last_release_hold_in_both_versions(start_last: Start, start_new: Start) -> None:
    last, new = (start().wait_until_open() for start in (start_last, start_new))
    for revoking, other in ((last, new), (new, last)):
        issued = last.call("tenant", "add_key", "write", agents=["other"])
        assert new.call("store", "verify_key", issued["key"])["agents"] == ["other"]
        revoking.call("tenant", "revoke_key", issued["record"]["id"])

        def is_refused(key: str = issued["key"], other: Program = other) -> bool:
            try:
                other.call("store", "verify_key", key)
            except Refused:
                return True
            return False

        eventually(is_refused)


def test_the_last_release_knows_no_key_of_the_new_name(start_last: Start, start_new: Start) -> None:
    last, new = (start().wait_until_open() for start in (start_last, start_new))
    key = new.call("tenant", "add_key", "write")["key"]

    with pytest.raises(Refused, match="Unauthorized"):
        last.call("store", "verify_key", key)


def test_the_last_release_writes_on_during_an_upgrade(start_last: Start, start_new: Start) -> None:
    last = start_last().wait_until_open()
    stored: list[tuple[str, str]] = []

    def remember() -> None:
        text = f"Launch {len(stored)} is on a Tuesday"
        stored.append((last.call("agent", "remember", text)["id"], text))

    remember()
    new = start_new()
    while not new.has_answered() and len(stored) < MOST_NOTES:
        remember()
    new.wait_until_open()
    remember()

    found = new.call("agent", "list", limit=MOST_NOTES + 10)
    assert sorted((each["id"], each["text"]) for each in found) == sorted(stored)
    assert new.call("audit", "verify")["is_intact"]
