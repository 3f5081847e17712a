-- name: add_shelf
INSERT INTO shelves (tenant_id, shelf) VALUES (:tenant, :shelf) ON CONFLICT (tenant_id, shelf) DO NOTHING

-- name: take_shelf_numbers
UPDATE shelves SET last_id = last_id + :count, revision = revision + 1
WHERE tenant_id = :tenant AND shelf = :shelf
RETURNING last_id, revision

-- No-op update that locks the row until commit, on every engine.
-- name: hold_shelf
UPDATE shelves SET last_id = last_id WHERE tenant_id = :tenant AND shelf = :shelf

-- name: touch_shelf
UPDATE shelves SET revision = revision + 1, rewrites = rewrites + 1 WHERE tenant_id = :tenant AND shelf = :shelf

-- name: add_document
INSERT INTO kb_documents ({document}) VALUES ({:document})

-- name: update_document
UPDATE kb_documents
SET title = :title, category = :category, source = :source, content_hash = :content_hash,
    is_published = :is_published, updated_at = :updated_at, flag = :flag, metadata = :metadata
WHERE tenant_id = :tenant_id AND id = :id

-- name: find_document
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id = :id

-- name: list_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id > :after AND {where} ORDER BY id LIMIT :limit

-- name: list_documents_by_title
SELECT {document},
  (SELECT COUNT(*) FROM kb_chunks c WHERE c.tenant_id = :tenant AND c.document_id = kb_documents.id),
  (SELECT SUM(LENGTH(c.text)) FROM kb_chunks c WHERE c.tenant_id = :tenant AND c.document_id = kb_documents.id)
FROM kb_documents
WHERE tenant_id = :tenant AND ({by_title} > lower(:title) OR ({by_title} = lower(:title) AND id > :after)) AND {where}
ORDER BY {by_title}, id LIMIT :limit

-- name: count_categories
SELECT category, COUNT(*) FROM kb_documents WHERE tenant_id = :tenant GROUP BY category ORDER BY category

-- name: chunks_where
SELECT c.id FROM kb_documents d JOIN kb_chunks c ON c.tenant_id = d.tenant_id AND c.document_id = d.id
WHERE d.tenant_id = :tenant AND {where}

-- name: delete_document
DELETE FROM kb_documents WHERE tenant_id = :tenant AND id = :id

-- name: list_chunks
SELECT {chunk} FROM kb_chunks WHERE tenant_id = :tenant AND document_id = :document_id ORDER BY position

-- Positions are unique, so kept passages are moved out of the way before they get their new positions.
-- name: lift_chunks
UPDATE kb_chunks SET position = -1 - position WHERE tenant_id = :tenant AND document_id = :document_id

-- name: place_chunk
UPDATE kb_chunks SET position = :position WHERE tenant_id = :tenant AND id = :id

-- name: add_chunk
INSERT INTO kb_chunks ({chunk}) VALUES ({:chunk})

-- name: chunk_index_state
SELECT tenant_id, revision, rewrites FROM shelves WHERE tenant_id = :tenant AND shelf = 'knowledge'
