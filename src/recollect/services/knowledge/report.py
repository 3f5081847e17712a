"""What taking in documents did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from recollect.model import Document


class Change(StrEnum):
    """What taking in a document did to the store."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedDocument:
    """One document that was taken in."""

    document: Document
    change: Change
    passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestFailure:
    """One file that could not be taken in, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a text, a file or a folder of files."""

    documents: tuple[IngestedDocument, ...] = ()
    failures: tuple[IngestFailure, ...] = ()
    removed: tuple[str, ...] = ()  # ids of documents whose file is gone

    @property
    def document(self) -> Document:
        """The one document of a text or a file; of a folder, the first."""
        return self.documents[0].document

    @property
    def id(self) -> str:
        return self.document.id
