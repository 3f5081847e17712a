"""Pictures somebody sends: what they are is read from their bytes, never from what is said about them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence

from recollect.errors import Invalid
from recollect.model import Image

MAX_IMAGES = 8
MAX_IMAGE_BYTES = 5 * 1024 * 1024
KINDS = "PNG, JPEG, GIF or WebP"

_MAGIC: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": lambda start: start.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda start: start.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda start: start.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda start: start[:4] == b"RIFF" and start[8:12] == b"WEBP",
}


def checked_image(content: bytes, *, number: int = 1) -> Image:
    """The picture in these bytes; `number` says which one it is in a refusal.

    >>> checked_image(b"GIF89a...").media_type
    'image/gif'

    Raises: Invalid.
    """
    if len(content) > MAX_IMAGE_BYTES:
        most = MAX_IMAGE_BYTES // 1024 // 1024
        raise Invalid(f"Image {number} is too large: at most {most} MiB are accepted.")
    for media_type, fits in _MAGIC.items():
        if fits(content[:16]):
            return Image(content=content, media_type=media_type)
    raise Invalid(f"Image {number} is none that can be shown to a model; send a {KINDS} file.")


def decoded_image(text: str, *, number: int = 1) -> Image:
    """A picture in base64 or as a `data:` address. Nothing is ever fetched from an address.

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
        return checked_image(b"\0" * (MAX_IMAGE_BYTES + 1), number=number)
    try:
        content = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(f"Image {number} is not valid base64.") from None
    return checked_image(content, number=number)


def checked_images(images: Sequence[Image]) -> Sequence[Image]:
    """Raises: Invalid when there are too many."""
    if len(images) > MAX_IMAGES:
        raise Invalid(f"A prompt has at most {MAX_IMAGES} images, not {len(images)}.")
    return images
