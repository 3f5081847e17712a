-- Transfer of a tenant: export each table in pages by key, and import each row unless it exists.

-- name: export_audit_log
SELECT {event} FROM audit_log WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_secret_allowances
SELECT tenant_id, hash, created_at FROM secret_allowances
WHERE tenant_id = :tenant AND hash > :hash ORDER BY hash LIMIT :limit

-- name: export_erased_texts
SELECT tenant_id, hash, erased_at FROM erased_texts
WHERE tenant_id = :tenant AND hash > :hash ORDER BY hash LIMIT :limit

-- name: any_record
SELECT 1 FROM memories WHERE tenant_id = :tenant AND agent_id = :agent{owned}
UNION ALL SELECT 1 FROM chat_sessions WHERE tenant_id = :tenant AND agent_id = :agent{owned}
UNION ALL SELECT 1 FROM details WHERE tenant_id = :tenant AND agent_id = :agent{owned}
LIMIT 1

-- name: export_agents
SELECT {agent}, last_seq FROM agents WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_memories
SELECT {memory} FROM memories
WHERE tenant_id = :tenant AND (agent_id, seq) > (:agent_id, :seq) ORDER BY agent_id, seq LIMIT :limit

-- name: export_memory_versions
SELECT tenant_id, agent_id, {version} FROM memory_versions
WHERE tenant_id = :tenant AND (agent_id, seq, version) > (:agent_id, :seq, :version)
ORDER BY agent_id, seq, version LIMIT :limit

-- name: export_chat_sessions
SELECT {session} FROM chat_sessions WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_chat_messages
SELECT {message} FROM chat_messages
WHERE tenant_id = :tenant AND (session_id, position) > (:session_id, :position)
ORDER BY session_id, position LIMIT :limit

-- name: export_details
SELECT {detail} FROM details
WHERE tenant_id = :tenant AND (agent_id, key) > (:agent_id, :key) ORDER BY agent_id, key LIMIT :limit

-- name: export_context_calls
SELECT {context_call} FROM context_calls
WHERE tenant_id = :tenant AND (agent_id, id) > (:agent_id, :id) ORDER BY agent_id, id LIMIT :limit

-- name: export_changes
SELECT {change} FROM changes
WHERE tenant_id = :tenant AND (agent_id, seq) > (:agent_id, :seq) ORDER BY agent_id, seq LIMIT :limit

-- name: export_kb_documents
SELECT {document} FROM kb_documents WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_kb_chunks
SELECT {chunk} FROM kb_chunks WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_workflows
SELECT {workflow} FROM workflows WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: export_workflow_steps
SELECT s.tenant_id, s.workflow_id, s.position, s.step_name, s.agent_id, s.status, s.output, s.completed_at, i.seq
FROM step_index i
JOIN workflow_steps s ON s.tenant_id = i.tenant_id AND s.workflow_id = i.workflow_id AND s.position = i.position
WHERE i.tenant_id = :tenant AND i.seq > :seq ORDER BY i.seq LIMIT :limit

-- name: export_shelves
SELECT tenant_id, shelf, last_id, last_hash FROM shelves
WHERE tenant_id = :tenant AND shelf > :shelf ORDER BY shelf LIMIT :limit

-- name: present_audit_log
SELECT hash FROM audit_log WHERE tenant_id = :tenant AND id = :id

-- name: present_secret_allowances
SELECT 1 FROM secret_allowances WHERE tenant_id = :tenant AND hash = :hash

-- name: present_erased_texts
SELECT 1 FROM erased_texts WHERE tenant_id = :tenant AND hash = :hash

-- name: present_agents
SELECT 1 FROM agents WHERE tenant_id = :tenant AND id = :id

-- name: present_memories
SELECT kind, created_at FROM memories WHERE tenant_id = :tenant AND agent_id = :agent_id AND seq = :seq

-- Skip versions that an existing memory has not reached yet: existing memories stay unchanged.
-- name: present_memory_versions
SELECT 1 FROM memory_versions
WHERE tenant_id = :tenant AND agent_id = :agent_id AND seq = :seq AND version = :version
UNION ALL
SELECT 1 FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent_id AND seq = :seq AND version <= :version
LIMIT 1

-- name: present_chat_sessions
SELECT agent_id, created_at FROM chat_sessions WHERE tenant_id = :tenant AND id = :id

-- name: present_chat_messages
SELECT role, created_at FROM chat_messages
WHERE tenant_id = :tenant AND session_id = :session_id AND position = :position

-- name: present_details
SELECT content_hash, created_at FROM details WHERE tenant_id = :tenant AND agent_id = :agent_id AND key = :key

-- name: present_context_calls
SELECT 1 FROM context_calls WHERE tenant_id = :tenant AND agent_id = :agent_id AND id = :id

-- name: present_changes
SELECT created_at FROM changes WHERE tenant_id = :tenant AND agent_id = :agent_id AND seq = :seq

-- name: present_kb_documents
SELECT content_hash FROM kb_documents WHERE tenant_id = :tenant AND id = :id

-- name: present_kb_chunks
SELECT 1 FROM kb_chunks WHERE tenant_id = :tenant AND document_id = :document_id AND position = :position

-- name: present_workflows
SELECT name, created_at FROM workflows WHERE tenant_id = :tenant AND id = :id

-- name: present_workflow_steps
SELECT step_name, completed_at FROM workflow_steps
WHERE tenant_id = :tenant AND workflow_id = :workflow_id AND position = :position

-- name: present_shelves
SELECT 1 FROM shelves WHERE tenant_id = :tenant AND shelf = :shelf

-- name: import_secret_allowances
INSERT INTO secret_allowances (tenant_id, hash, created_at) VALUES (:tenant_id, :hash, :created_at)
ON CONFLICT (tenant_id, hash) DO NOTHING

-- name: import_erased_texts
INSERT INTO erased_texts (tenant_id, hash, erased_at) VALUES (:tenant_id, :hash, :erased_at)
ON CONFLICT (tenant_id, hash) DO NOTHING

-- Leaves out a number that is taken, and an item whose key is.
-- name: import_memories
INSERT INTO memories ({memory}, folded, folded_tags, content_hash)
VALUES ({:memory}, :folded, :folded_tags, :content_hash)
ON CONFLICT DO NOTHING

-- name: import_memory_versions
INSERT INTO memory_versions (tenant_id, agent_id, {version}) VALUES (:tenant_id, :agent_id, {:version})
ON CONFLICT (tenant_id, agent_id, seq, version) DO NOTHING

-- name: import_chat_sessions
INSERT INTO chat_sessions ({session}) VALUES ({:session}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: import_chat_messages
INSERT INTO chat_messages ({message}) VALUES ({:message}) ON CONFLICT (tenant_id, session_id, position) DO NOTHING

-- name: import_details
INSERT INTO details ({detail}, folded) VALUES ({:detail}, :folded) ON CONFLICT (tenant_id, agent_id, key) DO NOTHING

-- name: import_context_calls
INSERT INTO context_calls ({context_call}) VALUES ({:context_call}) ON CONFLICT (tenant_id, agent_id, id) DO NOTHING

-- name: import_changes
INSERT INTO changes ({change}) VALUES ({:change}) ON CONFLICT (tenant_id, agent_id, seq) DO NOTHING

-- name: import_kb_documents
INSERT INTO kb_documents ({document}) VALUES ({:document}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: import_workflows
INSERT INTO workflows ({workflow}) VALUES ({:workflow}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: raise_message_count
UPDATE chat_sessions SET message_count = CASE WHEN message_count < :position THEN :position ELSE message_count END
WHERE tenant_id = :tenant AND id = :id

-- Skip numbers that were assigned elsewhere.
-- name: raise_shelf
UPDATE shelves SET last_id = CASE WHEN last_id < :last_id THEN :last_id ELSE last_id END
WHERE tenant_id = :tenant AND shelf = :shelf

-- name: set_audit_head
UPDATE shelves SET last_id = :last_id, last_hash = :last_hash WHERE tenant_id = :tenant AND shelf = 'audit'
