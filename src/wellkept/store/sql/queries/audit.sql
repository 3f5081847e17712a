-- name: keep_audit_hash
UPDATE shelves SET last_hash = :hash WHERE tenant_id = :tenant AND shelf = 'audit'

-- name: audit_head
SELECT last_id, last_hash FROM shelves WHERE tenant_id = :tenant AND shelf = 'audit'

-- name: add_event
INSERT INTO audit_log ({event}, folded_message) VALUES ({:event}, :folded)

-- name: list_events
SELECT {event} FROM audit_log
WHERE tenant_id = :tenant AND id < :before AND folded_message LIKE :needle ESCAPE '!' AND {where}
ORDER BY id DESC LIMIT :limit

-- name: list_events_of_agents
SELECT {event} FROM audit_log
WHERE tenant_id = :tenant AND id < :before AND folded_message LIKE :needle ESCAPE '!' AND agent_id {in_names} AND {where}
ORDER BY id DESC LIMIT :limit

-- name: events_after
SELECT {event}, folded_message FROM audit_log WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit

-- name: erasures
SELECT {event} FROM audit_log WHERE tenant_id = :tenant AND action = 'erase.run' ORDER BY id

-- name: event_words_after
SELECT id, message FROM audit_log WHERE tenant_id = :tenant AND id > :id ORDER BY id LIMIT :limit
