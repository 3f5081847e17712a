"""Lines of other programs: what is a note, what is set aside, and that nothing of it is ever destroyed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.examples import ids, texts
from tests.notes_file.workers import ANN, add, file_in, line, note, put
from wellkept.model import Scope
from wellkept.store.notes.file import CUT_OFF, NOT_JSON, DamagedLine, Flaw, Note, NotesFile, format_line, parse_line

GOOD = line(1, "first").encode()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"not json", NOT_JSON),
        (b'{"id":"m-2"', NOT_JSON),
        (GOOD + GOOD, NOT_JSON),
        (b"\0" * 30, NOT_JSON),
        (b"[" * 100_000, NOT_JSON),
        (b"<<<<<<< HEAD", NOT_JSON),
        (b'{"id":"m-2","text":"\xff"}', "It is not UTF-8 (byte 21 of the line)."),
        (b"[1, 2]", "It is not a JSON object."),
        (b'"text"', "It is not a JSON object."),
        (b"null", "It is not a JSON object."),
        (line(2).replace('"id"', '"ID"').encode(), 'Its id is missing or not of the form "m-7".'),
        (line("7").encode(), 'Its id is missing or not of the form "m-7".'),
        (line("m-07").encode(), 'Its id is missing or not of the form "m-7".'),
        (b'{"id":7,"text":"a","ts":"2026-01-31T12:00:00Z"}', 'Its id is missing or not of the form "m-7".'),
        (line("m-999999999999999999").encode(), "The number in its id is higher than 9007199254740991."),
        (line(2).replace('"text"', '"note"').encode(), "Its text is missing."),
        (line(2, text=7).encode(), "Its text is not a string."),  # type: ignore[arg-type]
        (line(2, text=" \n").encode(), "Content cannot be blank"),
        (line(2, text="x" * 501).encode(), "Content too long (max 500 characters)"),
        (line(2, text="a\0b").encode(), "The text holds a NUL character (U+0000), which cannot be stored; remove it."),
        (line(2, text="\ud800").encode(), "The text holds half a surrogate pair at position 0; send whole ones."),
        (line(2, tags="infra").encode(), "Its tags are not a list."),
        (line(2, tags=[1]).encode(), "The tag must be a string, not int."),
        (line(2, tags=list("123456")).encode(), "A memory has at most 5 tags; 6 were given."),
        (line(2, scope="world").encode(), "Its scope is none of user, workspace, session."),
        (line(2, scope=[]).encode(), "Its scope is none of user, workspace, session."),
        (line(2, ts=None).encode(), 'Its ts is missing or not a time such as "2026-01-31T12:00:00Z".'),
        (line(2, ts=1767225600).encode(), 'Its ts is missing or not a time such as "2026-01-31T12:00:00Z".'),
        (line(2, ts="yesterday").encode(), 'Its ts is not a time such as "2026-01-31T12:00:00Z".'),
        (line(2, ts="0001-01-01T00:00:00+12:00").encode(), 'Its ts is not a time such as "2026-01-31T12:00:00Z".'),
        (line(1, "another").encode(), "Its id is already that of line 1; give it another."),
    ],
)
def test_a_damaged_line_is_set_aside_and_stays(notes: NotesFile, workspace: Path, raw: bytes, reason: str) -> None:
    put(workspace, GOOD + b"\n" + raw + b"\n" + line(3, "third").encode() + b"\n")

    assert notes.damaged() == (DamagedLine(2, reason),)
    assert texts(notes.all()) == ["third", "first"]

    added = add(notes, "fourth", "fifth")
    notes.delete_memory("m-3")
    notes.delete_memory(added[0].id)

    assert file_in(workspace).read_bytes().split(b"\n")[:2] == [GOOD, raw]
    assert texts(notes.all()) == ["fifth", "first"]
    assert notes.damaged() == (DamagedLine(2, reason),)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD + b"\n",
        GOOD + b"\r\n",
        b"\n\n" + GOOD + b"\n \t\r\n",
        GOOD,
        line(1, "first", extra={"by": "someone"}, origin="elsewhere").encode() + b"\n",
        json.dumps({"ts": "2026-02-26T12:00:00Z", "tags": [], "text": "first", "scope": "user", "id": "m-1"}).encode(),
        line(1, "first", tags=None).encode(),
        line(1, "first", ts="2026-02-26T13:00:00+01:00").encode(),
        line(1, "first", ts="2026-02-26T12:00:00").encode(),
    ],
    ids=["bom", "crlf", "blank lines", "no last end", "more fields", "other order", "null tags", "zone", "no zone"],
)
def test_what_other_programs_write_differently_is_still_a_note(
    notes: NotesFile, workspace: Path, content: bytes
) -> None:
    put(workspace, content)
    first = notes.find_memories([1])[1]

    assert notes.damaged() == ()
    assert (first.text, first.tags, first.scope, first.created_at.isoformat()) == (
        "first", (), Scope.USER, "2026-02-26T12:00:00+00:00",
    )  # fmt: skip

    add(notes, "second", "third")
    notes.delete_memory("m-2")
    assert file_in(workspace).read_bytes().startswith(content)
    assert ids(notes.all()) == ["m-3", "m-1"]
    assert notes.damaged() == ()


@pytest.mark.parametrize("scope", [None, ""])
def test_a_note_without_a_scope_is_of_the_workspace(notes: NotesFile, workspace: Path, scope: str | None) -> None:
    put(workspace, line(1, scope=scope) + "\n" + '{"id":"m-2","text":"a","ts":"2026-02-26T12:00:00Z"}')

    assert [(memory.scope, memory.tags) for memory in notes.all()] == [(Scope.WORKSPACE, ())] * 2


def test_a_torn_end_is_set_aside_and_the_next_note_has_a_line_of_its_own(notes: NotesFile, workspace: Path) -> None:
    torn = b'{"id":"m-2","scope":"user","te'
    put(workspace, GOOD + b"\n" + torn)
    assert notes.damaged() == (DamagedLine(2, CUT_OFF),)

    (added,) = add(notes, "third")

    assert added.id == "m-3"
    assert ids(notes.all()) == ["m-3", "m-1"]
    assert file_in(workspace).read_bytes().split(b"\n")[:2] == [GOOD, torn]
    assert notes.damaged() == (DamagedLine(2, NOT_JSON),)


def test_a_torn_end_is_read_once_it_is_whole(notes: NotesFile, workspace: Path) -> None:
    whole = line(2, "second")
    put(workspace, GOOD + b"\n" + whole[:20].encode())
    assert ids(notes.all()) == ["m-1"]

    with file_in(workspace).open("a") as file:
        file.write(whole[20:])

    assert ids(notes.all()) == ["m-2", "m-1"]
    assert notes.damaged() == ()


def test_of_two_lines_with_one_id_the_first_counts_and_both_are_deleted(notes: NotesFile, workspace: Path) -> None:
    put(workspace, "\n".join([line(1, "first"), line(2, "other"), line(1, "again"), line(1, "first")]) + "\n")
    assert texts(notes.all()) == ["other", "first"]
    assert [each.line for each in notes.damaged()] == [3, 4]

    notes.delete_memory("m-1")

    assert texts(notes.all()) == ["other"]
    assert notes.damaged() == ()


def test_pruning_counts_notes_and_not_damaged_lines(notes: NotesFile, workspace: Path) -> None:
    put(workspace, "\n".join([line(1, "first"), "damaged", line(2, "second"), "torn"]))

    add(notes, "third", keep=2)

    assert texts(notes.all()) == ["third", "second"]
    assert file_in(workspace).read_text().splitlines()[:3] == ["damaged", line(2, "second"), "torn"]


def test_a_reason_never_shows_the_text(notes: NotesFile, workspace: Path) -> None:
    put(
        workspace,
        "\n".join(
            [line(1, scope="hunter2"), line(2, ts="hunter2"), line("hunter2"), "hunter2", line(3, "hunter2" * 90)]
        ),
    )

    assert len(notes.damaged()) == 5
    assert "hunter2" not in repr(notes.damaged())


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_note_a_flaw_or_blank(raw: bytes) -> None:
    found = parse_line(raw, ANN)

    assert found is None or isinstance(found, Note | Flaw)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=500).filter(
        str.strip
    ),
    st.sampled_from(Scope),
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001
)
def test_every_note_is_read_as_it_was_written(text: str, scope: Scope, created_at: datetime) -> None:
    memory = note(text, id="m-7", scope=scope, created_at=created_at.replace(tzinfo=UTC))

    raw = format_line(memory)

    found = parse_line(raw, ANN)
    assert isinstance(found, Note)
    assert found.memory == memory
    assert len(raw.decode().splitlines()) == 1
    assert list(json.loads(raw)) == ["id", "scope", "text", "tags", "ts"]
