"""What all agents of a tenant know: documents and their passages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.model import Chunk, Document, Match
from recollect.ports.providers import Vector


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
