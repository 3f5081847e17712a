"""Inputs that are small and ask for much: JSON of any depth, documents and archives that grow when they are read."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.documents import ALL_CODES, pdf, pdf_with_fonts

EXPORT = b'{"wellkept":"export","version":1,"tenant":"default","exported_at":"2026-01-31T12:00:00.000000Z"}\n'
MANY_VALUES = b'{"text":[' + b"{}," * 250_000 + b"1]}"


@dataclass(frozen=True)
class Raw:
    """JSON as it is written, also what is none."""

    text: str


def nested(depth: int) -> Raw:
    return Raw("[" * depth + "]" * depth)


def dumped(value: Any) -> bytes:
    """Return JSON with every `Raw` as it is. Half surrogate pairs are escaped."""
    found: list[Raw] = []

    def hidden(each: object) -> str:
        assert isinstance(each, Raw)
        found.append(each)
        return f"\0raw {len(found) - 1}\0"

    text = json.dumps(value, default=hidden)
    for number, each in enumerate(found):
        text = text.replace(f'"\\u0000raw {number}\\u0000"', each.text)
    return text.encode()


def documents() -> Iterator[tuple[str, bytes]]:
    """Names and contents of documents that are expensive to read, or none."""
    yield "a.md", b"- a\n" * 21_000
    yield "b.md", b"|a" * 300 + b"|\n" + b"|-" * 300 + b"|\n" + (b"|b" * 300 + b"|\n") * 100
    yield "c.md", (b">" * 60 + b" a\n") * 1_000
    yield "d.md", b"[" * 50_000
    yield "a.html", b"<div>" * 200_000
    yield "b.html", b"<li>a" * 60_000
    yield "c.html", b"&amp;" * 100_000 + b"<!--" * 10_000
    yield "d.html", b"<table>" + b"<tr><td colspan=99999999 rowspan=99999999>x" * 2_000
    yield "a.pdf", pdf(*["word " * 40] * 30)
    yield "b.pdf", _pdf_bomb()
    yield "c.pdf", b"%PDF-1.7\n" + b"1 0 obj << /Kids [1 0 R] /Type /Pages /Parent 1 0 R >> endobj\n" * 200
    yield "d.pdf", pdf("one")[:-200]
    yield "e.pdf", pdf_with_fonts(b"BT /F0 12 Tf <0041> Tj ET", ALL_CODES, fonts=60)
    yield "f.pdf", pdf_with_fonts(b"BT /F0 12 Tf <0041> Tj ET", b"beginbfchar\n" + b"<ab" * 3_000_000)
    yield "e.txt", b"\xff\xfe" * 10_000
    yield "f.docx", zipped("word/document.xml", b"<w:p>" * 100_000, 20)
    yield "../../../etc/passwd.md", b"# x"


def _pdf_bomb() -> bytes:
    """A page whose content unpacks to 100 MB."""
    made = zlib.compressobj(9)
    packed = b"".join(made.compress(b" " * 1_000_000) for _ in range(100)) + made.flush()
    small = pdf("one")
    start = small.index(b"stream\n") + len(b"stream\n")
    end = small.index(b"\nendstream")
    length = b"/Length %d" % (end - start)
    return small[:start].replace(length, b"/Length %d" % len(packed)) + packed + small[end:]


def archives() -> Iterator[tuple[str, bytes]]:
    """Queries and contents of imports that are expensive to read, or forged."""
    yield "dry_run=true&format=chatgpt", zipped("conversations.json", b" " * 1_000_000, 100)
    yield "dry_run=true", gzip.compress(EXPORT + b'{"row":[' + b"{}," * 1_000_000 + b"1]}\n")
    yield "dry_run=true", gzip.compress(EXPORT + b" " * 20_000_000)
    yield "dry_run=true&format=mem0", b"[[" + b"{}," * 400_000 + b"1]]"
    yield "dry_run=true&format=mem0", b"[" + b" " * 4_000_000 + b"]"
    yield "merge=true", EXPORT + b'{"table":"memories","row":{"agent_id":"../x","seq":9223372036854775808}}\n'
    yield "merge=true", EXPORT + b'{"end":{"counts":{"agents":9223372036854775808},"sha256":"0"}}\n'
    yield "agent=" + "a" * 2_000, b"\x28\xb5\x2f\xfd" + b"\x00" * 1_000
    yield "format=nothing", b"PK\x03\x04" + b"\xff" * 1_000


def conversation(turns: int, text: str) -> bytes:
    """Return a ChatGPT export of one long conversation."""
    nodes: dict[str, Any] = {}
    for number in range(2 * turns):
        message = {
            "author": {"role": "assistant" if number % 2 else "user"},
            "content": {"content_type": "text", "parts": [f"{text} {number}"]},
            "create_time": 1_700_000_000 + number,
        }
        nodes[str(number)] = {"parent": str(number - 1), "children": [str(number + 1)], "message": message}
    nodes[str(2 * turns - 1)]["children"] = []
    return json.dumps([{"id": "long", "current_node": str(2 * turns - 1), "mapping": nodes}]).encode()


def zipped(name: str, piece: bytes, times: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as file:
        for _ in range(times):
            file.write(piece)
    return packed.getvalue()
