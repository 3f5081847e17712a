"""The size of a JSON text in values. What it costs in memory once it is parsed goes by that, not by its length."""

from __future__ import annotations

_NEITHER_QUOTES_NOR_PARTS = bytes(set(range(256)) - set(b'"[{,'))
_CHUNK = 64 * 1024


def count_json_parts(text: str | bytes) -> int:
    """Count brackets and commas: each stands for a value that takes up to 120 bytes. Those in strings count, too.

    >>> count_json_parts('[{"a": 1}, {}]'), count_json_parts(b'["a,b"]')
    (4, 2)
    """
    if isinstance(text, bytes):
        return text.count(b"[") + text.count(b"{") + text.count(b",")
    return text.count("[") + text.count("{") + text.count(",")


def has_too_many_values(body: bytes, most: int) -> bool:
    """Return True if a JSON text has more than `most` brackets and commas outside of its strings.

    >>> has_too_many_values(b'["a,b,c,d"]', 3), has_too_many_values(b'[1,2,3,4]', 3)
    (False, True)
    """
    if count_json_parts(body) <= most:
        return False
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = body.translate(None, _NEITHER_QUOTES_NOR_PARTS)
    count, is_inside = 0, 0
    # In chunks: other threads go on in between, and the rest need not be read once there are too many.
    for start in range(0, len(marks), _CHUNK):
        pieces = marks[start : start + _CHUNK].split(b'"')
        count += sum(map(len, pieces[is_inside::2]))
        if count > most:
            return True
        is_inside ^= (len(pieces) - 1) % 2
    return False
