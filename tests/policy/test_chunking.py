"""Passages: nothing lost, nothing too long, and the same every time."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.stopwatch import times_as_long
from wellkept.knowledge.rules_chunking import (
    CAP,
    OVERLAP,
    TARGET,
    DocumentPart,
    PartKind,
    heading_line,
    retitle_passage,
    split_passages,
)

HEADING, PARAGRAPH, LIST, CODE, TABLE = PartKind

words = st.text(st.sampled_from("abcdefgh ABC.!?\n|-é東"), min_size=1, max_size=400)
longer = st.builds(lambda text, times: (text + " ") * times, words, st.integers(1, 12))
parts = st.lists(
    st.builds(DocumentPart, kind=st.sampled_from(PartKind), text=st.one_of(words, longer), level=st.integers(1, 6)),
    max_size=12,
)


def heading(text: str, level: int = 1) -> DocumentPart:
    return DocumentPart(kind=HEADING, text=text, level=level)


def prose(text: str) -> DocumentPart:
    return DocumentPart(kind=PARAGRAPH, text=text)


@given(parts)
def test_no_word_is_lost_and_no_passage_is_too_long(document: list[DocumentPart]) -> None:
    found = split_passages("Title", document)

    assert all(0 < len(passage) <= CAP for passage in found)
    whole = "".join("".join(passage.split()) for passage in found)
    for part in document:
        for word in part.text.split():
            pieces = [word] if len(word) < 50 else re.findall(".{1,20}", word)
            for piece in pieces if len(word) < 50 else pieces[:1]:
                assert piece in whole, (piece, found)
    assert split_passages("Title", document) == found


@given(parts)
def test_a_new_title_changes_nothing_else(document: list[DocumentPart]) -> None:
    renamed = [retitle_passage(passage, "Title", "Another") for passage in split_passages("Title", document)]

    again = [retitle_passage(passage, "Another", "Title") for passage in renamed]
    assert again == split_passages("Title", document)
    assert all(passage.startswith("Another") for passage in renamed)


def test_a_passage_stands_under_its_headings() -> None:
    found = split_passages(
        "Handbook",
        [prose("Intro."), heading("Refunds"), prose("All."), heading("EU", 2), prose("14 days."), heading("Other")],
    )

    assert found == [
        "Handbook\n\nIntro.",
        "Handbook > Refunds\n\nAll.",
        "Handbook > Refunds > EU\n\n14 days.",
        "Handbook > Other",
    ]


def test_a_first_heading_that_is_the_title_is_not_said_twice() -> None:
    assert split_passages("Refunds", [heading("Refunds"), prose("All.")]) == ["Refunds\n\nAll."]


def test_a_heading_above_others_needs_no_passage_of_its_own() -> None:
    assert split_passages("T", [heading("A"), heading("B", 2), prose("x")]) == ["T > A > B\n\nx"]
    assert split_passages("T", [heading("A"), heading("B"), prose("x")]) == ["T > A", "T > B\n\nx"]


def test_long_headings_are_shortened_in_the_line_and_whole_below_it() -> None:
    long = "Very long heading " * 10

    (found,) = split_passages("T", [heading(long), prose("x")])
    line, _, body = found.partition("\n\n")
    assert len(line) < 100
    assert body == f"{long.strip()}\n\nx"
    assert heading_line([f"name {number} " + "x" * 60 for number in range(9)]).count("…") == 1


def sentences(count: int) -> str:
    return " ".join(f"This is sentence number {number} of the paragraph." for number in range(count))


def test_long_prose_goes_on_with_the_end_of_the_passage_before() -> None:
    found = split_passages("T", [prose(sentences(100))])

    assert len(found) > 3
    for before, after in itertools.pairwise(found):
        first = after.partition("\n\n")[2].partition(". ")[0]
        assert first in before  # what it begins with was there already
        assert 0 < len(first) <= OVERLAP
        assert before.endswith(".")
    assert all(TARGET * 0.5 < len(passage) <= TARGET + 20 for passage in found[:-1])


def test_what_has_a_shape_of_its_own_stays_whole() -> None:
    code = "\n".join(f"line {number} = {number}" for number in range(90))
    assert TARGET < len(code) + 20 < CAP

    found = split_passages("T", [prose(sentences(10)), DocumentPart(kind=CODE, text=code), prose("After.")])
    assert f"T\n\n{code}" in found
    assert "sentence" not in found[-1]


def test_a_long_table_repeats_its_head() -> None:
    rows = "\n".join(f"| country {number} | {number} EUR |" for number in range(120))
    table = f"| Country | Fee |\n|---|---|\n{rows}"

    found = split_passages("T", [DocumentPart(kind=TABLE, text=table)])
    assert len(found) > 2
    assert all(passage.startswith("T\n\n| Country | Fee |\n|---|---|\n| country") for passage in found)
    plain = split_passages("T", [DocumentPart(kind=TABLE, text=f"Country | Fee\n{rows}")])
    assert all(passage.startswith("T\n\nCountry | Fee\n| country") for passage in plain)


def test_a_word_without_end_is_cut() -> None:
    found = split_passages("T", [prose("x" * 5000)])

    assert sum(passage.count("x") for passage in found) >= 5000
    assert max(map(len, found)) <= CAP


def test_a_document_without_text_has_no_passages() -> None:
    assert split_passages("T", []) == split_passages("T", [prose(" \n ")]) == []


def test_a_heading_as_long_as_a_page_is_not_read_for_each_passage_below_it() -> None:
    below = [each for number in range(500) for each in (heading(f"Part {number}", 2), prose("Tea."))]

    def cut(name: str) -> list[str]:
        return split_passages("Tea", [heading(name), *below])

    page = "green tea " * 10_000
    assert cut(page)[-1].endswith("green tea… > Part 499\n\nTea.")
    assert times_as_long(lambda: cut(page), lambda: cut(page[:200])) < 20


def test_a_text_without_a_gap_is_cut_in_time_that_grows_with_it() -> None:
    short, long = "x" * 200_000, "x" * 4_000_000
    assert (
        times_as_long(lambda: split_passages("Tea", [prose(long)]), lambda: split_passages("Tea", [prose(short)])) < 60
    )


def test_a_passage_of_a_paged_file_names_its_pages() -> None:
    def on_page(number: int, text: str) -> DocumentPart:
        return DocumentPart(kind=PartKind.PARAGRAPH, text=text, place="page", number=number)

    found = split_passages("Report", [on_page(1, "One."), on_page(2, "Two.")])
    assert found == ["Report (pages 1–2)\n\nOne.\n\nTwo."]

    long = split_passages("Report", [on_page(3, sentences(30)), on_page(4, sentences(30))])
    assert long[0].startswith("Report (page 3)\n\n")
    assert long[-1].startswith("Report (page 4)\n\n")
    assert max(map(len, long)) <= CAP
    renamed = [retitle_passage(passage, "Report", "Account") for passage in long]
    assert renamed[0].startswith("Account (page 3)\n\n")
