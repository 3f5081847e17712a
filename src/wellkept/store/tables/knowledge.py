"""Rows of documents and their passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from wellkept.deadline import check_deadline
from wellkept.errors import NotFound
from wellkept.knowledge.rules_passages import PassageEvidence
from wellkept.language.text import terms
from wellkept.memory.rules_filters import Condition
from wellkept.model import Chunk, Document, DocumentSize
from wellkept.model.stored import Vector
from wellkept.store.conditions import compile_filter
from wellkept.store.engine import IndexQuery, Row, Unit, Units
from wellkept.store.tables.rows import COLUMNS, RecordRows, note_entries

_DOCUMENTS = RecordRows(Document, COLUMNS["document"])
document_from, document_values = _DOCUMENTS.parse, _DOCUMENTS.render
chunk_from = RecordRows(Chunk, COLUMNS["chunk"]).parse

NO_SUCH_DOCUMENT = "There is no such document."
SHELF = "knowledge"

STEP = 500
"""Number of passages processed between two checks of the deadline."""


class KnowledgeRows(Units):
    """Documents of a tenant and their passages."""

    def put_document(self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]) -> Document:
        """Add the document, or replace the one with the same id, in one transaction.

        Passages with unchanged text keep their numbers and vectors.
        """
        return self.prepare_document(document, texts, vectors)()

    def prepare_document(
        self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None] = ()
    ) -> Callable[[], Document]:
        """Compute everything `put_document` stores, and return the function that stores it.

        Call that function inside a transaction; other writers then wait only for the rows.

        Raises: Cancelled, TimedOut.
        """
        tenant, vectors = document.tenant, vectors or [None] * len(texts)
        index: list[Mapping[str, Any]] = []
        for start in range(0, len(texts), STEP):
            check_deadline()
            end = start + STEP
            index += self._engine.index.encoded([terms(text) for text in texts[start:end]], vectors[start:end])

        def put(unit: Unit) -> Row | None:
            unit.put("add_tenant", tenant=tenant, now=document.updated_at)
            unit.put("add_shelf", tenant=tenant, shelf=SHELF)
            # Every write locks the shelf's row first, to avoid deadlocks.
            row = unit.one("take_shelf_numbers", tenant=tenant, shelf=SHELF, count=len(texts))
            assert row is not None
            last, revision = row
            found = unit.one("find_document", tenant=tenant, id=document.id)
            kept: dict[int, int] = {}
            if found is None:
                unit.put("add_document", **document_values(document))
            else:
                unit.put("update_document", **_omit(document_values(document), "created_at"))
                kept = self._keep_same(unit, document_from(found), document, texts, revision)
                unit.put("touch_shelf", tenant=tenant, shelf=SHELF)
            numbers = [kept.get(place, last - len(texts) + 1 + place) for place in range(len(texts))]
            fresh = [place for place in range(len(texts)) if place not in kept]
            place_of = {"tenant_id": tenant, "document_id": document.id}
            rows = [{**place_of, "id": numbers[each], "position": each, "text": texts[each]} for each in fresh]
            _run_in_steps(unit, "add_chunk", rows)
            if document.is_published:
                was_hidden = found is not None and not document_from(found).is_published
                known = {"tenant_id": tenant, "category": document.category, "version": revision}
                to_index = range(len(texts)) if was_hidden else fresh
                _run_in_steps(
                    unit, "index_chunk", [{**known, "seq": numbers[each], **index[each]} for each in to_index]
                )
                note_entries(unit, [index[each] for each in to_index])
            return unit.one("find_document", tenant=tenant, id=document.id)

        def write() -> Document:
            row = self.write(tenant, put)
            assert row is not None
            return document_from(row)

        return write

    def _keep_same(
        self, unit: Unit, old: Document, new: Document, texts: Sequence[str], revision: int
    ) -> dict[int, int]:
        """Delete the passages that are not in the new text and reposition the others.

        Return the number of each kept passage by its new position.
        """
        tenant, same_text = new.tenant, defaultdict[str, list[int]](list)
        chunks = unit.all("list_chunks", tenant=tenant, document_id=old.id)
        for _, number, _, _, text in reversed(chunks):
            same_text[text].append(number)
        kept = {place: same_text[text].pop() for place, text in enumerate(texts) if same_text[text]}
        kept_numbers = set(kept.values())
        gone = [number for _, number, *_ in chunks if number not in kept_numbers]
        unit.put("delete_chunks", tenant=tenant, seqs=gone)
        if [number for _, number, *_ in chunks][: len(kept)] != [kept.get(place) for place in range(len(kept))]:
            # Positions are unique within a document, so make all of them negative before assigning the new ones.
            unit.put("lift_chunks", tenant=tenant, document_id=old.id)
            places = [{"tenant": tenant, "id": number, "position": place} for place, number in kept.items()]
            _run_in_steps(unit, "place_chunk", places)
        if not new.is_published:
            unit.put("hide_chunks", tenant=tenant, seqs=sorted(kept_numbers))
        elif old.category != new.category:
            unit.put("sort_chunks", tenant=tenant, seqs=sorted(kept_numbers), category=new.category, version=revision)
        return kept

    def hold_document(self, tenant: str, id: str, *, now: datetime) -> Document | None:
        """Lock a document until the transaction ends, so that no other writer changes or creates it; return it if it
        exists.
        """

        def hold(unit: Unit) -> Row | None:
            unit.put("add_tenant", tenant=tenant, now=now)
            unit.put("add_shelf", tenant=tenant, shelf=SHELF)
            unit.put("hold_shelf", tenant=tenant, shelf=SHELF)
            return unit.one("find_document", tenant=tenant, id=id)

        row = self.write(tenant, hold)
        return None if row is None else document_from(row)

    def get_document(self, tenant: str, id: str) -> Document:
        """Return one document. Raises: NotFound."""
        return document_from(self._get(tenant, "find_document", NO_SUCH_DOCUMENT, id=id))

    def find_documents(self, tenant: str, ids: Collection[str]) -> Mapping[str, Document]:
        """Return the existing ones of these documents, by id."""
        rows = self._all(tenant, "find_documents", ids=list(ids)) if ids else ()
        return {row[1]: document_from(row) for row in rows}

    def list_documents(
        self, tenant: str, *, where: Condition | None = None, after: str = "", limit: int = 100
    ) -> Sequence[Document]:
        """List documents that meet `where` by id, starting after `after`."""
        clause = compile_filter(where, self._engine.name)
        return [*map(document_from, self._all(tenant, "list_documents", clause, after=after, limit=limit))]

    def list_documents_by_title(
        self, tenant: str, *, where: Condition | None = None, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> Sequence[DocumentSize]:
        """List documents that meet `where` by title, ignoring case, starting after the title and id in `after`."""
        title, id = after
        clause = compile_filter(where, self._engine.name)
        rows = self._all(tenant, "list_documents_by_title", clause, title=title, after=id, limit=limit)
        return [
            DocumentSize(document=document_from(row), passages=passages, chars=int(chars or 0))
            for *row, passages, chars in rows
        ]

    def count_categories(self, tenant: str) -> Mapping[str, int]:
        """Count the documents of each category; an empty one stands for none."""
        return dict(map(tuple, self._all(tenant, "count_categories")))

    def delete_document(self, tenant: str, id: str) -> None:
        """Delete a document and its passages. Raises: NotFound."""

        def delete(unit: Unit) -> None:
            unit.put("touch_shelf", tenant=tenant, shelf=SHELF)
            if not unit.run("delete_document", tenant=tenant, id=id):
                raise NotFound(NO_SUCH_DOCUMENT)

        self.write(tenant, delete)

    def list_chunks(self, tenant: str, document_id: str) -> Sequence[Chunk]:
        """List the passages of a document in order."""
        return [*map(chunk_from, self._all(tenant, "list_chunks", document_id=document_id))]

    def find_chunks(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, Chunk]:
        """Return the existing ones of these passages, by number."""
        rows = self._all(tenant, "find_chunks", seqs=list(seqs)) if seqs else ()
        return {row[1]: chunk_from(row) for row in rows}

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
        query = IndexQuery(terms=terms, vector=vector, groups=categories, where=where)
        return self._search(tenant).weigh_chunks(tenant, query)


def _run_in_steps(unit: Unit, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement for each row, checking the deadline between batches; the caller's transaction rolls back."""
    for start in range(0, len(rows), STEP):
        check_deadline()
        unit.run_many(statement, rows[start : start + STEP])


def _omit(values: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != name}
