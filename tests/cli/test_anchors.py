"""`wellkept data audit --anchor`: heads kept outside the store, and what they show later."""

from __future__ import annotations

import json
import stat

import apsw

from tests.cli.program import Program
from wellkept.history.rules_history import START, event_hash
from wellkept.model import AuditEvent
from wellkept.store.tables.rows import event_from

KEY = "correct horse battery staple"
SEED = """
import wellkept
with wellkept.Wellkept(settings=wellkept.Settings.load(flags={"audit_key": KEY})) as store:
    for tenant in ("default", "acme"):
        for text in "123":
            store.agent("ann", tenant).remember(text)
"""


def seeded(program: Program, key: str = "") -> apsw.Connection:
    ended = program.python(f"KEY = {key!r}{SEED}")
    assert ended.code == 0, ended.err
    return apsw.Connection(str(program.folder / "notes.db"))


def rewrite(connection: apsw.Connection, tenant: str) -> None:
    """Change the second event and compute the chain anew, so that it fits."""
    columns = "tenant_id, id, at, action, agent_id, message, meta, previous_hash, hash"
    rows = connection.execute(f"SELECT {columns} FROM audit_log WHERE tenant_id = ? ORDER BY id", [tenant]).fetchall()
    before = START
    for row in rows:
        message = "Nothing." if row[1] == 2 else row[5]
        event: AuditEvent = event_from([*row[:5], message, *row[6:]])
        hash = event_hash(event, before)
        connection.execute(
            "UPDATE audit_log SET message = ?, folded_message = lower(?), previous_hash = ?, hash = ? "
            "WHERE tenant_id = ? AND id = ?",
            [message, message, before, hash, tenant, row[1]],
        )
        before = hash
    connection.execute("UPDATE shelves SET last_hash = ? WHERE tenant_id = ? AND shelf = 'audit'", [before, tenant])


def test_heads_are_kept_and_show_a_rewritten_log(program: Program) -> None:
    connection, file = seeded(program), program.folder / "heads.jsonl"

    first = program("data", "audit", "--anchor", "heads.jsonl")
    kept = [json.loads(line) for line in file.read_text().splitlines()]

    assert first.code == 0, first.err
    assert [(each["tenant"], each["id"], sorted(each)) for each in kept] == [
        (tenant, 3, ["at", "hash", "id", "tenant"]) for tenant in ("acme", "default")
    ]
    assert first.out.splitlines() == [f"{each['tenant']}\t3\t{each['hash']}" for each in kept]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    again = program("data", "audit", "--anchor", "heads.jsonl", "--tenant", "acme", "--json").json
    assert ([each["tenant"] for each in again["heads"]], again["notes"]) == (["acme"], [])
    assert len(file.read_text().splitlines()) == 3

    rewrite(connection, "acme")
    before = file.read_bytes()
    whole, changed = (
        program("data", "audit", "--verify", "--tenant", "acme"),
        program("data", "audit", "--anchor", "heads.jsonl"),
    )
    assert whole.out.startswith("The log is whole: 3 events.")
    assert (changed.code, changed.out) == (1, "")
    assert "acme: Event 3 has a different hash than recorded" in changed.err
    assert "default:" not in changed.err
    assert file.read_bytes() == before


def test_heads_show_a_log_that_was_cut_short_or_removed(program: Program) -> None:
    connection = seeded(program)
    assert program("data", "audit", "--anchor", "heads.jsonl").code == 0
    ((hash,),) = connection.execute("SELECT hash FROM audit_log WHERE tenant_id = 'acme' AND id = 2")
    connection.execute("DELETE FROM audit_log WHERE tenant_id = 'acme' AND id = 3")
    connection.execute("UPDATE shelves SET last_id = 2, last_hash = ? WHERE tenant_id = 'acme'", [hash])
    for table in ("audit_log", "shelves", "tenants"):
        connection.execute(f"DELETE FROM {table} WHERE tenant_id = 'default'")

    ended = program("data", "audit", "--anchor", "heads.jsonl")

    assert ended.code == 1
    assert "acme: Event 3 was recorded as the last one and is missing." in ended.err
    assert "default: Event 3 was recorded as the last one and is missing." in ended.err


def test_file_that_holds_something_else_is_left_alone(program: Program) -> None:
    seeded(program)
    file = program.folder / "heads.jsonl"
    for content in ("not a head\n", '{"tenant": 7, "id": 1, "hash": "", "at": "2026-01-01"}\n', "[1]\n"):
        file.write_text(content)
        ended = program("data", "audit", "--anchor", "heads.jsonl")
        assert (ended.code, ended.out, file.read_text()) == (1, "", content)
        assert "Line 1 of heads.jsonl is not a head" in ended.err


def test_key_shows_a_rewritten_log_and_is_never_shown(program: Program) -> None:
    connection = seeded(program, KEY)
    keyed = program("data", "audit", "--verify", WELLKEPT_AUDIT_KEY=KEY)
    assert keyed.out.startswith("The log is whole: 3 events. Keyed from event 1 on. Head: 3 hmac:")
    without = program("remember", "four", "--agent", "ann")
    assert (without.code, "audit_key" in without.err) == (1, True)

    rewrite(connection, "default")
    changed = program("data", "audit", "--verify", WELLKEPT_AUDIT_KEY=KEY)
    doctor = program("doctor", WELLKEPT_AUDIT_KEY=KEY)
    shown = program("admin", "settings", "--json", WELLKEPT_AUDIT_KEY=KEY)
    short = program("data", "audit", WELLKEPT_AUDIT_KEY="hunter2")

    assert (changed.code, "No event is keyed" in changed.out) == (1, True)
    assert "No event is keyed" in doctor.out
    (row,) = [each for each in shown.json["items"] if each["name"] == "audit_key"]
    assert (row["value"], row["source"]) == ("***", "environment")
    assert (short.code, "16 characters" in short.err, "hunter2" in short.err) == (1, True, False)
    for ended in (keyed, without, changed, doctor, shown):
        assert KEY not in ended.out + ended.err
