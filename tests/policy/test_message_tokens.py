"""Counting what providers count: text, frames, names, tool calls, results and images by their size."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}, 765),
        ({"type": "image_url", "image_url": {"url": "u", "width": 2048, "height": 4096, "detail": "high"}}, 1105),
        ({"type": "image_url", "image_url": {"url": "u", "width": 4096, "height": 8192, "detail": "low"}}, 85),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, 765),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "width": 100, "height": 50}}, 255),
        ({"type": "image_url", "image_url": "https://example.com/a.png", "width": 100, "height": 50}, 255),
        ({"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}, 85),
        ({"type": "image", "source": {"type": "base64", "data": "aGk=", "width": 1000, "height": 1000}}, 1334),
        ({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}, 1399),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}, "width": 75, "height": 10}, 1),
    ],
)
def test_an_image_costs_by_its_size_and_not_by_its_bytes(part: dict[str, Any], tokens: int) -> None:
    assert count_content([part], words) == tokens
