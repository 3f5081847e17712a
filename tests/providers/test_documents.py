"""Reading files: what is in them, and what is wrong with them."""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pypdf
import pytest

from tests.documents import ALL_CODES, PAGE, pdf, pdf_with_fonts
from tests.stopwatch import times_as_long
from wellkept.deadline import DEADLINE, Deadline
from wellkept.errors import Cancelled, Invalid
from wellkept.knowledge import files, pdf_child
from wellkept.knowledge import files as documents
from wellkept.knowledge.rules_chunking import PartKind

HEADING, PARAGRAPH, LIST, CODE, TABLE = PartKind


def parts(content: str | bytes, name: str) -> list[tuple[PartKind, str]]:
    found = files.read_document(content.encode() if isinstance(content, str) else content, name=name).parts
    return [(part.kind, part.text) for part in found]


MARKDOWN = """---
title: "The handbook"
---
Intro, in
two lines.

# Refunds

- one
- two

```python
x = 1

y = 2
```

| Country | Fee |
|---|---|
| Norway | 3 |

Setext
------

> quoted

[link]: https://example.org
"""


def test_markdown_is_read_by_its_structure() -> None:
    reading = files.read_document(MARKDOWN.encode(), name="a.md")

    assert reading.title == "The handbook"
    assert [(part.kind, part.text.strip()) for part in reading.parts] == [
        (PARAGRAPH, "Intro, in\ntwo lines."),
        (HEADING, "Refunds"),
        (LIST, "- one\n- two"),
        (CODE, "```python\nx = 1\n\ny = 2\n```"),
        (TABLE, "| Country | Fee |\n|---|---|\n| Norway | 3 |"),
        (HEADING, "Setext"),
        (PARAGRAPH, "> quoted"),
        (PARAGRAPH, "[link]: https://example.org"),
    ]
    lines = MARKDOWN.split("\n")
    for part in reading.parts:
        assert part.text.strip().split("\n")[0] in lines[part.number - 1], part


def test_html_is_read_without_what_surrounds_it() -> None:
    assert files.read_document(PAGE.encode(), name="a.html").title == "Refund policy"
    assert parts(PAGE, "a.htm") == [
        (HEADING, "Refund policy"),
        (PARAGRAPH, "Refunds are paid within 14 days."),
        (HEADING, "Fees"),
        (TABLE, "Country | Fee\nNorway | 3 EUR"),
        (LIST, "- Gift cards\n  - never expire\n- Vouchers do"),
        (CODE, "def refund():\n    return 14"),
    ]


def test_html_without_marks_or_in_another_encoding_is_read_too() -> None:
    assert parts("<p>one<p>two<br>three<div>four</div>five", "a.html") == [
        (PARAGRAPH, "one"),
        (PARAGRAPH, "two\nthree"),
        (PARAGRAPH, "four"),
        (PARAGRAPH, "five"),
    ]
    assert parts("<meta charset=latin-1><p>caf\xe9".encode("latin-1"), "a.html") == [(PARAGRAPH, "café")]
    assert parts("<article><header><h1>Kept</h1></header><p>x</article>", "a.html")[0] == (HEADING, "Kept")
    assert parts("<div>" * 1000 + "deep", "a.html") == [(PARAGRAPH, "deep")]
    with pytest.raises(Invalid, match="nested so deeply"):
        parts("<div>" * 5000 + "lost", "a.html")
    with pytest.raises(Invalid, match=r"a\.html is not no-such text"):
        parts("<meta charset=no-such>x", "a.html")


def test_text_is_cut_at_blank_lines() -> None:
    found = files.read_document("One\r\nline.\r\n\r\n\r\nTwo.\r\n".encode("utf-16"), name="notes").parts

    assert [(part.text.strip(), part.number) for part in found] == [("One\nline.", 1), ("Two.", 5)]


def test_pdf_pages_become_paragraphs_and_bookmarks_headings() -> None:
    content = pdf("Handbook\nAll of it.", "Refunds\nWithin 14 days.", outline=[("Handbook", 1), ("Refunds", 2)])

    found = files.read_document(content, name="a.pdf").parts
    assert [(part.kind, part.text, part.number) for part in found] == [
        (HEADING, "Handbook", 1),
        (PARAGRAPH, "Handbook\nAll of it.", 1),
        (HEADING, "Refunds", 2),
        (PARAGRAPH, "Refunds\nWithin 14 days.", 2),
    ]
    assert files.read_document(content, name="no-ending").parts == found  # it says itself what it is


def encrypted(password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_an_encrypted_pdf_is_read_only_without_a_password() -> None:
    with pytest.raises(Invalid, match=r"^a\.pdf is encrypted; save it without a password\.$"):
        parts(encrypted("sesame"), "a.pdf")
    assert parts(encrypted(""), "a.pdf") == [(PARAGRAPH, "secret")]


@pytest.mark.parametrize(
    "content", [b"", b"%PDF-1.4\n", b"hello", pdf("x")[:150], b"%PDF-1.4\n" + random.Random(1).randbytes(2000)]
)
def test_a_broken_pdf_is_named(content: bytes) -> None:
    with pytest.raises(Invalid, match=r"^a\.pdf is broken"):
        parts(content, "a.pdf")


def test_a_pdf_beyond_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_child, "MAX_PAGES", 1)
    assert pdf_child.extract_text(pdf("a", "b")) == {"refused": "has more than 1 pages; split it."}
    monkeypatch.setattr(pdf_child, "MAX_PARAGRAPHS", 1)
    content = pdf("a", outline=[("Tea", 1)])
    assert pdf_child.extract_text(content) == {"refused": "has more than 1 paragraphs; split it."}
    monkeypatch.setattr(pdf_child, "MAX_CHARS", 10)
    assert pdf_child.extract_text(pdf("x" * 10))["parts"] == [(0, "x" * 10, 1)]
    assert pdf_child.extract_text(pdf("x" * 11)) == {"exceeded": "10 characters"}


SHOWN = b"BT /F0 12 Tf <00410042> Tj ET"
LONG_TARGET = b"beginbfchar\n<0041> <%s>\nendbfchar" % (b"4e4d" * 250)
MANY_FONTS = pdf_with_fonts(SHOWN, ALL_CODES, fonts=60)
"""Four kilobytes; the characters of its fonts take 800 MB and ten seconds."""


@pytest.mark.parametrize(
    ("content", "limit"),
    [
        (MANY_FONTS, "300 MB"),
        (pdf_with_fonts(SHOWN, b"beginbfchar\n" + b"<ab" * 600_000), "the allowed work"),
        (pdf_with_fonts(b"BT /F0 12 Tf (%s) Tj ET" % (b"\0A" * 50_000), LONG_TARGET), "5,000,000 characters"),
    ],
    ids=["fonts", "map", "string"],
)
def test_small_pdf_that_takes_much_is_refused(monkeypatch: pytest.MonkeyPatch, content: bytes, limit: str) -> None:
    monkeypatch.setattr(files, "MAX_MEMORY", 300_000_000)
    with pytest.raises(Invalid, match=rf"^takes more than {limit} to read; split it, or print it to a new PDF\.$"):
        files.read_pdf(content)


def children() -> set[str]:
    threads = Path("/proc/self/task").iterdir()
    return {child for thread in threads for child in (thread / "children").read_text().split()}


def test_pdf_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setattr(files, "MAX_SECONDS", 1)
    with pytest.raises(Invalid, match=r"takes more than (1 seconds|the allowed time)"):
        files.read_pdf(MANY_FONTS)
    assert children() == before


def test_a_request_that_ends_takes_the_reading_process_along() -> None:
    before = children()
    deadline = Deadline(60)
    token = DEADLINE.set(deadline)
    deadline.cancel()
    try:
        with pytest.raises(Cancelled):
            files.read_pdf(MANY_FONTS)
    finally:
        DEADLINE.reset(token)
    assert children() == before


def test_pdfs_are_read_at_the_same_time_by_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: files.read_pdf(pdf(name)).parts[0].text, "abcd"))
    assert found == ["a", "b", "c", "d"]


def test_a_reading_process_that_crashes_says_that_the_pdf_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PROGRAM", "no-such-program.py")
    with pytest.raises(Invalid, match=r"^is broken: it cannot be read as PDF\."):
        files.read_pdf(pdf("a"))


def test_where_a_system_has_no_limits_a_pdf_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)  # an import of it fails, as on Windows
    pdf_child.limit_process(1, 1)
    assert pdf_child.extract_text(pdf("tea"))["parts"] == [(0, "tea", 1)]


def test_text_of_too_many_paragraphs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_PARAGRAPHS", 2)
    assert len(parts("a\n\nb", "a.txt")) == 2
    with pytest.raises(Invalid, match="has more than 2 paragraphs"):
        parts("a\n\nb\n\nc", "a.txt")


def test_paragraphs_know_the_line_they_begin_in() -> None:
    found = files.read_document(b"\n\na\nb\n \n\n  c\n\nd", name="a.txt").parts
    assert [(part.text, part.number) for part in found] == [("a\nb", 3), ("\n  c", 7), ("d", 9)]


def read_for_title(text: str) -> str:
    return files.read_document(text.encode(), name="a.md").title


def test_a_title_is_taken_without_the_blanks_around_it() -> None:
    assert read_for_title("---\ntitle: \t Green  tea \t\n---\n") == "Green  tea"
    assert read_for_title("---\ntitle:\n---\n# Tea\n") == "Tea"


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.md", lambda size: "---\ntitle: x" + " " * size + "y\n---\n"),
        ("a.txt", lambda size: "a\n\n" * size),
        ("a.html", lambda size: "<p " + " ".join(f"a{n}" for n in range(size)) + ">x</p>"),
    ],
    ids=["title", "paragraphs", "attributes"],
)
def test_reading_takes_time_that_grows_with_the_text(name: str, make: Callable[[int], str]) -> None:
    short, long = make(4_000).encode(), make(40_000).encode()

    def read(content: bytes) -> None:
        with suppress(Invalid):
            files.read_document(content, name=name)

    assert times_as_long(lambda: read(long), lambda: read(short)) < 30


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (b"caf\xe9\n\xff", "a.md", "a.md is not utf-8 text (at line 1); save it as UTF-8."),
        (b"MZ\x00\x01", "a.txt", "a.txt is not text: it holds NUL bytes."),
        ("\x00x".encode("utf-16"), "a.txt", "a.txt holds a NUL character (at line 1); remove it."),
        (b"caf\xe9", "", "The text is not utf-8 text (at line 1); save it as UTF-8."),
    ],
)
def test_what_is_no_text_is_named(content: bytes, name: str, says: str) -> None:
    with pytest.raises(Invalid) as refusal:
        files.read_document(content, name=name)
    assert str(refusal.value) == says


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    (tmp_path / "a.txt").write_text("x" * 11)
    with pytest.raises(Invalid, match="larger than"):
        files.load_file(tmp_path / "a.txt")
    with pytest.raises(Invalid, match="larger than"):
        files.read_document(b"x" * 11, name="a.txt")
    monkeypatch.undo()
    monkeypatch.setattr(documents, "MAX_CHARS", 10)
    with pytest.raises(Invalid, match="more than 10 characters"):
        files.read_document(b"x" * 11, name="a.txt")


@pytest.mark.parametrize(("name", "kind", "module"), [("a.pdf", "PDF", "pypdf"), ("a.html", "HTML", "lxml.etree")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str, kind: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        Invalid, match=rf"is {kind}, which needs more packages; run: pip install 'wellkept\[documents\]'"
    ):
        files.read_document(b"<p>", name=name)


def test_a_folder_is_walked_without_hidden_files_and_loops(tmp_path: Path) -> None:
    for name in ("a.md", "sub/b.TXT", "sub/deeper/c.html", ".hidden/d.md", "sub/.e.md", "f.exe", "old/g.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "sub" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "broken.md").symlink_to(tmp_path / "nothing")
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    (outside / "private.md").write_text("x")
    (tmp_path / "leads-out.md").symlink_to(outside / "private.md")
    (tmp_path / "leads-out").symlink_to(outside, target_is_directory=True)

    def walked(include: list[str], exclude: list[str]) -> list[str]:
        return [path.as_posix() for path in files.walk_folder(tmp_path, include=include, exclude=exclude)]

    assert walked([], []) == ["a.md", "old/g.md", "sub/b.TXT", "sub/deeper/c.html"]
    assert walked([], ["old", "*.html"]) == ["a.md", "sub/b.TXT"]
    assert walked(["*.exe", "sub/*.TXT"], []) == ["f.exe", "sub/b.TXT"]
    with pytest.raises(Invalid, match="cannot be read"):
        files.walk_folder(tmp_path / "nothing", include=(), exclude=())


def test_a_path_is_told_from_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("x")
    locate = files.locate_file

    assert locate("a.md") == Path("a.md")
    assert locate(tmp_path) == tmp_path
    for text in ("Refunds are paid within 14 days.", "See a.md\nfor more", "x" * 5000, "", "nul\x00", "see old.md"):
        assert locate(text) is None
    for path in ("no-such.md", "docs/nothing.PDF", Path("anything"), Path("nul\x00")):
        with pytest.raises(Invalid, match=r"no file or folder|cannot be read"):
            locate(path)
    with pytest.raises(Invalid, match="cannot be read"):
        files.load_file(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- YAML\nadded: v1\n-->\n\nShown.", [(PARAGRAPH, "Shown.")]),
        ("Before <!-- hidden\nstill --> after.", [(PARAGRAPH, "Before  after.")]),
        ("[//]: # (hidden)\n\nShown.\n\n[x]: <> (hidden)", [(PARAGRAPH, "Shown.")]),
        ("- one <!-- hidden -->\n- two", [(LIST, "- one \n- two")]),
        ("# Name <!-- hidden -->", [(HEADING, "Name ")]),
        ("Write `<!-- so -->`.", [(PARAGRAPH, "Write `<!-- so -->`.")]),
        ("```\n<!-- code -->\n```", [(CODE, "```\n<!-- code -->\n```")]),
        ("[link]: #top 'Top'", [(PARAGRAPH, "[link]: #top 'Top'")]),
        ("Open <!-- to the end", [(PARAGRAPH, "Open <!-- to the end")]),
    ],
)
def test_comments_are_left_out_of_markdown(text: str, expected: list[tuple[PartKind, str]]) -> None:
    assert [each for each in parts(text, "a.md") if each[1].strip()] == expected


@pytest.mark.parametrize(
    "front",
    ["---\ntitle: Rules\n---\n", '+++\ntitle = "Rules"\n+++\n', "---\ntitle: 'Rules'\n...\n", "---\ntitle: Rules\n---"],
)
def test_front_matter_gives_the_title_and_is_left_out(front: str) -> None:
    reading = files.read_document(f"{front}\nShown.".encode() if front.endswith("\n") else front.encode(), name="a.md")

    assert reading.title == "Rules"
    assert not any("title" in part.text for part in reading.parts)


def test_a_pile_of_open_comments_is_read_quickly() -> None:
    def read(count: int) -> None:
        files.read_document(b"<!-- `x " * count, name="a.md")

    assert times_as_long(lambda: read(8_000), lambda: read(2_000)) < 12
