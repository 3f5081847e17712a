"""Between documents and rows, in the columns of `columns.COLUMNS`."""

from __future__ import annotations

from typing import Any

from recollect.model import Chunk, Document
from recollect.store.engine import Row
from recollect.store.rows import moment


def document_from(row: Row) -> Document:
    tenant, id, title, category, source, content_hash, is_published, created_at, updated_at, flag = row
    return Document(
        id=id,
        tenant=tenant,
        title=title,
        category=category,
        source=source,
        content_hash=content_hash,
        is_published=bool(is_published),
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        flag=flag,
    )


def document_values(document: Document) -> dict[str, Any]:
    return {
        "tenant_id": document.tenant,
        "id": document.id,
        "title": document.title,
        "category": document.category,
        "source": document.source,
        "content_hash": document.content_hash,
        "is_published": document.is_published,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
        "flag": document.flag,
    }


def chunk_from(row: Row) -> Chunk:
    tenant, id, document_id, position, text = row
    return Chunk(id=id, tenant=tenant, document_id=document_id, position=position, text=text)
