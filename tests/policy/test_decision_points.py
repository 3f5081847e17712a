"""When an agent looks back before it acts, and the shape in which it is shown what it finds."""

from __future__ import annotations

import base64

import pytest

from wellkept.agent.prompt import MEMORY_HEADING, MESSAGE_HEADING, shape_messages
from wellkept.errors import Invalid
from wellkept.model import Image, Json
from wellkept.prompt.rules_tokens import MAX_IMAGE_BYTES, MAX_IMAGES, check_image, check_images, decode_image
from wellkept.recall.rules_ranking import MAX_PURPOSES, find_purposes

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("Hello, how are you?", []),
        ("Should we give Ann a discount?", ["decision_memo"]),
        ("Has the budget been approved?", ["decision_memo"]),
        ("Write a blog post about tabs", ["content"]),
        ("Draft the newsletter for March", ["content"]),
        ("Write it down", []),
        ("Which agent should do this?", ["delegation"]),
        ("Who should present the figures?", ["delegation"]),
        ("Who should deploy the shop?", ["delegation", "tool_selection"]),
        ("Who could it be?", []),
        ("Delegate the invoices", ["delegation"]),
        ("Hand this over, please", ["delegation"]),
        ("Deploy the release", ["tool_selection"]),
        ("Look up the price", ["tool_selection"]),
        ("The runway is short", []),
    ],
)
def test_words_call_for_purposes(prompt: str, wanted: list[str]) -> None:
    assert find_purposes(prompt, is_first=False, has_tools=True) == wanted
    assert find_purposes(prompt, is_first=True, has_tools=True) == ["task_intake", *wanted]


def test_without_tools_none_is_chosen() -> None:
    assert find_purposes("Deploy the release", is_first=False, has_tools=False) == []


def test_there_are_never_too_many() -> None:
    prompt = "Should we approve the refund, delegate it, deploy the release and write a blog post?"
    assert len(find_purposes(prompt, is_first=True, has_tools=True)) == MAX_PURPOSES


def chat(*messages: tuple[str, str]) -> list[Json]:
    return [{"role": role, "content": content} for role, content in messages]


def test_a_prompt_has_one_system_message_and_turns_that_alternate() -> None:
    given = chat(
        ("system", "prompt"),
        ("system", "skills"),
        ("user", "one"),
        ("assistant", "two"),
        ("user", "[Tool Result]\n  three"),
        ("user", "[Tool Result]\n  four"),
        ("system", "notes"),
        ("user", "five"),
    )
    asked = f"{MEMORY_HEADING}\n\n[Tool Result]\n  three\n\n[Tool Result]\n  four\n\nnotes\n\n{MESSAGE_HEADING}\n\nfive"

    assert shape_messages(given) == chat(
        ("system", "prompt\n\nskills"), ("user", "one"), ("assistant", "two"), ("user", asked)
    )


def test_what_is_stable_stays_in_front_and_the_rest_goes_to_the_message() -> None:
    given = chat(("system", "prompt"), ("system", "clock"), ("system", "notes"), ("user", "hi"))
    asked = f"{MEMORY_HEADING}\n\nclock\n\nnotes\n\nalso\n\n{MESSAGE_HEADING}\n\nhi"

    assert shape_messages(given, stable=1, also=["also"]) == chat(("system", "prompt"), ("user", asked))
    assert shape_messages(chat(("user", "hi"))) == chat(("user", "hi"))


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + b"\x00" * 20, "image/jpeg"),
        (b"GIF87a" + b"\x00" * 20, "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_images_are_known_by_their_bytes(content: bytes, media_type: str) -> None:
    encoded = base64.b64encode(content).decode()

    assert check_image(content).media_type == media_type
    assert decode_image(encoded) == Image(content=content, media_type=media_type)
    assert decode_image(f"data:text/plain;base64,{encoded}").media_type == media_type, "whatever it is said to be"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("https://example.org/cat.png", "nothing is fetched"),
        ("http://169.254.169.254/latest", "nothing is fetched"),
        ("file:///etc/passwd", "nothing is fetched"),
        ("data:image/png,plain", "without base64"),
        ("not base64!", "not valid base64"),
        (base64.b64encode(b"<svg onload=alert(1)>").decode(), "PNG, JPEG, GIF or WebP"),
        (base64.b64encode(b"%PDF-1.7").decode(), "PNG, JPEG, GIF or WebP"),
        ("", "PNG, JPEG, GIF or WebP"),
        ("A" * (MAX_IMAGE_BYTES * 2), "too large"),
    ],
)
def test_what_is_no_image_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=f"Image 3 .*{sentence}"):
        decode_image(text, number=3)


def test_images_may_not_be_too_large_or_too_many() -> None:
    with pytest.raises(Invalid, match="at most 5 MiB"):
        check_image(PNG + b"\x00" * MAX_IMAGE_BYTES)
    with pytest.raises(Invalid, match=f"at most {MAX_IMAGES} images"):
        check_images([check_image(PNG)] * (MAX_IMAGES + 1))
