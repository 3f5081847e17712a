-- name: last_proposal
-- users: proposals are numbered per agent
SELECT COALESCE(MAX(seq), 0) FROM proposals WHERE tenant_id = :tenant AND agent_id = :agent

-- name: add_proposal
INSERT INTO proposals ({proposal}) VALUES ({:proposal})

-- name: find_proposal
SELECT {proposal} FROM proposals WHERE tenant_id = :tenant AND agent_id = :agent{seen} AND seq = :seq

-- name: list_proposals
SELECT {proposal} FROM proposals
WHERE tenant_id = :tenant AND agent_id = :agent{owned} AND seq < :before AND :state IN ('', state)
ORDER BY seq DESC LIMIT :limit

-- name: decide_proposal
UPDATE proposals
SET state = :state, folds = :folds, memory_seq = :memory_seq, is_new = :is_new, decided_at = :decided_at
WHERE tenant_id = :tenant_id AND agent_id = :agent_id AND seq = :seq AND state = :was
