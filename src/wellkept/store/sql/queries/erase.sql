-- All rows with text: agent, session or parent, the key in two columns, what tells it from others, then the texts.

-- name: traces_in_agents
SELECT id, NULL, id, NULL, created_at, name, system_prompt, model, tools, colour, icon, knowledge_categories FROM agents
WHERE tenant_id = :tenant AND :agent IN ('', id) AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_memories
SELECT agent_id, session_id, seq, NULL, created_at, text, tags, category, session_id, flag, user_id, metadata,
  namespace, item_key, told, sources FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq > :after AND :session IN ('', session_id)
ORDER BY seq LIMIT :limit

-- name: traces_in_memory_versions
SELECT agent_id, NULL, seq, version, replaced_at, text, tags, metadata FROM memory_versions
WHERE tenant_id = :tenant AND agent_id = :agent{owned_entries} AND (seq, version) > (:after, :after_too)
ORDER BY seq, version LIMIT :limit

-- name: traces_in_changes
SELECT agent_id, NULL, seq, NULL, created_at, text, reason, actor, user_id, memories FROM changes
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq > :after ORDER BY seq LIMIT :limit

-- name: traces_in_context_calls
SELECT agent_id, session_id, id, NULL, at, session_id, layout, blocks, truncations, user_id FROM context_calls
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND id > :after AND :session IN ('', session_id)
ORDER BY id LIMIT :limit

-- name: traces_in_details
SELECT agent_id, session_id, key, NULL, created_at, key, type, description, summary, session_id, metadata, user_id
FROM details
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND key > :after AND :session IN ('', session_id)
ORDER BY key LIMIT :limit

-- name: traces_in_chat_sessions
SELECT agent_id, id, id, NULL, created_at, id, summary, user_id, metadata FROM chat_sessions
WHERE tenant_id = :tenant{owned} AND id > :after AND :agent IN ('', agent_id) AND :session IN ('', id)
ORDER BY id LIMIT :limit

-- name: traces_in_chat_messages
SELECT s.agent_id, m.session_id, m.session_id, m.position, m.created_at, m.content
FROM chat_messages m JOIN chat_sessions s ON s.tenant_id = m.tenant_id AND s.id = m.session_id
WHERE m.tenant_id = :tenant AND (m.session_id, m.position) > (:after, :after_too)
  AND :agent IN ('', s.agent_id) AND :session IN ('', m.session_id)
ORDER BY m.session_id, m.position LIMIT :limit

-- name: traces_in_kb_documents
SELECT NULL, NULL, id, NULL, content_hash, id, title, category, source, flag, metadata FROM kb_documents
WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_kb_chunks
SELECT NULL, document_id || '#' || position, id, NULL, document_id, text FROM kb_chunks
WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_workflows
SELECT NULL, NULL, id, NULL, created_at, id, name FROM workflows
WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_workflow_steps
SELECT agent_id, NULL, workflow_id, position, completed_at, output, step_name, status, folded FROM workflow_steps
WHERE tenant_id = :tenant AND (workflow_id, position) > (:after, :after_too)
ORDER BY workflow_id, position LIMIT :limit

-- name: traces_in_audit_log
SELECT agent_id, action, id, NULL, at, message, meta FROM audit_log
WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_api_keys
SELECT NULL, NULL, id, NULL, NULL, name, agents, user_id FROM api_keys
WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: traces_in_secret_allowances
SELECT NULL, NULL, hash, NULL, created_at FROM secret_allowances
WHERE tenant_id = :tenant AND hash > :after ORDER BY hash LIMIT :limit

-- Removal: dependent rows first, so that the rows of each table are counted.

-- name: erase_memory_index
DELETE FROM memory_index WHERE tenant_id = :tenant AND agent_id = :agent AND seq {in_numbers}

-- name: erase_versions_of_memories
DELETE FROM memory_versions WHERE tenant_id = :tenant AND agent_id = :agent AND seq {in_numbers}

-- name: erase_memories
DELETE FROM memories WHERE tenant_id = :tenant AND agent_id = :agent AND seq {in_numbers}

-- name: erase_memory_versions
DELETE FROM memory_versions WHERE tenant_id = :tenant AND agent_id = :agent AND seq = :parent AND version {in_numbers}

-- name: erase_changes
DELETE FROM changes WHERE tenant_id = :tenant AND agent_id = :agent AND seq {in_numbers}

-- name: erase_context_calls
DELETE FROM context_calls WHERE tenant_id = :tenant AND agent_id = :agent AND id {in_names}

-- name: erase_details
DELETE FROM details WHERE tenant_id = :tenant AND agent_id = :agent AND key {in_names}

-- name: messages_of_sessions
SELECT session_id, position, octet_length(content) FROM chat_messages WHERE tenant_id = :tenant AND session_id {in_names}
ORDER BY session_id, position

-- name: chunks_of_documents
SELECT id, octet_length(text) FROM kb_chunks WHERE tenant_id = :tenant AND document_id {in_names}
ORDER BY id

-- name: steps_of_workflows
SELECT workflow_id, position, octet_length(output) FROM workflow_steps WHERE tenant_id = :tenant AND workflow_id {in_names}
ORDER BY workflow_id, position

-- name: erase_chat_messages
DELETE FROM chat_messages WHERE tenant_id = :tenant AND session_id = :parent AND position {in_numbers}

-- name: erase_messages_of_sessions
DELETE FROM chat_messages WHERE tenant_id = :tenant AND session_id {in_names}

-- name: erase_chat_sessions
DELETE FROM chat_sessions WHERE tenant_id = :tenant AND id {in_names}

-- name: erase_chunk_index
DELETE FROM chunk_index WHERE tenant_id = :tenant AND seq {in_numbers}

-- name: erase_kb_chunks
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND id {in_numbers}

-- name: erase_chunk_index_of_documents
DELETE FROM chunk_index WHERE tenant_id = :tenant
  AND seq IN (SELECT c.id FROM kb_chunks c WHERE c.tenant_id = :tenant AND c.document_id {in_names})

-- name: erase_chunks_of_documents
DELETE FROM kb_chunks WHERE tenant_id = :tenant AND document_id {in_names}

-- name: erase_kb_documents
DELETE FROM kb_documents WHERE tenant_id = :tenant AND id {in_names}

-- name: erase_step_index
DELETE FROM step_index WHERE tenant_id = :tenant AND workflow_id = :parent AND position {in_numbers}

-- name: erase_workflow_steps
DELETE FROM workflow_steps WHERE tenant_id = :tenant AND workflow_id = :parent AND position {in_numbers}

-- name: erase_step_index_of_workflows
DELETE FROM step_index WHERE tenant_id = :tenant AND workflow_id {in_names}

-- name: erase_steps_of_workflows
DELETE FROM workflow_steps WHERE tenant_id = :tenant AND workflow_id {in_names}

-- name: erase_workflows
DELETE FROM workflows WHERE tenant_id = :tenant AND id {in_names}

-- name: erase_secret_allowances
DELETE FROM secret_allowances WHERE tenant_id = :tenant AND hash {in_names}

-- name: erase_agents
DELETE FROM agents WHERE tenant_id = :tenant AND id {in_names}

-- Rows that are kept with their text cleared.

-- name: clear_chat_messages
UPDATE chat_messages SET content = :mark WHERE tenant_id = :tenant AND session_id = :parent AND position {in_numbers}

-- name: clear_chat_sessions
UPDATE chat_sessions SET summary = '', summarized_count = 0, metadata = '{}' WHERE tenant_id = :tenant AND id {in_names}

-- name: clear_api_keys
UPDATE api_keys SET name = '' WHERE tenant_id = :tenant AND id {in_names}

-- name: clear_ids_api_keys
UPDATE api_keys SET name = '', agents = CASE WHEN agents = '[]' THEN agents ELSE '["[erased]"]' END,
  user_id = CASE WHEN user_id = '' THEN '' ELSE :mark END
WHERE tenant_id = :tenant AND id {in_names}

-- name: clear_ids_audit_log
UPDATE audit_log SET message = :mark, folded_message = :mark, meta = '{}', agent_id = NULL
WHERE tenant_id = :tenant AND id {in_numbers}

-- name: clear_audit_log
UPDATE audit_log SET message = :mark, folded_message = :mark, meta = '{}' WHERE tenant_id = :tenant AND id {in_numbers}

-- name: clear_actions_audit_log
UPDATE audit_log SET action = :action WHERE tenant_id = :tenant AND id {in_numbers}

-- name: seal_event
UPDATE audit_log SET previous_hash = :previous_hash, hash = :hash WHERE tenant_id = :tenant AND id = :id

-- Hashes of what was erased.

-- name: keep_erased
INSERT INTO erased_texts (tenant_id, hash, erased_at) VALUES (:tenant, :hash, :now)
ON CONFLICT (tenant_id, hash) DO UPDATE SET erased_at = excluded.erased_at WHERE erased_texts.erased_at < excluded.erased_at

-- name: find_erased
SELECT hash, erased_at FROM erased_texts WHERE tenant_id = :tenant AND hash {in_names}

-- name: list_erased_salts
SELECT DISTINCT substr(hash, 1, 16) FROM erased_texts WHERE tenant_id = :tenant
