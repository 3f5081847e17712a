-- Statements both engines share. Every one that touches a tenant's rows names the tenant.

-- name: add_tenant
INSERT INTO tenants (tenant_id, created_at) VALUES (:tenant, :now) ON CONFLICT (tenant_id) DO NOTHING

-- name: list_tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id

-- name: active_embedder
SELECT id, name, dimensions FROM embedders ORDER BY id DESC LIMIT 1

-- name: add_embedder
INSERT INTO embedders (id, name, dimensions) VALUES (:id, :name, :dimensions) ON CONFLICT (id) DO NOTHING

-- name: add_agent
INSERT INTO agents ({agent}) VALUES ({:agent}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: find_agent
SELECT {agent} FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: list_agents
SELECT {agent} FROM agents WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: update_agent
UPDATE agents
SET name = :name, system_prompt = :system_prompt, model = :model, tools = :tools, colour = :colour, icon = :icon,
    is_active = :is_active, updated_at = :updated_at
WHERE tenant_id = :tenant_id AND id = :id

-- name: delete_agent
DELETE FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: count_memories
SELECT kind, count(*) FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND archived_at IS NULL
GROUP BY kind

-- Take `count` numbers for new memories; the answer is the last of them.
-- name: take_numbers
UPDATE agents SET last_seq = last_seq + :count, revision = revision + 1
WHERE tenant_id = :tenant AND id = :agent
RETURNING last_seq

-- Numbers given elsewhere are never given here.
-- name: raise_counter
UPDATE agents SET last_seq = CASE WHEN last_seq < :seq THEN :seq ELSE last_seq END
WHERE tenant_id = :tenant AND id = :agent
RETURNING last_seq

-- Something other than an append happened to the agent's index.
-- name: touch_index
UPDATE agents SET revision = revision + 1, rewrites = rewrites + 1
WHERE tenant_id = :tenant AND id = :agent

-- name: add_memory
INSERT INTO memories ({memory}, folded, folded_tags, content_hash)
VALUES ({:memory}, :folded, :folded_tags, :content_hash)

-- name: find_memory
SELECT {memory} FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq

-- What every listing of memories asks, and in which order.
-- fragment: listed
:state IN ('all', CASE WHEN archived_at IS NOT NULL THEN 'archived' WHEN held_at IS NOT NULL THEN 'held'
                       WHEN expires_at <= :now OR valid_to <= :now THEN 'expired' ELSE 'live' END)
  AND (NOT :is_past OR COALESCE(valid_from, created_at) <= :now)
  AND folded LIKE :needle ESCAPE '!' AND folded_tags LIKE :tag ESCAPE '!'
ORDER BY seq DESC LIMIT :limit

-- name: list_memories
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND seq < :before
  AND {listed}

-- name: list_episodes
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND kind = 'episode' AND seq < :before
  AND {listed}

-- The second condition on kind is what lets the index of the other kinds be used.
-- name: list_memories_of_kind
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND kind = :kind AND kind <> 'episode' AND seq < :before
  AND {listed}

-- name: find_same_memory
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND content_hash = :content_hash AND kind = :kind AND kind <> 'episode'
  AND archived_at IS NULL AND (expires_at IS NULL OR expires_at > :now) AND (valid_to IS NULL OR valid_to > :now)
ORDER BY seq DESC LIMIT 1

-- name: list_for_review
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND archived_at IS NULL AND flag IS NOT NULL
ORDER BY seq DESC LIMIT :limit

-- name: update_memory
UPDATE memories
SET text = :text, folded = :folded, tags = :tags, folded_tags = :folded_tags, scope = :scope, importance = :importance,
    category = :category, expires_at = :expires_at, archived_at = :archived_at, updated_at = :replaced_at,
    content_hash = :content_hash, valid_to = :valid_to, held_at = :held_at, flag = :flag, version = version + 1
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND version = :version

-- name: keep_version
INSERT INTO memory_versions (tenant_id, agent_id, seq, version, text, tags, importance, replaced_at)
SELECT tenant_id, agent_id, seq, version, text, tags, importance, :replaced_at FROM memories
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND version = :version

-- name: list_versions
SELECT {version} FROM memory_versions
WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq
ORDER BY version DESC

-- name: delete_memory
DELETE FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :seq

-- name: oldest_kept
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND kind = :kind AND kind <> 'episode'
ORDER BY seq DESC LIMIT 1 OFFSET :keep

-- name: prune_memories
DELETE FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND kind = :kind AND kind <> 'episode' AND seq <= :seq

-- name: oldest_kept_episode
SELECT seq FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND kind = 'episode'
ORDER BY seq DESC LIMIT 1 OFFSET :keep

-- name: prune_episodes
DELETE FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND kind = 'episode' AND seq <= :seq

-- name: remove_from_index
DELETE FROM memory_index WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq

-- name: unembedded_memories
SELECT i.agent_id, i.seq, i.version, m.text FROM memory_index i
JOIN memories m ON m.tenant_id = i.tenant_id AND m.agent_id = i.agent_id AND m.seq = i.seq
WHERE i.tenant_id = :tenant AND i.embedder_id IS NULL
ORDER BY i.agent_id, i.seq LIMIT :limit

-- name: unembedded_chunks
SELECT i.seq, i.version, c.text FROM chunk_index i
JOIN kb_chunks c ON c.tenant_id = i.tenant_id AND c.id = i.seq
WHERE i.tenant_id = :tenant AND i.embedder_id IS NULL
ORDER BY i.seq LIMIT :limit

-- name: count_unembedded_memories
SELECT count(*) FROM memory_index WHERE tenant_id = :tenant AND embedder_id IS NULL

-- name: count_unembedded_chunks
SELECT count(*) FROM chunk_index WHERE tenant_id = :tenant AND embedder_id IS NULL

-- name: touch_all_indexes
UPDATE agents SET revision = revision + 1, rewrites = rewrites + 1 WHERE tenant_id = :tenant

-- name: add_shelf
INSERT INTO shelves (tenant_id, shelf) VALUES (:tenant, :shelf) ON CONFLICT (tenant_id, shelf) DO NOTHING

-- name: take_shelf_numbers
UPDATE shelves SET last_id = last_id + :count, revision = revision + 1
WHERE tenant_id = :tenant AND shelf = :shelf
RETURNING last_id

-- name: touch_shelf
UPDATE shelves SET revision = revision + 1, rewrites = rewrites + 1 WHERE tenant_id = :tenant AND shelf = :shelf

-- name: add_document
INSERT INTO kb_documents ({document}) VALUES ({:document})

-- name: update_document
UPDATE kb_documents
SET title = :title, category = :category, source = :source, content_hash = :content_hash,
    is_published = :is_published, updated_at = :updated_at
WHERE tenant_id = :tenant_id AND id = :id

-- name: find_document
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id = :id

-- name: list_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: delete_document
DELETE FROM kb_documents WHERE tenant_id = :tenant AND id = :id

-- name: delete_chunks
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND document_id = :document_id

-- name: add_chunk
INSERT INTO kb_chunks ({chunk}) VALUES ({:chunk})

-- name: take_audit_number
UPDATE shelves SET last_id = last_id + 1 WHERE tenant_id = :tenant AND shelf = 'audit' RETURNING last_id, last_hash

-- name: keep_audit_hash
UPDATE shelves SET last_hash = :hash WHERE tenant_id = :tenant AND shelf = 'audit'

-- name: audit_head
SELECT last_id, last_hash FROM shelves WHERE tenant_id = :tenant AND shelf = 'audit'

-- name: add_event
INSERT INTO audit_log ({event}, folded) VALUES ({:event}, :folded)

-- name: list_events
SELECT {event} FROM audit_log
WHERE tenant_id = :tenant AND id < :before AND folded LIKE :needle ESCAPE '!'
ORDER BY id DESC LIMIT :limit

-- name: events_after
SELECT {event}, folded FROM audit_log WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: take_lease
INSERT INTO leases (name, holder, until) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.until <= :now OR leases.holder = excluded.holder

-- name: end_lease
DELETE FROM leases WHERE name = :name AND holder = :holder

-- name: list_aging
SELECT seq, importance, created_at, last_retrieved_at, expires_at, valid_to FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent AND kind = 'episode' AND archived_at IS NULL AND seq > :after
ORDER BY seq LIMIT :limit

-- name: add_allowance
INSERT INTO secret_allowances (tenant_id, hash, created_at) VALUES (:tenant, :hash, :now)
ON CONFLICT (tenant_id, hash) DO NOTHING

-- name: list_allowances
SELECT hash FROM secret_allowances WHERE tenant_id = :tenant

-- name: delete_allowance
DELETE FROM secret_allowances WHERE tenant_id = :tenant AND hash = :hash
