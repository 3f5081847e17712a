"""What services need to keep and read long texts, documents and skills."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from recollect.model import Chunk, Detail, Document, Match, Owner, Skill
from recollect.policy.chunking import Part
from recollect.ports.history import Place
from recollect.ports.providers import Vector


class ContentDraft(Protocol):
    """A text on its way into the store, piece by piece: only the piece at hand is in memory."""

    def feed(self, text: str) -> None:
        """Append to the text.

        Raises: StoreError.
        """

    def seal(self) -> None:
        """End the text and make it last. To be called outside of any transaction.

        Raises: StoreError.
        """

    def close(self) -> None:
        """Let go of what was not added. Calling it again does nothing."""


class Content(Protocol):
    """A stored text in chunks of equally many characters, each of which can be read without the others."""

    chars: int
    lines: int
    chunk_chars: int
    newlines: Sequence[int]  # line breaks before each chunk

    def chunk(self, position: int) -> str:
        """One chunk of the text; 0 is the first.

        Raises: StoreError when it is missing or damaged.
        """


class DetailStore(Protocol):
    """An agent's details."""

    def begin_content(self, tenant: str) -> ContentDraft:
        """A new text for `add_detail`; whoever begins one closes it."""

    def add_detail(self, detail: Detail, draft: ContentDraft) -> Detail:
        """Keep the detail with the sealed draft as its content; the same content is kept once for a tenant.

        Raises: Conflict when the agent has a detail of that key.
        """

    def get_detail(self, owner: Owner, key: str) -> Detail:
        """Raises: NotFound."""

    def list_details(
        self,
        owner: Owner,
        *,
        session_id: str | None = None,
        is_active: bool | None = True,
        before: Place | None = None,
        limit: int = 100,
    ) -> Sequence[Detail]:
        """Newest first, beginning behind `before` (when one was stored, and its key); `is_active` None lists all."""

    def search_details(
        self, owner: Owner, words: Sequence[str], *, session_id: str | None = None, offset: int = 0, limit: int = 20
    ) -> Sequence[Detail]:
        """Active ones in whose key, type, description, summary or source any of the words stands, ignoring case: those
        with most of the words first, then the newest, without the first `offset`."""

    def set_detail_active(self, owner: Owner, key: str, is_active: bool) -> Detail:
        """Raises: NotFound."""

    def delete_detail(self, owner: Owner, key: str) -> Detail:
        """The detail as it was. Its content stays until it is swept.

        Raises: NotFound.
        """

    def open_content(self, owner: Owner, key: str) -> Content:
        """The text of a detail.

        Raises: NotFound; StoreError when the content is missing or damaged.
        """

    def sweep_contents(self, tenant: str, *, stored_before: datetime, unknown_too: bool = False) -> int:
        """Remove contents no detail has, and temporary files of dead writers; return how many. Younger ones stay: a
        detail may be on its way to them. Contents this database never knew stay too, unless `unknown_too`."""

    def drop_content(self, tenant: str, content_hash: str) -> bool:
        """Remove one content at once, unless a detail has it; whether it was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file says: its structure, and the title it gives itself, if any."""

    title: str
    parts: Sequence[Part]


class DocumentFiles(Protocol):
    """Files on disk, and what is in them."""

    def locate(self, given: str | Path) -> Path | None:
        """The file or folder this names; None when it is a text of its own.

        Raises: Invalid when it can only be a path, and nothing is there.
        """

    def is_folder(self, path: Path) -> bool: ...

    def load(self, path: Path) -> bytes:
        """Raises: Invalid when the file cannot be read or is too large."""

    def walk(self, folder: Path, *, include: Sequence[str], exclude: Sequence[str]) -> Sequence[Path]:
        """The files of a folder and all below it that can be read here, by path, relative to the folder.

        Raises: Invalid when the folder cannot be read.
        """

    def read(self, content: bytes, *, name: str) -> Reading:
        """What a file of this name says; without a name it is a text, and read as Markdown.

        Raises: Invalid, which says what is wrong with it.
        """


class KnowledgeStore(Protocol):
    """A tenant's documents and their passages."""

    def put_document(self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]) -> Document:
        """Add the document, or replace the one of the same id, in one transaction. Passages whose text is in the new
        one, too, stay as they are, with their numbers and vectors."""

    def prepare_document(
        self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]
    ) -> Callable[[], Document]:
        """Compute all that `put_document` stores, and return the function that stores it: call that one inside a
        transaction, which then keeps other writers waiting for the rows alone.

        Raises: Cancelled, TimedOut."""

    def hold_document(self, tenant: str, id: str, *, now: datetime) -> Document | None:
        """The document, if there is one; until the transaction ends nobody else changes it or makes it."""

    def get_document(self, tenant: str, id: str) -> Document:
        """Raises: NotFound."""

    def find_documents(self, tenant: str, ids: Collection[str]) -> Mapping[str, Document]:
        """Those that exist, by id."""

    def list_documents(
        self, tenant: str, *, category: str = "", after: str = "", limit: int = 100
    ) -> Sequence[Document]:
        """By id, beginning behind `after`; only those of a category if one is named."""

    def delete_document(self, tenant: str, id: str) -> None:
        """Raises: NotFound."""

    def list_chunks(self, tenant: str, document_id: str) -> Sequence[Chunk]:
        """A document's passages, in order."""

    def find_chunks(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, Chunk]:
        """Those that exist, by number."""

    def search_chunks(
        self, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        """Passages of published documents that share words with `query`; no category means all."""

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        """Passages of published documents by cosine to `vector`."""


class SkillFiles(Protocol):
    """Files that each hold one skill."""

    def stamps(self) -> Mapping[str, Hashable]:
        """Every file there is, with something that changes when the file does. Cheap enough for every call.

        Raises: Invalid when a folder cannot be read.
        """

    def read(self, path: str) -> Skill:
        """Raises: Invalid, which names the file and the line."""
