"""Read the size of images and check the ones a prompt carries."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence

from wellkept.errors import Invalid
from wellkept.model import Image

MAX_HEADER_BYTES = 384 * 1024
"""Bytes read to find the size; a JPEG may start with a thumbnail and a colour profile."""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length


def size_of_base64(encoded: str) -> tuple[int, int] | None:
    """Read (width, height) of a PNG, GIF, JPEG or WebP file in base64 or a `data:` URL; None if unknown."""
    head, comma, payload = encoded.partition(",") if encoded.startswith("data:") else ("", ",", encoded)
    if not comma or (head and not head.endswith(";base64")):
        return None
    start = payload[: MAX_HEADER_BYTES // 3 * 4]
    try:
        return size_of_file(base64.b64decode(start[: len(start) // 4 * 4], validate=True))
    except (binascii.Error, ValueError):
        return None


def size_of_file(start: bytes) -> tuple[int, int] | None:
    """Read (width, height) from the beginning of a file.

    >>> size_of_file(b"GIF89a" + (640).to_bytes(2, "little") + (480).to_bytes(2, "little"))
    (640, 480)
    """
    for magic, read in _SIZE_READERS.items():
        if start.startswith(magic):
            size = read(start)
            return size if size is not None and min(size) > 0 else None
    return None


def _png_size(start: bytes) -> tuple[int, int] | None:
    if len(start) < 24 or start[12:16] != b"IHDR":
        return None
    return int.from_bytes(start[16:20], "big"), int.from_bytes(start[20:24], "big")


def _gif_size(start: bytes) -> tuple[int, int] | None:
    if len(start) < 10:
        return None
    return int.from_bytes(start[6:8], "little"), int.from_bytes(start[8:10], "little")


def _webp_size(start: bytes) -> tuple[int, int] | None:
    if start[8:12] != b"WEBP" or len(start) < 30:
        return None
    if start[12:16] == b"VP8 ":
        return int.from_bytes(start[26:28], "little") & 0x3FFF, int.from_bytes(start[28:30], "little") & 0x3FFF
    if start[12:16] == b"VP8L":
        bits = int.from_bytes(start[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if start[12:16] == b"VP8X":
        return int.from_bytes(start[24:27], "little") + 1, int.from_bytes(start[27:30], "little") + 1
    return None


def _jpeg_size(start: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(start) and start[at] == 0xFF:
        marker = start[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_SIZES:
            return int.from_bytes(start[at + 7 : at + 9], "big"), int.from_bytes(start[at + 5 : at + 7], "big")
        else:
            at += 2 + max(2, int.from_bytes(start[at + 2 : at + 4], "big"))
    return None


_SIZE_READERS: Mapping[bytes, Callable[[bytes], tuple[int, int] | None]] = {
    b"\x89PNG\r\n\x1a\n": _png_size,
    b"GIF8": _gif_size,
    b"RIFF": _webp_size,
    b"\xff\xd8": _jpeg_size,
}


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
