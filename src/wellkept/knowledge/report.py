"""Results of ingesting documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from wellkept.model import Document


class Change(StrEnum):
    """Effect of ingesting a document."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedSecret:
    """Secret that was removed from a document: its place, such as `line 6`, and the rule that matched."""

    place: str = field(metadata={"examples": ["line 6"]})
    rule: str = field(metadata={"examples": ["aws-access-key"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedDocument:
    """Result for one ingested document."""

    document: Document
    change: Change
    passages: int
    removed_secrets: tuple[RemovedSecret, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestFailure:
    """File that could not be ingested, with the reason."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """Result of ingesting a text, a file or a folder."""

    documents: tuple[IngestedDocument, ...] = ()
    failures: tuple[IngestFailure, ...] = ()
    removed: tuple[str, ...] = ()  # ids of documents with a deleted file

    @property
    def document(self) -> Document:
        """Document of a text or a file; of a folder, the first."""
        return self.documents[0].document

    @property
    def id(self) -> str:
        """Id of `document`."""
        return self.document.id
