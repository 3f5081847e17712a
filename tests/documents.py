"""Documents for tests, made by hand: a PDF needs no library to be written."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

PAGE = """<!doctype html><html><head><title>Shop</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home of the navigation</a></nav>
<header>Banner of the page</header>
<main><h1>Refund policy</h1><p>Refunds are paid within <b>14 days</b>.</p>
<h2>Fees</h2><table><tr><th>Country</th><th>Fee</th></tr><tr><td>Norway</td><td>3 EUR</td></tr></table>
<ul><li>Gift cards<ul><li>never expire</li></ul></li><li>Vouchers do</li></ul>
<pre>def refund():
    return 14</pre>
<script>alert("never")</script></main><footer>Imprint</footer></body></html>"""


def pdf(*pages: str, outline: Sequence[tuple[str, int]] = ()) -> bytes:
    """A PDF with these pages, a line of text for each line; `outline` names a bookmark and the page it leads to."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
        stream = zlib.compress(f"BT /F1 12 Tf 72 720 Td {lines}ET".encode("latin-1"))
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(len(objects) + 1)
        resources = b"<< /Font << /F1 3 0 R >> >>"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources %s >>"
            % (len(objects), resources)
        )
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    marks = b""
    if outline:
        root, first = len(objects) + 1, len(objects) + 2
        objects.append(
            b"<< /Type /Outlines /Count %d /First %d 0 R /Last %d 0 R >>" % (len(outline), first, root + len(outline))
        )
        for place, (title, page_number) in enumerate(outline):
            number = first + place
            following = b" /Next %d 0 R" % (number + 1) if place + 1 < len(outline) else b""
            target = kids[page_number - 1]
            objects.append(
                b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit]%s >>" % (title.encode(), root, target, following)
            )
        marks = b" /Outlines %d 0 R" % root
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R%s >>" % marks
    return _written(objects)


ALL_CODES = b"beginbfrange\n<0000> <FFFF> <0000>\nendbfrange"


def pdf_with_fonts(content: bytes, character_map: bytes, *, fonts: int = 1, font: bytes = b"/ToUnicode 5 0 R") -> bytes:
    """A page that draws `content` and has fonts which share a character map."""
    names = b" ".join(b"/F%d << /Type /Font /Subtype /Type0 %s >>" % (number, font) for number in range(fonts))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << %s >> >> >>" % names
    )
    return _written(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            page,
            packed_stream(content),
            packed_stream(character_map),
        ]
    )


def packed_stream(content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def _written(objects: Sequence[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(out))
    )
