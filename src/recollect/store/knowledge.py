"""A tenant's documents and their passages as rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from recollect.errors import NotFound
from recollect.model import Chunk, Document, Match
from recollect.policy.text import terms
from recollect.ports import Vector
from recollect.store.engine import Row, Unit
from recollect.store.rows import chunk_from, document_from, document_values
from recollect.store.units import Units

NO_SUCH_DOCUMENT = "There is no such document."
SHELF = "knowledge"


class KnowledgeRows(Units):
    """`ports.KnowledgeStore`."""

    def put_document(self, document: Document, texts: Sequence[str], vectors: Sequence[Vector | None]) -> Document:
        tenant = document.tenant
        index = self._engine.index.encoded([terms(text) for text in texts], vectors)

        def put(unit: Unit) -> Row | None:
            unit.run("add_tenant", tenant=tenant, now=document.updated_at)
            unit.run("add_shelf", tenant=tenant, shelf=SHELF)
            # The shelf's row is the first that every write takes: in different orders, two would wait for each other.
            row = unit.one("take_shelf_numbers", tenant=tenant, shelf=SHELF, count=len(texts))
            assert row is not None
            first = row[0] - len(texts) + 1
            if unit.run("update_document", **_without(document_values(document), "created_at")):
                unit.run("delete_chunks", tenant=tenant, document_id=document.id)
                unit.run("touch_shelf", tenant=tenant, shelf=SHELF)
            else:
                unit.run("add_document", **document_values(document))
            chunks = [
                {"tenant_id": tenant, "id": first + place, "document_id": document.id, "position": place, "text": text}
                for place, text in enumerate(texts)
            ]
            unit.run_many("add_chunk", chunks)
            if document.is_published:
                known = {"tenant_id": tenant, "category": document.category}
                unit.run_many("index_chunk", [{**known, "seq": first + i, **entry} for i, entry in enumerate(index)])
            return unit.one("find_document", tenant=tenant, id=document.id)

        row = self._write(tenant, put)
        assert row is not None
        return document_from(row)

    def get_document(self, tenant: str, id: str) -> Document:
        row = self._read(tenant, lambda unit: unit.one("find_document", tenant=tenant, id=id))
        if row is None:
            raise NotFound(NO_SUCH_DOCUMENT)
        return document_from(row)

    def find_documents(self, tenant: str, ids: Collection[str]) -> Mapping[str, Document]:
        names = self._engine.texts(list(ids))
        rows = self._read(tenant, lambda unit: unit.all("find_documents", tenant=tenant, ids=names)) if ids else ()
        return {row[1]: document_from(row) for row in rows}

    def list_documents(self, tenant: str, *, after: str = "", limit: int = 100) -> Sequence[Document]:
        rows = self._read(tenant, lambda unit: unit.all("list_documents", tenant=tenant, after=after, limit=limit))
        return [document_from(row) for row in rows]

    def delete_document(self, tenant: str, id: str) -> None:
        def delete(unit: Unit) -> None:
            unit.run("touch_shelf", tenant=tenant, shelf=SHELF)
            if not unit.run("delete_document", tenant=tenant, id=id):
                raise NotFound(NO_SUCH_DOCUMENT)

        self._write(tenant, delete)

    def find_chunks(self, tenant: str, seqs: Sequence[int]) -> Mapping[int, Chunk]:
        numbers = self._engine.numbers(seqs)
        rows = self._read(tenant, lambda unit: unit.all("find_chunks", tenant=tenant, seqs=numbers))
        return {row[1]: chunk_from(row) for row in rows}

    def search_chunks(
        self, tenant: str, query: str, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        words = terms(query)
        return self._search(tenant).search_chunks(tenant, words, categories=categories, limit=limit) if words else []

    def nearest_chunks(
        self, tenant: str, vector: Vector, *, categories: Collection[str] = (), limit: int = 10
    ) -> Sequence[Match]:
        return self._search(tenant).nearest_chunks(tenant, vector, categories=categories, limit=limit)


def _without(values: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != name}
