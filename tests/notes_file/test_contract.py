"""The notes file behaves like the store's list of notes: the same cases, on a file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import test_memories as contract
from tests.conformance.examples import NOW, ids, texts
from tests.notes_file.workers import ANN, KEEP, add, file_in, line, lock_in, note, put
from wellkept.errors import Invalid, NotFound, StoreError
from wellkept.memory.rules_filters import check_filters
from wellkept.model import Kind, Memory, Owner, Role, Scope
from wellkept.store.notes.file import MAX_SEQ, NotesFile, refuse_without_locks


def cases(test: Any) -> Any:
    """The table of a conformance test, so that there is only one."""
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    return pytest.mark.parametrize(*mark.args)


def test_a_note_comes_back_as_it_was_added(notes: NotesFile, workspace: Path) -> None:
    (added,) = notes.add_memories(
        [
            note(
                'She said: "it\'s 100%" — \\o/ 東京 🦉\n\tand left\u2028\x85\r\n',
                tags=("Ünïcode", "two words", "100%"),
                scope=Scope.SESSION,
            )
        ],
        keep=KEEP,
    )

    assert notes.find_memories([1]) == {1: added}
    assert added == note(added.text, id="m-1", tags=added.tags, scope=Scope.SESSION)
    assert len(file_in(workspace).read_text("utf-8").splitlines()) == 1


def test_the_line_is_the_one_promised(notes: NotesFile, workspace: Path) -> None:
    notes.add_memories(
        [
            note(
                "Straße",
                tags=("preference", "two words"),
                scope=Scope.USER,
                created_at=datetime(2026, 2, 26, 12, tzinfo=UTC),
            )
        ],
        keep=KEEP,
    )
    add(notes, "now")

    assert file_in(workspace).read_text("utf-8") == (
        '{"id":"m-1","scope":"user","text":"Straße","tags":["preference","two words"],"ts":"2026-02-26T12:00:00Z"}\n'
        '{"id":"m-2","scope":"workspace","text":"now","tags":[],"ts":"2026-03-01T12:00:00.123456Z"}\n'
    )


def test_what_a_line_has_no_field_for_comes_back_as_its_default(notes: NotesFile) -> None:
    (added,) = notes.add_memories(
        [note("a", importance=0.9, role=Role.SYSTEM, session_id="s", category="c")], keep=KEEP
    )

    assert added == note("a", id="m-1")
    assert notes.all() == [added]


def test_times_come_back_in_utc(notes: NotesFile) -> None:
    here = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))

    (added,) = notes.add_memories([note("a", created_at=here)], keep=KEEP)

    assert added.created_at == here
    assert added.created_at.tzinfo is UTC


def test_nothing_is_made_by_reading(notes: NotesFile, workspace: Path) -> None:
    assert (notes.all(), notes.list_memories(), notes.find_memories([1]), notes.damaged()) == ([], [], {}, ())
    assert notes.last_seq() == 0
    assert notes.add_memories([], keep=KEEP) == []
    assert list(workspace.iterdir()) == []


# --- ids


def test_ids_count_up_whatever_the_caller_says(notes: NotesFile) -> None:
    assert ids(notes.add_memories([note("a", id="m-99")], keep=KEEP)) == ["m-1"]
    assert ids(add(notes, "b", "c")) == ["m-2", "m-3"]
    assert notes.last_seq() == 3


def test_an_id_is_never_used_again_also_after_reopening(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a", "b", "c")
    notes.delete_memory("m-3")
    again = NotesFile(workspace, ANN)
    assert add(again, "d")[0].id == "m-4"

    for id in ids(again.all()):
        again.delete_memory(id)
    assert again.all() == []
    assert file_in(workspace).read_bytes() == b""
    assert add(NotesFile(workspace, ANN), "e")[0].id == "m-5"


def test_ids_lie_above_the_floor(notes: NotesFile) -> None:
    assert add(notes, "a", floor=41)[0].id == "m-42"
    assert add(notes, "b", floor=7)[0].id == "m-43"


def test_ids_lie_above_those_of_other_programs_even_when_these_are_deleted(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a")
    with file_in(workspace).open("a") as file:
        file.write(line(70) + "\n")
    assert notes.last_seq() == 70
    notes.delete_memory("m-70")

    assert add(NotesFile(workspace, ANN), "b")[0].id == "m-71"


def test_ids_of_damaged_lines_stay_used(notes: NotesFile, workspace: Path) -> None:
    put(workspace, line(5, text="x" * 501) + "\n" + '{"id": "m-9", "tex\n')

    assert add(notes, "a")[0].id == "m-10"


def test_when_the_lock_file_is_gone_the_file_still_tells_the_ids(notes: NotesFile, workspace: Path) -> None:
    add(notes, "a", "b")
    for spoilt in (None, b"", b"<<<<<<< HEAD\n000000000000000001 00000000000000000001\n", b"\0" * 40):
        lock_in(workspace).unlink()
        if spoilt is not None:
            lock_in(workspace).write_bytes(spoilt)
        last = notes.last_seq()
        assert add(notes, "next")[0].id == f"m-{last + 1}"


def test_an_absurd_id_is_set_aside_and_does_not_use_up_the_others(notes: NotesFile, workspace: Path) -> None:
    put(workspace, line(MAX_SEQ + 1) + "\n")
    assert add(notes, "a")[0].id == "m-1"

    put(workspace, line(MAX_SEQ) + "\n")
    with pytest.raises(StoreError, match="give it a lower number"):
        add(notes, "b")


def test_sixteen_threads_get_different_ids(notes: NotesFile) -> None:
    with ThreadPoolExecutor(16) as threads:
        added = [
            memory for batch in threads.map(lambda number: add(notes, f"note {number}"), range(64)) for memory in batch
        ]

    assert sorted(ids(added)) == sorted(f"m-{number}" for number in range(1, 65))
    assert sorted(ids(notes.all())) == sorted(ids(added))
    assert {memory.id: memory for memory in added} == {memory.id: memory for memory in notes.all()}


# --- the list and its filters


@cases(contract.test_anything_that_is_no_id_is_simply_not_found)
def test_anything_that_is_no_id_is_simply_not_found(notes: NotesFile, id: str) -> None:
    (kept,) = add(notes, "a")

    with pytest.raises(NotFound, match=r"^There is no such memory\.$"):
        notes.delete_memory(id)
    assert notes.all() == [kept]


def test_find_returns_those_that_exist(notes: NotesFile) -> None:
    first, second = add(notes, "a", "b")

    assert notes.find_memories([2, 1, 7, 2, 0, -1]) == {1: first, 2: second}
    assert notes.find_memories([]) == {}


def test_the_newest_come_first_in_pages(notes: NotesFile) -> None:
    add(notes, *map(str, range(7)))

    pages, before = [], None
    while page := notes.list_memories(before=before)[:3]:
        pages.append(texts(page))
        before = int(page[-1].id.removeprefix("m-"))

    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert texts(notes.all()) == ["6", "5", "4", "3", "2", "1", "0"]


def test_the_newest_is_the_one_with_the_highest_id_wherever_it_stands(notes: NotesFile, workspace: Path) -> None:
    put(workspace, "".join(line(seq) + "\n" for seq in (30, 2, 100)))

    assert ids(notes.all()) == ["m-100", "m-30", "m-2"]


@cases(contract.test_a_needle_means_itself_and_ignores_case)
def test_a_needle_means_itself_and_ignores_case(notes: NotesFile, text: str, needle: str, is_found: bool) -> None:
    add(notes, text)

    assert texts(notes.list_memories(needle=needle)) == ([text] if is_found else [])


def test_a_needle_longer_than_any_note_finds_nothing(notes: NotesFile) -> None:
    add(notes, "apples")

    assert notes.list_memories(needle="apples" * 20_000) == []


@cases(contract.test_a_tag_matches_whole_and_ignores_case)
def test_a_tag_matches_whole_and_ignores_case(notes: NotesFile, tag: str, is_found: bool) -> None:
    notes.add_memories([note("a", tags=("Infra", "Two Words", "STRASSE", "100%"))], keep=KEEP)
    add(notes, "without tags")

    assert texts(notes.list_memories(where=check_filters(tag=tag))) == (["a"] if is_found else [])


def test_all_filters_hold_together(notes: NotesFile) -> None:
    (wanted, *_) = notes.add_memories(
        [note("red apple", tags=("fruit",)), note("red apple"), note("green pear", tags=("fruit",))], keep=KEEP
    )

    assert notes.list_memories(needle="APPLE", where=check_filters(tag="Fruit")) == [wanted]


# --- pruning


@pytest.mark.parametrize(("before", "added", "keep", "left"), [
    (0, 1, 1, ["1"]),
    (3, 1, 3, ["4", "3", "2"]),
    (3, 1, 4, ["4", "3", "2", "1"]),
    (5, 1, 2, ["6", "5"]),
    (2, 3, 4, ["5", "4", "3", "2"]),
    (1, 3, 2, ["4", "3"]),
    (2, 1, 0, []),
])  # fmt: skip
def test_the_oldest_make_room(notes: NotesFile, before: int, added: int, keep: int, left: list[str]) -> None:
    add(notes, *(str(number + 1) for number in range(before)))

    given = add(notes, *(str(before + number + 1) for number in range(added)), keep=keep)

    assert texts(notes.all()) == left
    assert ids(given) == [f"m-{before + number + 1}" for number in range(added)]
    assert add(notes, "next")[0].id == f"m-{before + added + 1}"


# --- what is refused


@pytest.mark.parametrize(
    "refused",
    [
        note("x" * 501),
        note(""),
        note(" \n"),
        note("a\0b"),
        note("half \ud800"),
        note("a", tags=("1", "2", "3", "4", "5", "6")),
        note("a", tags=("two\nlines",)),
        note("a", created_at=datetime(2026, 1, 1)),  # noqa: DTZ001
        note("a", kind=Kind.CORE),
        replace(note("a"), owner=Owner("default", "bob")),
    ],
    ids=lambda memory: repr(memory.text[:10]),
)
def test_what_could_not_be_read_again_is_not_written(notes: NotesFile, workspace: Path, refused: Memory) -> None:
    with pytest.raises(Invalid):
        notes.add_memories([note("a"), refused], keep=KEEP)

    assert list(workspace.iterdir()) == []


def test_a_workspace_that_is_no_folder_is_refused(workspace: Path) -> None:
    with pytest.raises(Invalid, match="is not a folder"):
        NotesFile(workspace / "missing", ANN)


def test_systems_without_file_locks_are_told_so() -> None:
    refuse_without_locks("linux")
    refuse_without_locks("darwin")
    with pytest.raises(Invalid, match="leave the workspace unset"):
        refuse_without_locks("win32")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_something_else_in_the_files_place_is_an_error_and_no_endless_wait(
    notes: NotesFile, workspace: Path, make: Any
) -> None:
    put(workspace, "").unlink()
    make(file_in(workspace))

    for attempt in (notes.all, lambda: add(notes, "a"), lambda: notes.delete_memory("m-1")):
        with pytest.raises(StoreError, match=r"memories\.jsonl cannot be (read|written)\. The system says"):
            attempt()
