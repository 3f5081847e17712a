"""Count the tokens of texts, messages and tools, and check the images that a prompt carries."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wellkept.errors import Invalid
from wellkept.model import Image

MAX_IMAGES = 8
MAX_IMAGE_BYTES = 5 * 1024 * 1024
KINDS = "PNG, JPEG, GIF or WebP"

_MAGIC: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": lambda start: start.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda start: start.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda start: start.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda start: start[:4] == b"RIFF" and start[8:12] == b"WEBP",
}


def check_image(content: bytes, *, number: int = 1) -> Image:
    """Check an image by its first bytes and its size; `number` identifies it in error messages.

    >>> check_image(b"GIF89a...").media_type
    'image/gif'

    Raises: Invalid.
    """
    if len(content) > MAX_IMAGE_BYTES:
        max_mib = MAX_IMAGE_BYTES // 1024 // 1024
        raise Invalid(f"Image {number} is too large: at most {max_mib} MiB are accepted.")
    for media_type, matches in _MAGIC.items():
        if matches(content[:16]):
            return Image(content=content, media_type=media_type)
    raise Invalid(f"Image {number} is none that can be shown to a model; send a {KINDS} file.")


def decode_image(text: str, *, number: int = 1) -> Image:
    """Decode an image from base64 or a `data:` URL; other URLs are never fetched.

    Raises: Invalid.
    """
    if not isinstance(text, str):
        raise Invalid(f"Image {number} is a text: base64, or a data: address.")
    head, comma, payload = text.partition(",")
    if text[:5].lower() != "data:":
        payload = text
    elif not comma or not head.lower().endswith(";base64"):
        raise Invalid(f"Image {number} is a data: address without base64; send data:image/png;base64,… instead.")
    if "://" in text[:20]:
        raise Invalid(f"Image {number} is an address; nothing is fetched from there. Send the image itself in base64.")
    if len(payload) > MAX_IMAGE_BYTES * 4 // 3 + 1024:
        return check_image(b"\0" * (MAX_IMAGE_BYTES + 1), number=number)
    try:
        content = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(f"Image {number} is not valid base64.") from None
    return check_image(content, number=number)


def check_images(images: Sequence[Image]) -> Sequence[Image]:
    """Check the number of images.

    Raises: Invalid when there are too many.
    """
    if len(images) > MAX_IMAGES:
        raise Invalid(f"A prompt has at most {MAX_IMAGES} images, not {len(images)}.")
    return images


BYTES_PER_TOKEN = 4
JSON_SURCHARGE_PERCENT = 10
"""Surcharge on JSON, where brackets, quotes and short keys are separate tokens."""

_JSON_START = re.compile(r'\s*[{\[]\s*["{\[\]}\d-]')
_TAIL_CHARS = 64


def estimate_tokens(text: str) -> int:
    """Estimate tokens as UTF-8 bytes / 4 rounded up, plus 10 % for text that looks like JSON.

    >>> estimate_tokens(""), estimate_tokens("abcd"), estimate_tokens("naïve"), estimate_tokens('{"a": [1, 2]}')
    (0, 1, 2, 5)
    """
    return estimate_tokens_of_size(byte_size(text), is_json=looks_like_json(text))


def estimate_tokens_of_size(size: int, *, is_json: bool = False) -> int:
    """Estimate the tokens of a text of `size` bytes that need not be in memory."""
    tokens = -(-size // BYTES_PER_TOKEN)
    return -(-tokens * (100 + JSON_SURCHARGE_PERCENT) // 100) if is_json else tokens


def byte_size(text: str) -> int:
    """Return the length of `text` in UTF-8; a lone surrogate counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def looks_like_json(text: str) -> bool:
    """Return True if `text` starts and ends like a JSON document or JSON lines.

    >>> looks_like_json(' [{"id": 1}]\\n'), looks_like_json("[MemoryRef: log-1 - a log]")
    (True, False)
    """
    return _JSON_START.match(text) is not None and text[-_TAIL_CHARS:].rstrip().endswith(("}", "]"))


CountText = Callable[[str], int]
"""Function that counts the tokens of a text."""

Message = Mapping[str, Any]

MESSAGE_TOKENS = 3
"""Tokens that delimit a message, or a tool call inside one."""

NAME_TOKENS = 1
REPLY_TOKENS = 3
"""Tokens that start the reply."""

LOW_DETAIL_TOKENS = 85
TILE_TOKENS = 170
TILE_SIDE = 512
MAX_SIDE = 2048
SHORT_SIDE = 768
"""OpenAI: scale the image into 2048 × 2048, its short side down to 768, and count tiles of 512 × 512."""

PIXELS_PER_TOKEN = 750
LONG_SIDE = 1568
MAX_IMAGE_TOKENS = 1600
"""Anthropic: scale the long side down to 1568 and count one token per 750 pixels, at most 1600."""

UNKNOWN_SIZE = (1024, 1024)
"""Assumed size of an image without a declared size."""

_TEXTS = ("text", "thinking", "refusal", "reasoning", "summary_text")
_CALLS = ("tool_use", "server_tool_use", "function_call")
_RESULTS = ("tool_result", "function_call_output")
_OPENAI_IMAGES = ("image_url", "input_image")


def count_message(message: Message, count: CountText) -> int:
    """Count the tokens of one message, including its role and framing."""
    total = MESSAGE_TOKENS + count(_text_of(message.get("role"))) + count_content(message.get("content"), count)
    if name := message.get("name"):
        total += NAME_TOKENS + count(_text_of(name))
    for key in ("refusal", "reasoning_content"):
        total += count(_text_of(message.get(key)))
    listed, single = message.get("tool_calls"), message.get("function_call")
    calls = [*(listed if isinstance(listed, list | tuple) else ()), single]
    return total + sum(_call_tokens(call, count) for call in calls if call and isinstance(call, Mapping))


def count_content(content: object, count: CountText) -> int:
    """Count the tokens of a message's content: a text, one part, or a list of parts."""
    if content is None:
        return 0
    if isinstance(content, str):
        return count(content)
    if isinstance(content, Mapping):
        return _part_tokens(content, count)
    if isinstance(content, Sequence):
        return sum(count_content(part, count) for part in content)
    return count(_dump_json(content))


def openai_image_tokens(width: int, height: int, *, detail: str = "auto") -> int:
    """Count the tokens of an image by OpenAI's rule.

    >>> openai_image_tokens(1024, 1024), openai_image_tokens(2048, 4096), openai_image_tokens(4096, 8192, detail="low")
    (765, 1105, 85)
    """
    if detail == "low":
        return LOW_DETAIL_TOKENS
    scale = min(1, MAX_SIDE / max(width, height))
    scale = min(scale, SHORT_SIDE / min(width, height))
    tiles = math.prod(math.ceil(max(1, round(side * scale)) / TILE_SIDE) for side in (width, height))
    return LOW_DETAIL_TOKENS + TILE_TOKENS * tiles


def anthropic_image_tokens(width: int, height: int) -> int:
    """Count the tokens of an image by Anthropic's rule.

    >>> anthropic_image_tokens(200, 200), anthropic_image_tokens(1000, 1000), anthropic_image_tokens(8000, 8000)
    (54, 1334, 1600)
    """
    scale = min(1, LONG_SIDE / max(width, height))
    return min(MAX_IMAGE_TOKENS, math.ceil(width * scale * height * scale / PIXELS_PER_TOKEN))


def _part_tokens(part: Mapping[str, Any], count: CountText) -> int:
    kind = _text_of(part.get("type"))
    if kind in _OPENAI_IMAGES:
        return _openai_part_tokens(part)
    if kind == "image":
        return anthropic_image_tokens(*_image_size(part, part.get("source")))
    if kind in _CALLS:
        return _call_tokens(part, count)
    if kind in _RESULTS:
        return MESSAGE_TOKENS + count_content(part.get("content", part.get("output")), count)
    if kind.endswith("text") or kind in _TEXTS:
        return sum(count(_text_of(part[key])) for key in _TEXTS if part.get(key))
    return count(_dump_json(part))


def _call_tokens(call: Mapping[str, Any], count: CountText) -> int:
    inner = call.get("function")
    function = inner if isinstance(inner, Mapping) else call
    text = _text_of(function.get("arguments", function.get("input")))
    return MESSAGE_TOKENS + count(_text_of(function.get("name"))) + count(text)


def _openai_part_tokens(part: Mapping[str, Any]) -> int:
    image = part.get("image_url")
    image_source = image if isinstance(image, Mapping) else {"url": image, **part}
    width, height = _image_size(part, image_source)
    return openai_image_tokens(width, height, detail=_text_of(image_source.get("detail")))


def _image_size(part: Mapping[str, Any], source: object) -> tuple[int, int]:
    """Return the size that a message declares for an image, or `UNKNOWN_SIZE`."""
    for each in (source, part):
        sides = (each.get("width"), each.get("height")) if isinstance(each, Mapping) else ()
        if sides and all(isinstance(side, int) and side > 0 for side in sides):
            return sides  # type: ignore[return-value]
    return UNKNOWN_SIZE


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else _dump_json(value)


def _dump_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        raise Invalid(
            "A message may hold only what JSON knows: texts, numbers, true, false, null, lists, objects."
        ) from None
