"""Limits on JSON from outside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wellkept.errors import Invalid
from wellkept.language.values import MAX_DEPTH, check_depth, read_json


def nested(depth: int, innermost: Any) -> Any:
    """Lists and objects by turns."""
    value = innermost
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("innermost", ["text", 1, None])
def test_read_json_accepts_the_greatest_depth_and_nothing_deeper(innermost: Any) -> None:
    deepest = nested(MAX_DEPTH, innermost)
    assert read_json(json.dumps(deepest).encode()) == deepest
    with pytest.raises(Invalid, match="nested too deeply"):
        read_json(json.dumps([deepest]).encode())


def test_check_depth_takes_another_limit() -> None:
    check_depth(nested(40, 1), what="line", most=40)
    with pytest.raises(Invalid, match="The line is nested too deeply"):
        check_depth(nested(41, 1), what="line", most=40)


@pytest.mark.parametrize("value", ["\ud800", ["a", {"b": "\udfff"}], {"\ud83d": 1}])
def test_read_json_rejects_half_a_surrogate_pair(value: Any) -> None:
    with pytest.raises(Invalid, match="half a surrogate pair"):
        read_json(json.dumps(value).encode())


def test_read_json_accepts_whole_pairs_and_a_byte_order_mark() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": "\\ud83c\\udf89"}') == {"a": "🎉"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_read_json_rejects_other_encodings(encoding: str) -> None:
    with pytest.raises((UnicodeDecodeError, json.JSONDecodeError)):
        read_json('{"a": "é"}'.encode(encoding))


def test_read_json_rejects_a_repeated_name() -> None:
    with pytest.raises(Invalid, match="'b' twice"):
        read_json(b'{"a": [{"b": 1, "c": 2, "b": 1}]}')
