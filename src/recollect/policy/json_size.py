"""The size of a JSON text in values. What it costs in memory once it is parsed goes by that, not by its length."""

from __future__ import annotations

import re

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


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
    return count_json_parts(body) > most and count_json_parts(_STRING.sub(b"", body)) > most
