"""Protocols for long texts, documents and skills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wellkept.knowledge.rules_chunking import DocumentPart
from wellkept.model import Chunk, Detail, Document, DocumentSize, Owner, Skill
from wellkept.ports.history import Place
from wellkept.ports.providers import Vector

if TYPE_CHECKING:
    from wellkept.knowledge.rules_passages import PassageEvidence
    from wellkept.memory.rules_conditions import Condition


class ContentDraft(Protocol):
    """A text being written to the store in pieces, so that only one piece is in memory."""

    def feed(self, text: str) -> None:
        """Append to the text. Raises: StoreError."""

    def seal(self) -> None:
        """End the text and make it durable. Call it outside of any transaction. Raises: StoreError."""

    def close(self) -> None:
        """Release a draft that was not added. Further calls do nothing."""


class Content(Protocol):
    """A stored text in chunks of equal length in characters, each readable on its own."""

    chars: int
    lines: int
    chunk_chars: int
    newlines: Sequence[int]  # line breaks before each chunk

    def chunk(self, position: int) -> str:
        """Return one chunk of the text; 0 is the first. Raises: StoreError when it is missing or damaged."""


class DetailStore(Protocol):
    """Details of an agent."""

    def begin_content(self, tenant: str) -> ContentDraft:
        """Start a new text for `add_detail`. The caller must close it."""

    def add_detail(self, detail: Detail, draft: ContentDraft) -> Detail:
        """Store the detail with the sealed draft as its content; equal contents are stored once per tenant.

        Raises: Conflict when the agent has a detail with that key.
        """

    def get_detail(self, owner: Owner, key: str) -> Detail:
        """Return one detail. Raises: NotFound."""

    def list_details(
        self,
        owner: Owner,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """List details, newest first, starting after `before` (its time and key); `is_active` None lists all."""

    def search_details(
        self, owner: Owner, words: Sequence[str], *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Search active details for words in key, type, description, summary or source, ignoring case.

        Details with most of the words come first, then the newest; the first `offset` are skipped.
        """

    def set_detail_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Show or hide a detail. Raises: NotFound."""

    def delete_detail(self, owner: Owner, key: str) -> Detail:
        """Delete a detail and return it. Its content stays until `sweep_contents`. Raises: NotFound."""

    def open_content(self, owner: Owner, key: str) -> Content:
        """Open the text of a detail. Raises: NotFound; StoreError when the content is missing or damaged."""

    def sweep_contents(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove contents without a detail and temporary files of dead writers; return how many.

        Contents stored after `stored_before` stay, because their detail may not be committed yet. Contents this
        database never recorded stay too, unless `unknown_too`.
        """

    def drop_content(self, tenant: str, content_hash: str) -> bool:
        """Remove one content at once unless a detail uses it; return True if it was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Parsed file: its parts, and its own title, if any."""

    title: str
    parts: Sequence[DocumentPart]


class DocumentFiles(Protocol):
    """Document files on disk."""

    def locate(self, path_or_text: str | Path) -> Path | None:
        """Return the file or folder this names; None when it is a text.

        Raises: Invalid when it can only be a path and does not exist.
        """

    def is_folder(self, path: Path) -> bool: ...

    def load(self, path: Path) -> bytes:
        """Return the content of a file. Raises: Invalid when the file cannot be read or is too large."""

    def walk(self, folder: Path, *, include: Sequence[str], exclude: Sequence[str]) -> Sequence[Path]:
        """List the readable files below a folder, sorted by path relative to it.

        Raises: Invalid when the folder cannot be read.
        """

    def read(self, content: bytes, *, name: str) -> Reading:
        """Parse a file by its name; without a name the content is parsed as Markdown.

        Raises: Invalid, which names the problem.
        """


class KnowledgeStore(Protocol):
    """Documents of a tenant and their passages."""

    def put_document(self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]) -> Document:
        """Add the document, or replace the one with the same id, in one transaction.

        Passages with unchanged text keep their numbers and vectors.
        """

    def prepare_document(
        self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None] = ()
    ) -> Callable[[], Document]:
        """Compute everything `put_document` stores, and return the function that stores it.

        Call that function inside a transaction; other writers then wait only for the rows.

        Raises: Cancelled, TimedOut.
        """

    def hold_document(self, tenant: str, id: str, *, now: datetime) -> Document | None:
        """Lock a document until the transaction ends, so that no other writer changes or creates it; return it if it
        exists.
        """

    def get_document(self, tenant: str, id: str) -> Document:
        """Return one document. Raises: NotFound."""

    def find_documents(self, tenant: str, ids: Collection[str]) -> Mapping[str, Document]:
        """Return the existing ones of these documents, by id."""

    def list_documents(
        self, tenant: str, *, where: Condition | None = None, after: str = "", limit: int = 100
    ) -> Sequence[Document]:
        """List documents that meet `where` by id, starting after `after`."""

    def list_documents_by_title(
        self, tenant: str, *, where: Condition | None = None, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> Sequence[DocumentSize]:
        """List documents that meet `where` by title, ignoring case, starting after the title and id in `after`."""

    def count_categories(self, tenant: str) -> Mapping[str, int]:
        """Count the documents of each category; an empty one stands for none."""

    def delete_document(self, tenant: str, id: str) -> None:
        """Delete a document and its passages. Raises: NotFound."""

    def list_chunks(self, tenant: str, document_id: str) -> Sequence[Chunk]:
        """List the passages of a document in order."""

    def find_chunks(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, Chunk]:
        """Return the existing ones of these passages, by number."""

    def weigh_chunks(
        self,
        tenant: str,
        terms: Sequence[str],
        vector: Vector | None,
        *,
        categories: Collection[str] = (),
        where: Condition | None = None,
    ) -> PassageEvidence:
        """Collect the word occurrences and cosines of all passages of published documents for a question.

        Empty `categories` means all. `where` limits the documents whose passages may be found; the others still count
        for comparison. A shelf too large for memory is reduced to its best passages.
        """


class SkillFiles(Protocol):
    """Files that hold one skill each."""

    def stamps(self) -> Mapping[str, Hashable]:
        """Return every file with a value that changes when the file does. Cheap enough for every call.

        Raises: Invalid when a folder cannot be read.
        """

    def read(self, path: str) -> Skill:
        """Parse one skill file. Raises: Invalid, which names the file and the line."""
