-- name: add_agent
INSERT INTO agents ({agent}) VALUES ({:agent}) ON CONFLICT (tenant_id, id) DO NOTHING

-- name: find_agent
SELECT {agent} FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: list_agents
SELECT {agent} FROM agents WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit

-- name: update_agent
UPDATE agents
SET name = :name, system_prompt = :system_prompt, model = :model, tools = :tools, colour = :colour, icon = :icon,
    is_active = :is_active, knowledge_categories = :knowledge_categories, updated_at = :updated_at
WHERE tenant_id = :tenant_id AND id = :id

-- name: delete_agent
DELETE FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: count_memories
SELECT agent_id, kind, count(*) FROM memories
WHERE tenant_id = :tenant AND agent_id BETWEEN :first AND :last AND archived_at IS NULL
GROUP BY agent_id, kind

-- name: count_memories_of_user
SELECT kind, count(*) FROM memories
WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND archived_at IS NULL
GROUP BY kind

-- Reserve `count` numbers for new memories; returns the last of them, and what tells whether any was removed.
-- name: take_numbers
UPDATE agents SET last_seq = last_seq + :count, revision = revision + 1
WHERE tenant_id = :tenant AND id = :agent
RETURNING last_seq, life, rewrites

-- Skip numbers that were assigned elsewhere.
-- name: raise_counter
UPDATE agents SET last_seq = CASE WHEN last_seq < :seq THEN :seq ELSE last_seq END
WHERE tenant_id = :tenant AND id = :agent
RETURNING last_seq, life, rewrites

-- Mark a change of the agent's index other than an append.
-- name: touch_index
UPDATE agents SET revision = revision + 1, rewrites = rewrites + 1
WHERE tenant_id = :tenant AND id = :agent

-- Start a new generation: earlier numbers may be reassigned, or belong to erased memories that no cache may keep.
-- name: renew_index
UPDATE agents SET life = :life, revision = revision + 1, rewrites = rewrites + 1
WHERE tenant_id = :tenant AND id = :agent

-- name: find_consolidated
-- users: a counter of the agent
SELECT last_seq, consolidated FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: find_compared
-- users: a counter of the agent
SELECT compared FROM agents WHERE tenant_id = :tenant AND id = :agent

-- name: keep_compared
-- users: a counter of the agent
UPDATE agents SET compared = :seq WHERE tenant_id = :tenant AND id = :agent AND compared < :seq

-- name: keep_consolidated
-- users: a counter of the agent
UPDATE agents SET consolidated = :seq WHERE tenant_id = :tenant AND id = :agent
