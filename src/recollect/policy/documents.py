"""What a document may be called, and what it is known by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from recollect.errors import Invalid
from recollect.policy.chunking import VERSION, Part
from recollect.policy.text import checked_text

MAX_TITLE_CHARS = 300
MAX_CATEGORY_CHARS = 100
MAX_CATEGORIES = 100
MAX_SOURCE_CHARS = 1000

MAX_PASSAGES = 20_000
"""Of one document, which is stored in one transaction."""
UNTITLED_CHARS = 80
ID_CHARS = 16

WHITEBOARD = "whiteboard"
"""The category of what a tenant's agents and people write for each other."""


def document_id(*, source: str, title: str) -> str:
    """The same for what comes from the same place, or, if it comes from nowhere, has the same title."""
    known_by = f"source:{source}" if source else f"title:{title}"
    return f"d-{hashlib.sha256(known_by.encode()).hexdigest()[:ID_CHARS]}"


def document_hash(content: bytes, *, suffix: str) -> str:
    """Changes when the document would be cut into other passages."""
    return hashlib.sha256(f"{VERSION}:{suffix}:".encode() + content).hexdigest()[:32]


def checked_title(title: str) -> str:
    """Raises: Invalid."""
    title = " ".join(checked_text(title, what="title").split())
    if not title:
        raise Invalid("A document's title cannot be blank.")
    if len(title) > MAX_TITLE_CHARS:
        raise Invalid(f"A document's title is too long (max {MAX_TITLE_CHARS} characters).")
    return title


def checked_category(category: str) -> str:
    """Raises: Invalid."""
    category = " ".join(checked_text(category, what="category").split())
    if len(category) > MAX_CATEGORY_CHARS:
        raise Invalid(f"A category is too long (max {MAX_CATEGORY_CHARS} characters).")
    return category


def checked_categories(categories: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order given.

    Raises: Invalid.
    """
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise Invalid("Categories are a list of names.")
    checked = tuple(dict.fromkeys(checked_category(each) for each in categories))
    if len(checked) > MAX_CATEGORIES or not all(checked):
        raise Invalid(f"Categories are a list of at most {MAX_CATEGORIES} names, none of them blank.")
    return checked


def title_of(given: str | None, read: str, name: str, parts: Iterable[Part]) -> str:
    """What a document is called: as somebody said, as it says itself, after its file, or by its first words.

    Raises: Invalid.
    """
    if given is not None:
        return checked_title(given)
    first = next((part.text for part in parts if part.text.strip()), "")
    title = " ".join((read or name or first).split())
    longest = MAX_TITLE_CHARS if read or name else UNTITLED_CHARS
    return checked_title(title if len(title) <= longest else title[: longest - 1] + "…")
