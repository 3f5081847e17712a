"""What each command does, in lines and in JSON."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.program import Program
from tests.postgres_server import PostgresServer
from tests.providers.test_openai_embedder import Endpoint, status, vectors
from wellkept import Settings, Wellkept
from wellkept.cli.commands.doctor import _sqlite_checks
from wellkept.testing.fake_model import ModelHandler

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MEMORY_KEYS = set(
    "id kind text tags scope role session_id importance category origin created_at updated_at expires_at "
    "last_retrieved_at archived_at state version supersedes valid_from valid_to held_at flag user metadata "
    "namespace item_key fact sources ended_by ended_as forgotten_at".split()
)


def test_lines_have_their_fields_in_order(program: Program) -> None:
    first = program.ok("remember", "Prefers tabs over spaces", "--tag", "style", "--tag", "code")
    second = program.ok("remember", "-", "--kind", "core", given="\ufeffI am careful\r\nwith money\n")

    id, kind, time, tags, text = first.rstrip("\n").split("\t")
    assert (id, kind, tags, text) == ("m-1", "note", "style,code", "Prefers tabs over spaces")
    assert TIME.fullmatch(time)
    assert second.endswith("\t-\tI am careful with money\n")

    listed, of_kind, found, nothing = program.all(
        ["memory", "list"],
        ["memory", "list", "--kind", "core"],
        ["memory", "search", "TABS", "--tag", "code", "--kind", "note"],
        ["memory", "search", "nowhere"],
    )
    assert listed.out == second + first
    assert of_kind.out == second
    assert found.out == first
    assert (nothing.out, nothing.code) == ("", 0)
    assert nothing.err.startswith("No memory contains that; nearest by meaning: m-")


def test_the_same_in_json(program: Program) -> None:
    options = "--json --kind episode --tag a --scope user --importance 0.25 --session s-1 --category incident".split()
    memory = program("remember", "Größe 東京 🎉", *options).json
    assert memory.pop("similar") == []
    assert set(memory) == MEMORY_KEYS
    assert memory["text"] == "Größe 東京 🎉"
    given = {name: memory[name] for name in ("kind", "tags", "scope", "importance", "session_id", "category")}
    assert given == {
        "kind": "episode",
        "tags": ["a"],
        "scope": "user",
        "importance": 0.25,
        "session_id": "s-1",
        "category": "incident",
    }
    assert TIME.fullmatch(memory["created_at"])
    assert (memory["state"], memory["version"], memory["updated_at"]) == ("live", 1, None)

    edited = program("memory", "edit", "m-1", "--importance", "1", "--tag", "b", "--json").json
    assert edited | {"updated_at": None} == memory | {"importance": 1.0, "tags": ["b"], "version": 2}

    listed, page, shown, found, agents = (
        ended.json
        for ended in program.all(
            ["memory", "list", "--json"],
            ["memory", "list", "--limit", "1", "--json"],
            ["memory", "show", "m-1", "--json"],
            ["memory", "search", "größe", "--json"],
            ["admin", "agents", "list", "--json"],
        )
    )
    # After the others: it marks the memory as retrieved.
    recalled = program("recall", "東京", "--explain", "--json").json
    assert listed == {"items": [edited], "next_cursor": None}
    assert page["next_cursor"] == "m-1"
    assert set(shown) == set(memory) | {"history"}
    assert [(each["version"], each["tags"], each["importance"]) for each in shown["history"]] == [(1, ["a"], 0.25)]
    assert found["items"] == [edited]
    (hit,) = recalled["hits"]
    keys = "source id text score relevance weak parts created_at agent_id kind tags weights explain"
    assert set(hit) == set(keys.split())
    assert set(hit["parts"]) == {"similarity", "recency", "importance", "source"}
    (agent,) = agents["items"]
    assert agent["memories_count"] == {"core": 0, "journal": 0, "note": 0, "episode": 1, "item": 0}
    assert program("memory", "forget", "m-1", "--json").json == {"ok": True, "id": "m-1"}


def test_agents_and_tenants_are_kept_apart(program: Program) -> None:
    program.ok("remember", "Ann's", "--agent", "ann")
    program.ok("remember", "Bob's", "--agent", "bob", "--tenant", "acme")

    anns, bobs, agents, named = program.all(
        ["memory", "list", "--agent", "ann"],
        ["memory", "list", "--agent", "bob"],
        ["admin", "agents", "list"],
        ["admin", "agents", "list", "--tenant", "acme"],
    )
    assert anns.out.endswith("Ann's\n")
    assert bobs.out == ""
    assert agents.out == "ann\t0 core, 0 journal, 1 note, 0 episode, 0 item\tann\n"
    assert named.out.startswith("bob\t")


def test_processes_that_write_at_once_lose_nothing(program: Program) -> None:
    ended = program.all(*(["remember", f"fact {number}"] for number in range(4)))

    assert [(each.code, each.err) for each in ended] == [(0, "")] * 4
    assert sorted(each.out.split("\t")[0] for each in ended) == ["m-1", "m-2", "m-3", "m-4"]


def test_settings_show_where_they_come_from_and_no_secrets(program: Program) -> None:
    (program.folder / "wellkept.toml").write_text("busy_timeout = 3\npool_size = 7\n")
    url = "postgresql://app:hunter2@db/memories"
    given = {"OPENAI_API_KEY": "sk-hunter2", "WELLKEPT_POOL_SIZE": "8"}
    shown = program("admin", "settings", "--json", "--url", url, **given)

    items = {each["name"]: each for each in shown.json["items"]}
    assert "hunter2" not in shown.out
    shown_of = ("url", "tenant", "agent", "embedder", "openai_api_key", "openai_base_url", "busy_timeout")
    assert {name: (items[name]["value"], items[name]["source"]) for name in shown_of} == {
        "url": ("postgresql://app:***@db/memories", "flag"),
        "tenant": ("default", "default"),
        "agent": ("default", "default"),
        "embedder": ("minilm", "default"),
        "openai_api_key": ("***", "environment"),
        "openai_base_url": ("https://api.openai.com/v1", "default"),
        "busy_timeout": (3.0, "file"),
    }
    lines = program.ok("admin", "settings", **given).splitlines()
    assert "openai_api_key\t***\tenvironment" in lines
    assert "pool_size\t8\tenvironment" in lines


def test_doctor_finds_what_is_broken_and_reembed_mends_it(program: Program) -> None:
    program.ok("remember", "Made without an embedder", WELLKEPT_EMBEDDER="off")
    waiting = program("doctor")
    assert waiting.code == 0
    assert "✓ waiting: 1 text has no vector yet" in waiting.out

    other = """
import numpy, wellkept
class Other:
    name, dimensions = "other", 3
    def embed(self, texts): return numpy.ones((len(texts), 3))
with wellkept.Wellkept(embedder=Other(), replace_embedder=True) as store:
    store.embedding.embed_waiting()
"""
    assert program.python(other).code == 0
    broken = program("doctor", "--json")
    assert (broken.code, broken.json["ok"], broken.err) == (1, False, "")
    assert [each["name"] for each in broken.json["checks"] if not each["ok"]] == ["vectors"]
    assert program("admin", "reembed", "--json").json["embedded"] == 1
    healthy = program("doctor", "--json").json
    assert healthy["ok"] is True
    names = [each["name"] for each in healthy["checks"]]
    about_the_store = ["store", "schema", "durability", "database", "index", "details", "audit log"]
    expected = ["wellkept", "settings", "sqlite", "folder", "disk", *about_the_store, "embedder", "vectors", "waiting"]
    expected.append("maintenance")
    assert names == expected
    with apsw.Connection(str(program.folder / "notes.db")) as file:
        file.execute("DELETE FROM memory_index")
    gaps = program("doctor")
    assert (gaps.code, "texts missing from it: 1" in gaps.out) == (1, True)
    assert program.ok("admin", "reembed", WELLKEPT_EMBEDDER="off") == "Mended 1 entry of the search index\n"
    with apsw.Connection(str(program.folder / "notes.db")) as file:
        file.execute("UPDATE memory_index SET terms = x'0100000078563412'")
    wrong = program("doctor")
    assert (wrong.code, "other words than their texts: 1 (default/m-1)" in wrong.out) == (1, True)
    assert program.ok("admin", "reembed").splitlines()[0] == "Mended 1 entry of the search index"
    assert program("doctor").code == 0
    quick = program("doctor", "--quick", "--json", OPENAI_MODEL="small", OPENAI_BASE_URL="http://127.0.0.1:1/v1").json
    assert [each["name"] for each in quick["checks"]] == [name for name in [*expected, "model"] if name != "audit log"]
    assert quick["ok"] is True


def test_doctor_names_the_text_an_embedder_refuses(program: Program) -> None:
    program.ok("remember", "A cursed text", WELLKEPT_EMBEDDER="off")
    program.ok("remember", "A text like others", WELLKEPT_EMBEDDER="off")

    def refuses(handler: ModelHandler, body: Any) -> None:
        (status(400) if any("cursed" in text for text in body["input"]) else vectors)(handler, body)

    with Endpoint() as endpoint:
        endpoint.usual = refuses
        known = {"WELLKEPT_EMBEDDER": "openai:small", "OPENAI_BASE_URL": endpoint.url}
        embedded = program("admin", "reembed", "--json", **known).json
        found = program("doctor", "--quick", "--json", **known)

    assert embedded["embedded"] == 1
    assert found.code == 1
    (refused,) = (each for each in found.json["checks"] if each["name"] == "refused")
    assert refused["says"].startswith("default default m-1: The embedding endpoint at ")
    assert refused["says"].endswith("answered with status 400.")
    assert "cursed" not in found.out


def test_doctor_asks_the_model_if_told_to_and_names_what_was_damaged(program: Program) -> None:
    program.ok("remember", "Prefers tabs")
    (program.folder / "build.log").write_text("all is well\n")
    program.ok("memory", "details", "store", "build.log")
    connection = apsw.Connection(str(program.folder / "notes.db"))
    connection.execute("DELETE FROM detail_chunks")
    connection.close()

    ended = program("doctor", "--online", OPENAI_MODEL="small", OPENAI_BASE_URL="http://127.0.0.1:1/v1")

    assert ended.code == 1
    wrong = [line for line in ended.out.splitlines() if not line.startswith("✓")]
    assert wrong[0].startswith("✗ details: 1 of 1 are missing or damaged: default/build-log-")
    assert wrong[1].startswith("  Restore them from a backup")
    assert wrong[2].startswith("  Found by their words meanwhile")
    assert wrong[3].startswith("  wellkept serve runs it by itself")
    assert wrong[4].startswith("✗ model: small: ")


def test_doctor_notices_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes.db"
    Wellkept(path).close()
    monkeypatch.setattr(os, "access", lambda asked, rights: str(asked) != str(path))  # root may do everything

    found = {check.name: check for check in _sqlite_checks(Settings(url=f"sqlite:///{path}"))}

    assert not found["file"].is_ok
    assert str(path) in found["file"].says
    assert all(check.is_ok for name, check in found.items() if name != "file")


def test_doctor_goes_as_far_as_it_can(program: Program) -> None:
    (program.folder / "broken.db").write_bytes(b"this is not a database, not at all" * 100)
    (program.folder / "file").touch()
    cases = {
        "store": ["--url", "sqlite:///broken.db"],
        "folder": ["--url", "sqlite:///file/notes.db"],
        "driver store": ["--url", "postgresql://app:hunter2@127.0.0.1:1/x"],
    }
    for names, ended in zip(cases, program.all(*(["doctor", *each] for each in cases.values())), strict=True):
        assert ended.code == 1
        assert f"✗ {names.split()[-1]}: " in ended.out
        assert ended.err == ""
        assert "hunter2" not in ended.out
    ended = program("doctor", WELLKEPT_EMBEDDER="word2vec")
    assert ended.code == 1
    assert "✗ embedder: There is no embedder 'word2vec'" in ended.out


def test_doctor_advises_only_what_helps(program: Program, postgres_server: PostgresServer, postgres_url: str) -> None:
    (program.folder / "broken.db").write_bytes(b"this is not a database, not at all" * 100)
    (program.folder / "folder.db").mkdir()

    def advice(url: str) -> str:
        checks = program("doctor", "--quick", "--json", "--url", url).json["checks"]
        return str(next(each["advice"] for each in checks if each["name"] == "store"))

    assert advice("sqlite:///broken.db").startswith("Restore a backup")
    assert advice("postgresql://app@127.0.0.1:1/x") == "Check the address, or use --url."
    # These say what to do themselves.
    assert advice("sqlite:///folder.db") == ""
    assert advice(postgres_server.admin_url(postgres_url)) == ""


def test_a_file_is_remembered_as_a_whole_or_not_at_all(program: Program) -> None:
    lines = [
        '"Prefers tabs over spaces"',
        "",
        '{"text": "It rained", "kind": "journal", "created_at": "2026-01-31T12:00:00Z"}',
        '{"text": "Build broke", "tags": ["own"]}',
    ]
    file = program.folder / "batch.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")

    stored = program.ok("remember", "--batch", str(file), "--tag", "many").splitlines()
    assert [line.split("\t")[:2] for line in stored] == [["m-1", "note"], ["m-2", "journal"], ["m-3", "note"]]
    assert [line.split("\t")[3] for line in stored] == ["many", "many", "own"]
    assert "2026-01-31T12:00:00Z" in stored[1]
    assert "m-4\tnote" in program.ok("remember", "--batch", "-", given='"Tea at four"\n')

    refused = {
        '"fine"\n{"text": ""}': "line 2: ",
        '"fine"\n[]': "line 2 is neither",
        "fine": "line 1 is not JSON",
        '{"text": "fine", "colour": "red"}': "line 1: A memory has no 'colour'",
        '{"text": "fine", "created_at": "soon"}': "line 1: Use a time such as",
        '"x"\n' * 10_001: "more than 10,000 lines; split it",
    }
    for content, sentence in refused.items():
        file.write_text(content, encoding="utf-8")
        ended = program("remember", "--batch", str(file))
        assert (ended.code, ended.out) == (1, "")
        assert sentence in ended.err
        assert "Nothing was stored." in ended.err
    assert len(program.ok("memory", "list", "--state", "all").splitlines()) == 4
    for arguments in (["remember"], ["remember", "x", "--batch", str(file)]):
        assert "Give either a text or --batch FILE." in program(*arguments).err
    assert "cannot be read" in program("remember", "--batch", "nowhere.jsonl").err


def test_an_empty_answer_names_the_agent_that_was_asked(program: Program) -> None:
    """Programs name their agents; the terminal asks the agent of the settings unless told otherwise."""
    program.ok("remember", "Prefers tabs over spaces", "--agent", "atlas")

    for words in (["recall", "tabs or spaces?"], ["memory", "search", "tabs"], ["memory", "list"]):
        shown = " ".join(program.on_terminal(120, *words).out.split())
        assert "gent default" in shown, words
        assert "Prefers tabs" in program.on_terminal(120, *words, "--agent", "atlas").out
