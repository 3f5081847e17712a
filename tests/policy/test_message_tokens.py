"""Counting what providers count: text, frames, names, tool calls, results and images by their size."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from wellkept.prompt.rules_images import size_of_base64
from wellkept.prompt.rules_tokens import (
    MESSAGE_TOKENS,
    NAME_TOKENS,
    count_content,
    count_message,
    estimate_tokens,
    estimate_tokens_of_size,
    looks_like_json,
)


def words(text: str) -> int:
    """A tokenizer whose counts can be checked by eye."""
    return len(text.split())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本", 2), ('{"key": "value"}', 5), ("half \ud800 pair", 4)],
)
def test_the_estimate_is_a_quarter_of_the_bytes_and_more_for_json(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_the_estimate_of_a_size_is_that_of_a_text() -> None:
    assert estimate_tokens_of_size(1001) == estimate_tokens("x" * 1001) == 251
    assert estimate_tokens_of_size(1001, is_json=True) == 277


@pytest.mark.parametrize("text", ["[]", "{}", '{"a": 1}\n{"a": 2}\n', "[1, 2]", '  [{"a": null}]  ', "[-1]"])
def test_json_is_recognised(text: str) -> None:
    assert looks_like_json(text)


@pytest.mark.parametrize("text", ["", "[INFO] start {done}", "{x}", '{"a": 1} and more', "[MemoryRef: a - b]"])
def test_what_only_begins_like_json_is_not(text: str) -> None:
    assert not looks_like_json(text)


CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"query": "all the tabs"}'}}


def test_a_message_costs_its_text_its_frame_and_its_name() -> None:
    message = {"role": "user", "content": "be brief please", "name": "ann"}

    assert count_message(message, words) == MESSAGE_TOKENS + 1 + 3 + NAME_TOKENS + 1


@pytest.mark.parametrize(
    ("message", "inside"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, MESSAGE_TOKENS + 1 + 4),
        ({"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}, 2 * (MESSAGE_TOKENS + 1 + 4)),
        ({"role": "assistant", "function_call": CALL["function"]}, MESSAGE_TOKENS + 1 + 4),
        ({"role": "tool", "tool_call_id": "call_1", "content": "three small words"}, 3),
        ({"role": "user", "content": [{"type": "text", "text": "two words"}]}, 2),
        ({"role": "user", "content": [{"type": "input_text", "text": "two words"}]}, 2),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "let me see"}]}, 3),
        ({"role": "assistant", "content": "", "refusal": "not this one"}, 3),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"q": "a b"}}]}, 6),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a b c"}]}, 6),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a b"}]}],
            },
            5,
        ),
        ({"role": "user", "content": [{"type": "of the future", "x": "one two"}]}, 4),
        ({"role": "user", "content": {"type": "text", "text": "one part"}}, 2),
        ({"role": "user", "content": 7}, 1),
    ],
)
def test_what_a_message_holds_beside_its_frame(message: dict[str, Any], inside: int) -> None:
    assert count_message(message, words) - MESSAGE_TOKENS - 1 == inside


def png(width: int, height: int) -> bytes:
    sides = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x0dIHDR" + sides + b"\x08\x02\x00\x00\x00"


def jpeg(width: int, height: int, *, before: int = 0) -> bytes:
    sides = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    segment = b"\xff\xe1" + (before + 2).to_bytes(2, "big") + b"\x00" * before
    return b"\xff\xd8" + segment * 3 + b"\xff\xff\xc2\x00\x11\x08" + sides + b"\x03" * 10


def webp(form: bytes, rest: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + form + b"\x00\x00\x00\x00" + rest + b"\x00" * 16


@pytest.mark.parametrize(
    "file",
    [
        png(640, 480),
        b"GIF89a" + (640).to_bytes(2, "little") + (480).to_bytes(2, "little"),
        jpeg(640, 480),
        jpeg(640, 480, before=60_000),
        webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + (640).to_bytes(2, "little") + (480).to_bytes(2, "little")),
        webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")),
        webp(b"VP8X", b"\x00\x00\x00\x00" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
    ],
)
def test_a_files_first_bytes_tell_its_size(file: bytes) -> None:
    encoded = base64.b64encode(file).decode()

    assert size_of_base64(encoded) == (640, 480)
    assert size_of_base64(f"data:image/any;base64,{encoded}") == (640, 480)


@pytest.mark.parametrize(
    "encoded",
    ["", "not base64!", "data:image/png,abc", "data:image/png;base64", base64.b64encode(b"plain text").decode()]
    + [base64.b64encode(file).decode() for file in (png(0, 9), b"\xff\xd8\xff\xe1\x00", b"GIF8", b"RIFF", b"\x89PNG")],
)
def test_what_tells_no_size_has_none(encoded: str) -> None:
    assert size_of_base64(encoded) is None


def address(file: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(file).decode()}"


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": address(png(512, 512))}}, 85 + 170),
        ({"type": "image_url", "image_url": {"url": address(png(2048, 4096)), "detail": "high"}}, 1105),
        ({"type": "image_url", "image_url": {"url": address(png(4096, 8192)), "detail": "low"}}, 85),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, 765),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "width": 100, "height": 50}}, 255),
        ({"type": "image_url", "image_url": "https://example.com/a.png", "width": 100, "height": 50}, 255),
        ({"type": "input_image", "image_url": address(png(512, 512)), "detail": "low"}, 85),
        ({"type": "image", "source": {"type": "base64", "data": base64.b64encode(png(1000, 1000)).decode()}}, 1334),
        ({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}, 1399),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}, "width": 75, "height": 10}, 1),
    ],
)
def test_an_image_costs_by_its_size_and_not_by_its_bytes(part: dict[str, Any], tokens: int) -> None:
    assert count_content([part], words) == tokens
