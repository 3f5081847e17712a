"""Conversations on the command line, and how summarising is set: by file, by variable, by option."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import wellkept
from tests.cli.program import Program
from wellkept.settings import Settings, table
from wellkept.testing.fake_model import ModelServer, says


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(says("They talked.")) as running:
        yield running


@pytest.fixture
def talked(program: Program) -> Program:
    """A program with a conversation of three turns."""
    with wellkept.Wellkept(f"sqlite:///{program.folder / 'notes.db'}", settings=Settings(embedder="off")) as store:
        for number in range(3):
            store.agent().log_turn("monday", user=f"question {number}", assistant=f"answer {number}")
    return program


def test_a_conversation_is_logged_listed_shown_and_deleted(talked: Program) -> None:
    sessions = talked("session", "list", "--json").json
    assert [(each["id"], each["message_count"], each["summarizedCount"]) for each in sessions["items"]] == [
        ("monday", 6, 0)
    ]
    page = talked("session", "show", "monday", "--limit", "4", "--json").json
    assert page["next_cursor"] == 4
    rest = talked("session", "show", "monday", "--after", "4", "--json").json
    assert [each["content"] for each in page["items"] + rest["items"]] == [
        f"{word} {n}" for n in range(3) for word in ("question", "answer")
    ]
    assert talked.ok("session", "show", "--as-sent", "monday").count("\n") == 6
    newest = talked("session", "show", "--as-sent", "monday", "--limit", "1", "--json").json
    assert ([each["content"] for each in newest["messages"]], newest["omitted_count"]) == (["answer 2"], 5)
    assert "question 2" in talked.on_terminal(80, "session", "show", "monday").out
    assert "monday" in talked.on_terminal(80, "session", "list").out
    assert talked.ok("session", "delete", "monday") == "Deleted: monday\n"
    gone = talked("session", "show", "monday")
    assert (gone.code, gone.out, gone.err) == (1, "", "There is no such session.\n")


def test_a_turn_can_be_read_from_a_pipe_and_remembered(program: Program) -> None:
    program.ok(
        "session", "log", "monday", "--user", "why?", "--assistant", "-", "--remember", given="Because we decided so."
    )

    assert "Because we decided so." in program.ok("memory", "list", "--kind", "episode")
    both = program("session", "log", "monday", "--user", "-", "--assistant", "-", given="x")
    assert both.code == 2


@pytest.mark.proves("T4")
def test_the_defaults_are_off_forty_and_twelve() -> None:
    settings = Settings()

    assert (settings.summary_enabled, settings.summary_threshold, settings.summary_keep_last) == (False, 40, 12)
    assert (settings.openai_summary_model, settings.openai_summary_base_url) == ("", "")
    names = {alias for row in table() for alias in (*row.aliases, *row.environment)}
    assert names >= {
        *("summaryEnabled", "summaryThreshold", "summaryKeepLast", "openai.model", "openai.baseURL"),
        *("openai.summaryModel", "openai.summaryBaseURL", "OPENAI_MODEL", "OPENAI_SUMMARY_MODEL", "OPENAI_SUMMARY_URL"),
        *("WELLKEPT_SUMMARY_ENABLED", "WELLKEPT_SUMMARY_THRESHOLD", "WELLKEPT_SUMMARY_KEEP_LAST"),
    }


YAML = """
summaryEnabled: true
summaryThreshold: 4
summaryKeepLast: 2
openai:
  model: main
  baseURL: http://127.0.0.1:9/v1
  summaryModel: small
  summaryBaseURL: {url}
"""
TOML = """
summaryEnabled = true
summaryThreshold = 4
summaryKeepLast = 2
[openai]
model = "main"
baseURL = "http://127.0.0.1:9/v1"
summaryModel = "small"
summaryBaseURL = "{url}"
"""
JSON = """{{"memory": {{"summaryEnabled": true, "summaryThreshold": 4, "summaryKeepLast": 2}},
"openai": {{"model": "main", "baseURL": "http://127.0.0.1:9/v1", "summaryModel": "small",
"summaryBaseURL": "{url}"}}}}"""
FILES = {"wellkept.yaml": YAML, "wellkept.toml": TOML, "agent.json": JSON}


@pytest.mark.proves("T4")
@pytest.mark.parametrize("source", [*FILES, "environment", "flags"])
def test_summarising_is_set_by_file_by_variable_and_by_flag(talked: Program, server: ModelServer, source: str) -> None:
    variables, flags = {}, []
    if source in FILES:
        (talked.folder / source).write_text(FILES[source].format(url=server.url))
    elif source == "environment":
        variables = {
            "WELLKEPT_SUMMARY_ENABLED": "true",
            "WELLKEPT_SUMMARY_THRESHOLD": "4",
            "WELLKEPT_SUMMARY_KEEP_LAST": "2",
            "OPENAI_MODEL": "main",
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            "OPENAI_SUMMARY_MODEL": "small",
            "OPENAI_SUMMARY_URL": server.url,
        }
    else:
        flags = ["--summary-enabled", "--summary-threshold", "4", "--summary-keep-last", "2", "--openai-model", "main"]
        flags += ["--openai-base-url", "http://127.0.0.1:9/v1"]
        flags += ["--openai-summary-model", "small", "--openai-summary-base-url", server.url]

    shown = talked("session", "show", "--as-sent", "monday", "--json", *flags, **variables).json

    assert [body["model"] for body in server.bodies] == ["small"]
    assert (shown["summary"], shown["summarizedCount"]) == ("They talked.", 4)
    assert [each["content"] for each in shown["messages"][1:]] == ["question 2", "answer 2"]


@pytest.mark.proves("T4")
def test_what_is_not_set_for_summaries_is_as_for_the_main_model(talked: Program, server: ModelServer) -> None:
    variables = {"OPENAI_MODEL": "main", "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}

    talked.ok("session", "show", "--as-sent", "monday", "--summary-enabled", "--summary-threshold", "4", **variables)
    talked.ok("session", "show", "--as-sent", "monday", "--summary-threshold", "4", **variables)
    assert server.bodies == []  # twelve are kept, and there are six; the second was not even asked to

    flags = ("--summary-enabled", "--summary-threshold", "4", "--summary-keep-last", "2")
    talked.ok("session", "show", "--as-sent", "monday", *flags, **variables)
    assert [body["model"] for body in server.bodies] == ["main"]
    assert server.requests[0][1]["Authorization"] == "Bearer sk-test"


TALK = "user: Hi! I am allergic to penicillin.\nWhat can I take?\nassistant: Ask your doctor, please.\n"


def test_the_facts_of_a_conversation_are_stored_and_undone(program: Program) -> None:
    (program.folder / "talk.txt").write_text(TALK, "utf-8")
    assert "added\t-\t0\tI am allergic to penicillin." in program.ok("memory", "add", "talk.txt", "--dry-run")
    assert program.ok("memory", "list") == ""

    added = program("memory", "add", "talk.txt", "--session", "monday")

    assert added.out.splitlines()[0] == "added\tm-1\t0\tI am allergic to penicillin."
    assert added.err == "Undo: wellkept memory changes undo c-1\n"
    assert "m-1" in program.on_terminal(80, "memory", "list").out
    again = program(
        "memory", "add", "-", "--json", given=json.dumps([{"role": "user", "content": "I am allergic to penicillin."}])
    )
    assert [each["reason"] for each in again.json["dropped"]] == ["already remembered as m-1"]
    assert program.ok("memory", "changes", "list", "--state", "applied").startswith("c-1\tapplied\tadd\tadds m-1\t")
    assert program("memory", "changes", "show", "c-1").out == "adds\tm-1\tI am allergic to penicillin.\n"
    assert program.ok("memory", "changes", "undo", "c-1") == "Undone c-1: adds m-1\n"
    assert program("memory", "changes", "undo", "c-1").code == 1
    assert "Name the change" in program("memory", "changes", "undo").err
    assert program.ok("memory", "list") == ""


def test_a_model_says_what_ends_or_the_rules_do(program: Program, server: ModelServer) -> None:
    asked = ("--openai-model", "m", "--openai-base-url", server.url)
    program("memory", "add", "-", given="user: I always pay in cash at the market.")
    server.script.append(says(json.dumps([{"item": 0, "ends": "1", "as": "superseded"}])))

    ended = program("memory", "add", "-", *asked, given="user: I only carry a card.")
    failed = program("memory", "add", "-", *asked, given="user: I also carry a few coins.")

    assert ended.out.startswith("superseded m-1\tm-2\t0\tI only carry a card.")
    assert failed.out.startswith("added\tm-3\t0\tI also carry a few coins.")
    assert "Read by rules, because the model failed" in failed.err


@pytest.mark.parametrize(
    ("arguments", "given", "advice"),
    [
        (["memory", "add", "missing.txt"], "", "missing.txt cannot be read"),
        (["memory", "add", "-"], "[{", "This is no JSON"),
        (["memory", "add", "-"], '{"turns": []}', "`messages` must be a list of mappings"),
    ],
)
def test_what_cannot_be_added_is_refused_with_advice(
    program: Program, arguments: list[str], given: str, advice: str
) -> None:
    refused = program(*arguments, given=given)

    assert (refused.code, refused.out) == (1, "")
    assert advice in refused.err
