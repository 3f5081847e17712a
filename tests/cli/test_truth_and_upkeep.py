"""Corrections, doubles, approval, the audit log, secrets that got in, and a database cluster."""

from __future__ import annotations

from pathlib import Path

import apsw
import psycopg

from tests.cli.program import Program
from tests.postgres_server import PostgresServer


def test_a_correction_replaces_and_the_past_can_be_read(program: Program) -> None:
    first = program("remember", "The office is in Lisbon", "--json").json
    second = program("remember", "The office is in Porto", "--supersedes", "m-1", "--json").json
    assert (second["supersedes"], second["similar"]) == ("m-1", [])

    then = ["--as-of", first["created_at"]]
    past, recalled, ended, much_later = program.all(
        ["memory", "list", *then, "--json"],
        ["recall", "where is the office?", *then, "--json"],
        ["memory", "list", "--state", "expired", "--json"],
        ["memory", "list", "--as-of", "2096-01-31"],
    )
    assert [(each["id"], each["state"]) for each in past.json["items"]] == [("m-1", "live")]
    assert [each["id"] for each in recalled.json["hits"]] == ["m-1"]
    assert [(each["id"], each["valid_to"]) for each in ended.json["items"]] == [("m-1", second["created_at"])]
    assert much_later.out.startswith("m-2\t")


def test_what_is_there_already_is_not_doubled_and_what_is_alike_is_named(program: Program) -> None:
    first = program.ok("remember", "Prefers tabs over spaces")
    assert program.ok("remember", "prefers  TABS over spaces") == first

    alike = program("remember", "Prefers tabs over spaces!")
    assert alike.out.startswith("m-2\tnote\t")
    assert alike.err == "similar: m-1 Prefers tabs over spaces; to replace it use --supersedes m-1\n"
    assert alike.err.strip() in program.on_terminal(200, "remember", "Prefers tabs over spaces!").out
    in_json = program("remember", "Prefers tabs over spaces?", "--json").json["similar"]
    assert {each["id"]: each["text"] for each in in_json} == {
        "m-1": "Prefers tabs over spaces",
        "m-2": "Prefers tabs over spaces!",
    }


def test_an_edit_of_a_stale_version_is_refused(program: Program) -> None:
    program.ok("remember", "Prefers tabs")
    assert program("memory", "edit", "m-1", "--text", "Prefers spaces", "--version", "1", "--json").json["version"] == 2

    stale = program("memory", "edit", "m-1", "--text", "Prefers both", "--version", "1")

    assert (stale.code, stale.err) == (1, "This memory is now at version 2, not 1; read it again.\n")


def test_what_waits_is_reviewed_and_approved(filled: Program) -> None:
    lines = filled.ok("memory", "review", "--agent", "bob").splitlines()
    assert [line.split("\t")[3] for line in lines] == ["low trust", "secret: aws-access-key", "secret: aws-access-key"]
    (held, *_) = filled("memory", "review", "--agent", "bob", "--json").json["items"]
    assert (held["id"], held["state"], held["flag"]) == ("m-3", "held", "low trust")

    approved = filled("memory", "review", "--approve", "m-3", "--agent", "bob", "--json").json
    assert (approved["state"], approved["flag"]) == ("live", None)


def test_notes_that_came_with_the_workspace_are_approved(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "cloned" / ".aegis" / "memory" / "memories.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"id":"m-4","text":"Deploys go to Frankfurt","ts":"2026-02-26T12:00:00Z"}\n')
    there = {"WELLKEPT_WORKSPACE": str(tmp_path / "cloned")}

    review = program("memory", "review", **there).out
    assert review.split("\t")[3:] == ["came with the workspace", "Deploys go to Frankfurt\n"]
    assert program("memory", "review", "--approve", "m-4", "--approve-workspace").code == 2
    assert program("memory", "review", "--approve-workspace", "--json", **there).json == {"approved": 1}
    assert program("memory", "review", **there).out == ""


def test_secrets_that_got_in_are_found_and_can_be_allowed(filled: Program) -> None:
    found = filled.ok("admin", "secrets", "scan")
    assert found == "memories\tbob\tm-1\taws-access-key\nmemories\tbob\tm-2\taws-access-key\n"
    redacted = filled("remember", "Its key is AKIAQYLPMN5HIEXAMP42", "--secrets", "redact", "--json").json
    assert redacted["text"] == "Its key is [secret removed: aws-access-key]"
    # The tests that follow use the same store.
    filled.ok("memory", "forget", redacted["id"])
    assert filled("admin", "secrets", "allow", "-", "--json", given="AKIAQYLPMN5HIEXAMP42\n").json == {"allowed": 1}
    assert filled("admin", "secrets", "scan", "--json").json["items"] == []


def test_notes_for_a_prompt(filled: Program) -> None:
    block = "[Memories]\n- (m-1, preference) Prefers two spaces over tabs"
    lines, document, nothing = filled.all(
        ["context", "--notes", "tabs?"],
        ["context", "--notes", "tabs?", "--json"],
        ["context", "--notes", "tabs?", "--agent", "nobody"],
    )
    assert lines.out == f"{block}\n"
    assert document.json == {"text": block}
    assert (nothing.out, nothing.code) == ("", 0)


def test_maintenance_reports(filled: Program) -> None:
    report = filled("admin", "maintain", "--json").json

    assert set(report) >= set("agents examined archived expired faded over_quota embedded embedding_problem".split())
    assert (report["agents"], report["examined"], report["archived"]) == (2, 1, 0)


def test_the_audit_log_is_shown_and_checked(program: Program) -> None:
    seed = "import wellkept\nwith wellkept.Wellkept() as store: [store.agent().remember(text) for text in '123']"
    assert program.python(seed).code == 0

    page, older, whole, lines = program.all(
        ["data", "audit", "--limit", "2", "--json"],
        ["data", "audit", "--before", "2", "--json"],
        ["data", "audit", "--verify", "--json"],
        ["data", "audit", "NOTE M-1"],
    )
    assert ([each["id"] for each in page.json["items"]], page.json["next_cursor"]) == ([3, 2], 2)
    assert [each["id"] for each in older.json["items"]] == [1]
    assert page.json["items"][0]["action"] == "memory.add"
    head = whole.json["head"]
    assert (whole.json["ok"], whole.json["events"], head["id"]) == (True, 3, 3)
    number, _time, action, agent, message, _actor = lines.out.rstrip("\n").split("\t")
    assert (number, action, agent, message) == ("1", "memory.add", "default", "Note m-1 was stored.")

    connection = apsw.Connection(str(program.folder / "notes.db"))
    connection.execute("DELETE FROM audit_log WHERE id = 2")
    connection.close()
    broken = program("data", "audit", "--verify")
    assert (broken.code, broken.out, broken.err) == (1, f"Event 2 is missing. Head: 3 {head['hash']}\n", "")


def test_a_database_without_citus_cannot_be_distributed(program: Program, postgres_url: str) -> None:
    ended = program("admin", "db", "distribute", "--url", postgres_url)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("This database has no Citus.")


def test_what_was_distributed_is_listed(program: Program, postgres_url: str) -> None:
    code = """
import sys, types
citus = sys.modules["wellkept.store.postgres.citus"] = types.ModuleType("citus")
citus.distribute = lambda url: ["tenants", "agents"] if url.startswith("postgresql://") else []
from wellkept.cli import main
main()
"""
    ended = program.python(code, "admin", "db", "distribute", "--url", postgres_url)

    assert (ended.code, ended.out) == (0, "tenants\nagents\n")


def test_memories_are_filtered_and_restored(program: Program) -> None:
    program.ok("remember", "The office is in Lisbon", "--session", "s-1", "--scope", "user")
    program.ok("remember", "The office has a view")
    filtered, found, later, live, nothing, mixed, wrong = program.all(
        ["memory", "list", "--session", "s-1"],
        ["memory", "search", "office", "--where", "scope = user and origin = user"],
        ["memory", "list", "--where", "created_at >= 2096-01-31"],
        ["memory", "restore", "m-1", "m-2", "--json"],
        ["memory", "restore", "--state", "archived"],
        ["memory", "restore", "m-1", "backup.tar.zst"],
        ["memory", "restore", "m-1", "--state", "archived"],
    )
    assert filtered.out.startswith("m-1\t")
    assert filtered.out.count("\n") == 1
    assert found.out == filtered.out
    assert later.out == ""
    assert [each["id"] for each in live.json["items"]] == ["m-1", "m-2"]
    assert nothing.code == 0
    assert "There is no such memory." in mixed.err
    assert "not by both" in wrong.err


def test_a_database_gets_two_roles_and_shows_no_password(program: Program, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database(has_tables=True)
    admin, owner = postgres_server.admin_url(url), url.replace("app:app@", "cli_owner@")
    secret = program.folder / "secret.txt"
    secret.write_text("hidden-7\n")
    chosen = ("--owner", "cli_owner", "--application", "cli_app", "--owner-password-file", str(secret))
    try:
        shown = program.ok("admin", "db", "init", "--url", admin, *chosen, "--dry-run")
        done = program.ok("admin", "db", "init", "--url", admin, *chosen)
        behind = program.ok("admin", "db", "migrate", "--url", owner)
        as_owner = program("memory", "list", "--url", owner)
        listed = program("memory", "list", "--url", url.replace("app:app@", "cli_app@"))
        as_application = program("admin", "db", "migrate", "--url", url.replace("app:app@", "cli_app@"))
    finally:
        postgres_server.drop_database(url)
        with psycopg.connect(postgres_server.admin_url("postgres"), autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS cli_owner, cli_app")

    assert 'CREATE ROLE "cli_owner" LOGIN' in shown
    assert 'ALTER TABLE "memories" NO FORCE ROW LEVEL SECURITY;\n' in shown
    assert "ALTER ROLE \"cli_owner\" PASSWORD '…';" in done
    assert "hidden" not in shown + done
    assert "SCRAM" not in shown + done
    assert (behind, listed.code) == ("", 0)
    assert (as_owner.code, as_application.code) == (1, 1)
    assert "Serve as the application role" in as_owner.err
    assert "its tables belong to cli_owner" in as_application.err
    missing = program("admin", "db", "init", "--url", admin, "--owner-password-file", "nowhere.txt")
    assert (missing.code, missing.err) == (1, "The password file nowhere.txt cannot be read as UTF-8 text.\n")


def test_a_note_is_forgotten_by_words_and_restored(program: Program) -> None:
    program.ok("remember", "Keeps kosher")
    program.ok("remember", "My phone number is 555 0182")

    named, hidden = program.all(
        ["memory", "forget", "--about", "his diet"], ["memory", "forget", "--about", "my phone number", "--json"]
    )
    assert ("m-1" in named.out, "Which of these" in named.err) == (True, True)
    assert [each["id"] for each in hidden.json["forgotten"]] == ["m-2"]
    program.ok("memory", "restore", "m-2")
    assert len(program("memory", "list", "--json").json["items"]) == 2
