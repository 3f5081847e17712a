"""Files of Anthropic's memory tool, without the package: sentences, line numbers, paths, size, and many writers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integrations.views import library, opened_view, view
from wellkept import Settings, Wellkept
from wellkept.errors import Invalid, SecretRejected
from wellkept.integrations.memory_files import FileRefused, MemoryFiles, parse_path
from wellkept.integrations.plans import run_plan, run_plan_async

__all__ = ["library", "opened_view", "view"]

HEADING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"


class Files:
    """The commands on one view, each with its answer."""

    def __init__(self, view: Any) -> None:
        self.view, self.files = view, MemoryFiles(view, ("memories",))

    def __call__(self, command: str, *args: Any) -> str:
        return asyncio.run(run_plan_async(self.view, getattr(self.files, command)(*args)))

    def refused(self, command: str, *args: Any) -> str:
        with pytest.raises(FileRefused) as refusal:
            self(command, *args)
        return str(refusal.value)


def test_the_commands_answer_as_the_tool_is_documented(view: Any) -> None:
    run = Files(view)
    path = "/memories/notes/todo.md"

    assert run("view", "/memories") == HEADING.format("/memories") + "0B\t/memories"
    assert run("create", path, "one\ntwo\nthree\n") == f"File created successfully at: {path}"
    assert (
        run("view", path)
        == f"Here's the content of {path} with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    )
    assert run("view", path, [2, 3]).endswith(":\n     2\ttwo\n     3\tthree")
    assert run("str_replace", path, "two", "2") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tone\n     2\t2\n     3\tthree\n     4\t"
    )
    assert run("insert", path, 0, "zero\n") == f"The file {path} has been edited."
    assert run("insert", path, 4, "four") == f"The file {path} has been edited."
    assert run("view", path, [1, -1]).endswith(
        ":\n     1\tzero\n     2\tone\n     3\t2\n     4\tthree\n     5\tfour\n     6\t"
    )
    assert run("rename", "/memories/notes", "/memories/a/b") == "Successfully renamed /memories/notes to /memories/a/b"
    assert (
        run("view", "/memories")
        == HEADING.format("/memories") + "22B\t/memories\n22B\t/memories/a/\n22B\t/memories/a/b/"
    )
    assert (
        run("view", "/memories/a/")
        == HEADING.format("/memories/a/") + "22B\t/memories/a\n22B\t/memories/a/b/\n22B\t/memories/a/b/todo.md"
    )
    assert run("delete", "/memories/a/b/todo.md") == "Successfully deleted /memories/a/b/todo.md"
    assert run("view", "/memories") == HEADING.format("/memories") + "0B\t/memories"


def test_a_refusal_does_not_fill_the_prompt(opened: Wellkept) -> None:
    run = Files(opened.agent("many"))
    run("create", "/memories/f", "word word\n" * 5_000)

    refused = run.refused("str_replace", "/memories/f", "word", "x")
    assert "in lines: 1, 2, 3," in refused
    assert " and more. " in refused
    assert len(refused) < 300


def test_refusals_say_what_the_tool_is_documented_to_say(opened: Wellkept) -> None:
    run = Files(opened.agent("refusals"))
    missing = "The path /memories/x does not exist. Please provide a valid path."
    run("create", "/memories/f", "a\na\n")
    run("create", "/memories/d/f", "")

    assert run.refused("view", "/memories/x") == missing
    assert run.refused("str_replace", "/memories/x", "a", "b") == missing
    assert run.refused("insert", "/memories/x", 0, "b") == missing
    assert run.refused("create", "/memories/f", "") == "File /memories/f already exists"
    assert run.refused("create", "/memories/d", "") == "File /memories/d already exists"
    assert "is a file" in run.refused("create", "/memories/f/g", "")
    assert run.refused("str_replace", "/memories/f", "z", "b") == (
        "No replacement was performed, old_str `z` did not appear verbatim in /memories/f."
    )
    assert run.refused("str_replace", "/memories/f", "a", "b") == (
        "No replacement was performed. Multiple occurrences of old_str `a` in lines: 1, 2. Please ensure it is unique"
    )
    assert run.refused("str_replace", "/memories/f", "", "b").startswith("No replacement was performed, old_str ``")
    assert run.refused("insert", "/memories/f", 3, "b") == (
        "Invalid `insert_line` parameter: 3. It should be within the range of lines of the file: [0, 2]"
    )
    assert run.refused("delete", "/memories/x") == "The path /memories/x does not exist"
    assert run.refused("delete", "/memories") == "Cannot delete the /memories directory itself"
    assert run.refused("rename", "/memories/x", "/memories/y") == "The path /memories/x does not exist"
    assert run.refused("rename", "/memories/f", "/memories/d") == "The destination /memories/d already exists"
    assert run.refused("rename", "/memories", "/memories/d") == "Cannot rename the /memories directory itself"
    assert run.refused("rename", "/memories/d", "/memories/d/e") == "Cannot move /memories/d into itself"
    assert run("view", "/memories/d/f").endswith(":\n     1\t")


TRAVERSALS = """
/memories/../secret /memories/a/../../secret /memories/.. /memories/./a /memories/%2e%2e/secret
/memories/%2E./secret /memories/%252e%252e%252fsecret /memories/%25252e%25252e/x /memories/..%2fsecret
/memories/..%5csecret /memories/..\\secret /memories/%c0%ae%c0%ae/secret /memories/%u002e%u002e/secret
/memories/．．/secret /memories/‥/secret /memories/．%2e／x /memories/&#46;&#46;/secret
/memories/%26%2346%3b./secret /memoriesx /memories_private/a /etc/passwd memories/a ../memories
""".split()


@pytest.mark.parametrize("path", [*TRAVERSALS, "", "/", "/memories/.. /x", "/memories/\t../x", "file:///memories/a"])
def test_a_path_that_leads_out_is_refused_in_every_encoding(path: str) -> None:
    with pytest.raises(FileRefused):
        parse_path(path)


def test_odd_names_are_kept_as_they_are(opened: Wellkept) -> None:
    run = Files(opened.agent("odd"))
    names = ["100%.md", "a b", "...", "..a", "grün.md", "日本", "a%2Fb", "it's", ".hidden"]

    for name in names:
        run("create", f"/memories/{name}", name)

    assert [run("view", f"/memories//{name}").rpartition("\t")[2] for name in names] == names
    assert {line.rpartition("/")[2] for line in run("view", "/memories").splitlines()[2:]} == {
        name for name in names if not name.startswith(".")
    }
    for name in ("a\x00b", "a\nb", "\u200b", "x" * 600, "/".join("abcdefghijklmnopqrstu")):
        with pytest.raises(Invalid):
            run("create", f"/memories/{name}", "x")


def test_a_file_may_be_large(view: Any, library: Any) -> None:
    run = Files(view)
    lines = [f"line {number} of the chronicle" for number in range(20_000)]

    run("create", "/memories/big.txt", "\n".join(lines))
    run("str_replace", "/memories/big.txt", "line 19998 of", "the last but one of")
    run("insert", "/memories/big.txt", 20_000, "the end")
    run("rename", "/memories/big.txt", "/memories/old/big.txt")

    shown = run("view", "/memories/old/big.txt", [19_998, 20_001]).splitlines()[1:]
    assert shown == [
        " 19998\tline 19997 of the chronicle",
        " 19999\tthe last but one of the chronicle",
        " 20000\tline 19999 of the chronicle",
        " 20001\tthe end",
    ]
    assert len(library.details.list()) == 1
    assert library.recall("chronicle")[0].source == "memory"
    run("clear")
    assert not library.details.list()


def test_former_texts_stay_in_the_history_and_recall_finds_the_present_one(opened: Wellkept) -> None:
    atlas = opened.agent("history")
    run = Files(atlas)

    run("create", "/memories/anna.md", "Anna lives in Rome")
    run("str_replace", "/memories/anna.md", "Rome", "Oslo")

    (hit,) = atlas.recall("Where does Anna live?")
    assert "Oslo" in hit.text
    assert hit.memory is not None
    assert [each.metadata["text"] for each in atlas.history(hit.memory.id)] == ["Anna lives in Rome"]


def test_edits_at_the_same_time_are_all_made(opened: Wellkept) -> None:
    atlas = opened.agent("edits")
    files = MemoryFiles(atlas, ("memories",))
    run_plan(atlas, files.create("/memories/log", "begin\n"))

    def add(number: int) -> str:
        try:
            return run_plan(atlas, files.insert("/memories/log", 1, f"entry {number}"))
        except FileRefused as refusal:
            return str(refusal)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(add, range(12)))

    done = [answer == "The file /memories/log has been edited." for answer in answers]
    text = run_plan(atlas, files.view("/memories/log"))
    assert [f"entry {number}\n" in text for number in range(12)] == done
    # When too many others are quicker, the model is told to try again.
    assert all(is_done or "edited by others" in answer for is_done, answer in zip(done, answers, strict=True))
    assert sum(done) >= 3


def test_users_have_files_of_their_own(view: Any) -> None:
    anna, bob = Files(view.for_user("anna")), Files(view.for_user("bob"))

    anna("create", "/memories/me", "anna")
    bob("create", "/memories/me", "bob")
    anna("str_replace", "/memories/me", "anna", "Anna")

    assert anna("view", "/memories/me").endswith("\tAnna")
    assert bob("view", "/memories/me").endswith("\tbob")
    anna("clear")
    assert bob("view", "/memories").count("\n") == 2


def test_a_user_neither_sees_nor_changes_the_files_of_nobody() -> None:
    with Wellkept(settings=Settings(url=":memory:")) as store:
        atlas = store.agent("atlas")
        own, anna = Files(atlas), Files(atlas.for_user("anna"))
        own("create", "/memories/me", "nobody")

        assert anna.refused("view", "/memories/me").startswith("The path")
        anna("create", "/memories/me", "anna")
        anna("delete", "/memories/me")
        assert own("view", "/memories/me").endswith("\tnobody")


def test_a_secret_is_not_stored(opened: Wellkept) -> None:
    run = Files(opened.agent("secrets"))

    with pytest.raises(SecretRejected):
        run("create", "/memories/wifi", "The wifi password is Falcon#77")

    assert run("view", "/memories") == HEADING.format("/memories") + "0B\t/memories"
