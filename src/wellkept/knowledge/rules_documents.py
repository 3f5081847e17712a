"""Validate documents and derive their ids, hashes and titles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from wellkept.errors import Invalid
from wellkept.knowledge.rules_chunking import VERSION, DocumentPart
from wellkept.language.text import check_text

MAX_TITLE_CHARS = 300
MAX_CATEGORY_CHARS = 100
MAX_CATEGORIES = 100
MAX_SOURCE_CHARS = 1000

MAX_PASSAGES = 20_000
"""Maximum number of passages of a document, which is stored in one transaction."""
UNTITLED_CHARS = 80
ID_CHARS = 16

WHITEBOARD = "whiteboard"
"""Category of documents that agents and people of a tenant write for each other."""


def document_id(*, source: str, title: str) -> str:
    """Return an id derived from the source, or from the title if there is no source."""
    identity = f"source:{source}" if source else f"title:{title}"
    return f"d-{hashlib.sha256(identity.encode()).hexdigest()[:ID_CHARS]}"


def document_hash(content: bytes, *, suffix: str) -> str:
    """Return a hash that changes if the document would be split into other passages."""
    return hashlib.sha256(f"{VERSION}:{suffix}:".encode() + content).hexdigest()[:32]


def check_title(title: str) -> str:
    """Validate a title. Raises: Invalid."""
    title = " ".join(check_text(title, what="title").split())
    if not title:
        raise Invalid("A document's title cannot be blank.")
    if len(title) > MAX_TITLE_CHARS:
        raise Invalid(f"A document's title is too long (max {MAX_TITLE_CHARS} characters).")
    return title


def check_category(category: str) -> str:
    """Validate a category. Raises: Invalid."""
    category = " ".join(check_text(category, what="category").split())
    if len(category) > MAX_CATEGORY_CHARS:
        raise Invalid(f"A category is too long (max {MAX_CATEGORY_CHARS} characters).")
    return category


def check_categories(categories: Iterable[str]) -> tuple[str, ...]:
    """Validate categories and drop repeats, in the given order. Raises: Invalid."""
    checked = tuple(dict.fromkeys(check_category(each) for each in categories))
    if len(checked) > MAX_CATEGORIES or not all(checked):
        raise Invalid(f"Categories are a list of at most {MAX_CATEGORIES} names, none of them blank.")
    return checked


def choose_title(requested: str | None, read: str, name: str, parts: Iterable[DocumentPart]) -> str:
    """Choose a document's title: the requested one, the one in the text, the file name, or its first words.

    Raises: Invalid.
    """
    if requested is not None:
        return check_title(requested)
    first = next((part.text for part in parts if part.text.strip()), "")
    title = " ".join((read or name or first).split())
    limit = MAX_TITLE_CHARS if read or name else UNTITLED_CHARS
    return check_title(title if len(title) <= limit else title[: limit - 1] + "…")
