"""A summary without a model: what a text is, how large, where its errors are, how it begins and ends."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.details.rules_digest import (
    MAX_BRIEF_CHARS,
    MAX_JSON_CHARS,
    MAX_TEXT_CHARS,
    PIECE_CHARS,
    ContentKind,
    TextDigest,
    TextDigester,
)


def digested(text: str, *, piece: int = PIECE_CHARS) -> TextDigest:
    digest = TextDigester()
    for at in range(0, len(text), piece):
        digest.feed(text[at : at + piece])
    return digest.finish()


TRACE = """Traceback (most recent call last):
  File "app.py", line 3, in <module>
    raise ValueError("no such column")
ValueError: no such column
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: closed
\tat com.example.Pool.take(Pool.java:41)
\tat com.example.Main.main(Main.java:7)
Caused by: java.io.IOException: broken pipe
\tat com.example.Socket.read(Socket.java:9)
"""
DIFF = """diff --git a/src/a.py b/src/a.py
index 83db48f..bf269f4 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@
 import os
-error = None
+error = 1
+fatal = 2
diff --git a/b.md b/b.md
--- a/b.md
+++ b/b.md
@@ -1 +0,0 @@
-gone
"""
LOG = "".join(f"2026-01-31T12:00:{second:02}Z INFO worker started\n" for second in range(50))
NPM = """npm warn deprecated inflight@1.0.6: This module leaks memory
added 1203 packages, and audited 1204 packages in 32s

found 0 vulnerabilities
"""


@pytest.mark.parametrize(
    ("text", "kind", "shape"),
    [
        ('{"items": [1, 2], "total": 2, "next": null}', "JSON", "object with 3 keys: items, total, next"),
        ('[\n {"id": 1},\n {"id": 2}\n]\n', "JSON", "array of 2 entries"),
        ("[]", "JSON", "array of 0 entries"),
        ("[7]", "JSON", "array of 1 entry"),
        ('{"id": 1, "name": "Ann"}\n{"id": 2, "name": "Bob"}\n', "JSON lines", "2 records: id, name"),
        ('id,name\n1,"Ann, the first"\n2,Bob\n', "table", "2 rows, columns: id, name"),
        ("id\tname\n1\tAnn\n2\tBob\n", "table", "2 rows, columns: id, name"),
        ("| id | name |\n|----|------|\n| 1  | Ann  |\n", "table", "2 rows, columns: id, name"),
        ("NAME   READY   STATUS\nweb-1  1/1     Running\n", "table", "1 row, columns: NAME, READY, STATUS"),
        (DIFF, "diff", "files: src/a.py, b.md"),
        (TRACE, "stack trace", "ValueError: no such column"),
        (JAVA, "stack trace", "Caused by: java.io.IOException: broken pipe"),
        (LOG, "log", ""),
        ("<!doctype html>\n<html><title>Prices</title><body>error</body></html>", "HTML", ""),
        ('<?xml version="1.0"?>\n<feed><entry/></feed>', "XML", ""),
        ("import os\n\n\ndef main():\n    return error\n", "source code", ""),
        ("Dear all,\n\nthe meeting is moved to Monday.\n", "text", ""),
        ("[2026-01-31 12:00:00] started\n[2026-01-31 12:00:01] stopped\n", "log", ""),
        ("[1, 2", "text", ""),
        ('{"a": 1} trailing {"b"', "text", ""),
        ("", "text", ""),
    ],
)
def test_the_kind_of_a_text_and_its_shape(text: str, kind: str, shape: str) -> None:
    said = digested(text)

    assert (said.kind.value, said.shape) == (kind, shape)
    assert digested(text, piece=3) == said  # however it is cut


def test_a_summary_says_what_it_is_how_large_and_where_the_errors_are() -> None:
    lines = LOG.splitlines()
    lines[6] = "2026-01-31T12:00:06Z WARN disk is filling"
    lines[20] = "2026-01-31T12:00:20Z ERROR disk is full"
    lines[48] = "2026-01-31T12:00:48Z ERROR giving up"

    said = digested("\n".join(lines))

    assert (said.lines, said.error_count) == (50, 2)
    assert said.errors == [(21, lines[20]), (49, lines[48])]
    assert said.text == (
        "Log, 50 lines, 2.0 KB. 2 errors: line 21: 2026-01-31T12:00:20Z ERROR disk is full; line 49: "
        "2026-01-31T12:00:48Z ERROR giving up. Begins: "
        "2026-01-31T12:00:00Z INFO worker started Ends: 2026-01-31T12:00:49Z INFO worker started"
    )
    assert said.brief == "log, 50 lines, 2.0 KB, 2 errors"


@pytest.mark.parametrize(
    "line",
    [
        "error: expected ';'",
        "src/a.ts(1,2): error TS2304: Cannot find name",
        "npm ERR! code ELIFECYCLE",
        "FAILED tests/test_a.py::test_b - AssertionError",
        "--- FAIL: TestPool (0.00s)",
        "fatal: not a git repository",
        "panic: runtime error: index out of range",
        "\x1b[31mERROR\x1b[0m build broke",
        "java.lang.NullPointerException",
        '{"level":"error","msg":"x"}',
        "3 failed, 0 errors",
    ],
)
def test_a_line_that_reports_an_error(line: str) -> None:
    said = digested(f"one\n{line}\nthree\n")

    assert said.error_count == 1
    assert [number for number, _ in said.errors] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "0 errors",
        "no errors found",
        "finished without any errors",
        "errors=0 failed=0",
        '"warnings": 0',
        "2026-01-31 INFO retrying after error",
        '{"level":"info","error":"none yet"}',
        "the failover is ready",
        '    raise ValueError("x")',
        "compiled errorhandler.c",
        "npm WARN old lockfile",
        "warning: error ahead",
    ],
)
def test_a_line_that_reports_nothing(line: str) -> None:
    said = digested(f"one\n{line}\nthree\n")

    assert said.error_count == 0


def test_of_many_errors_the_first_and_the_last_are_kept() -> None:
    said = digested("".join(f"error number {number}\n" for number in range(1, 40_001)))

    assert said.error_count == 40_000
    assert [number for number, _ in said.errors] == [1, 2, 3, 39_999, 40_000]


def test_progress_and_colours_are_not_quoted() -> None:
    said = digested("\x1b[32mdone\x1b[0m\nfetching 1%\rfetching 100%\x07\n")

    assert (said.first_line, said.last_line) == ("done", "fetching 100%")


def test_a_credential_is_not_quoted() -> None:
    key = "ghp_" + "aB3dE5" * 6
    said = digested(f"token {key}\nerror: {key} was refused\nlast {key}\n")

    assert key not in repr(said)
    assert "error: [secret removed" in said.text


def test_a_summary_is_short_whatever_the_text() -> None:
    said = digested(f"error {'y' * 5000}\n" * 2000)

    assert len(said.text) <= MAX_TEXT_CHARS
    assert len(said.brief) <= MAX_BRIEF_CHARS
    assert "\n" not in said.text + said.brief


def test_a_large_text_is_read_in_bounded_memory() -> None:
    line = "2026-01-31T12:00:00Z INFO request served in 12 ms path=/api/items/17\n"
    piece = line * 1000
    digest = TextDigester()
    digest.feed(piece)
    tracemalloc.start()
    for _ in range(300):  # 20 MB
        digest.feed(piece)
    said = digest.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert said.lines == 301_000
    assert peak < 2_000_000


def test_one_endless_line_is_read_in_bounded_memory() -> None:
    digest = TextDigester()
    digest.feed("x")
    tracemalloc.start()
    for _ in range(300):
        digest.feed("x" * 65_536)
    said = digest.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (said.lines, said.chars) == (1, 300 * 65_536 + 1)
    assert peak < 2_000_000


@given(st.text(max_size=300), st.integers(1, 40))
def test_whatever_comes_the_counts_are_right(text: str, piece: int) -> None:
    said = digested(text, piece=piece)

    assert said.chars == len(text)
    assert said.size == len(text.encode())
    assert said.lines == text.count("\n") + (not text.endswith("\n") if text else 0)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(values, max_size=5) | st.dictionaries(st.text("abc", min_size=1), values, max_size=20))
def test_the_shape_of_a_document_is_that_of_its_value(value: list[object] | dict[str, object]) -> None:
    said = digested(json.dumps(value))

    if isinstance(value, list):
        assert said.shape == f"array of {len(value)} {'entry' if len(value) == 1 else 'entries'}"
    else:
        names = f": {', '.join([*value][:12])}{', …' if len(value) > 12 else ''}" if value else ""
        assert said.shape == f"object with {len(value)} key{'' if len(value) == 1 else 's'}{names}"


@pytest.mark.parametrize(("first", "last", "shape"), [("[", "]", "array"), ('{"rows": [', "]}", "object")])
def test_a_long_document_is_not_parsed(first: str, last: str, shape: str) -> None:
    said = digested(first + '"some value of a row that is long", ' * (MAX_JSON_CHARS // 30) + '"end"' + last)

    assert (said.kind, said.shape) == (ContentKind.JSON, shape)


def test_very_deep_nesting_is_no_problem() -> None:
    assert digested("[" * 300_000 + "]" * 300_000).kind is ContentKind.TEXT
