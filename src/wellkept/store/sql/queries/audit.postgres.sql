-- Events that wait to be added to the chain. Only PostgreSQL has them: there, writers of one tenant run side by side.

-- Reserve the next places of a lane. The row stays locked until the commit, so places are visible in order.
-- name: take_places
INSERT INTO audit_lanes (tenant_id, lane, last_place) VALUES (:tenant, :lane, :count)
ON CONFLICT (tenant_id, lane) DO UPDATE SET last_place = audit_lanes.last_place + excluded.last_place

-- A log that is keyed with another key gets no hash, which the column refuses.
-- name: add_waiting_event
INSERT INTO audit_waiting (tenant_id, lane, place, at, action, agent_id, message, meta, hash)
SELECT l.tenant_id, l.lane, l.last_place - CAST(:behind AS bigint), CAST(:at AS timestamptz), :action, :agent_id, :message,
  :meta, CASE WHEN s.last_hash LIKE 'hmac:%' AND NOT s.last_hash LIKE :mark THEN NULL ELSE :hash END
FROM audit_lanes l LEFT JOIN shelves s ON s.tenant_id = l.tenant_id AND s.shelf = 'audit'
WHERE l.tenant_id = :tenant AND l.lane = :lane

-- name: has_waiting_events
SELECT 1 FROM audit_waiting WHERE tenant_id = :tenant AND NOT is_refused LIMIT 1

-- The first of each lane.
-- name: list_waiting_events
SELECT lane, place, hash, tenant_id, at, action, agent_id, message, meta FROM (
  SELECT w.*, row_number() OVER (PARTITION BY lane ORDER BY place) AS number FROM audit_waiting w
  WHERE w.tenant_id = :tenant AND NOT is_refused
) AS waiting
WHERE number <= :limit ORDER BY lane, place

-- name: refuse_waiting_event
UPDATE audit_waiting SET is_refused = TRUE WHERE tenant_id = :tenant AND lane = :lane AND place = :place

-- name: remove_waiting_events
DELETE FROM audit_waiting WHERE tenant_id = :tenant AND lane = :lane AND place <= :place AND NOT is_refused

-- name: hold_free_audit_head
SELECT last_id, last_hash, lanes FROM shelves WHERE tenant_id = :tenant AND shelf = 'audit'
FOR NO KEY UPDATE SKIP LOCKED

-- name: hold_audit_head
SELECT last_id, last_hash, lanes FROM shelves WHERE tenant_id = :tenant AND shelf = 'audit' FOR NO KEY UPDATE

-- name: set_sealed_head
UPDATE shelves SET last_id = :last_id, last_hash = :last_hash, lanes = :lanes
WHERE tenant_id = :tenant AND shelf = 'audit'

-- For each lane the number of events it was given, how many wait, and how many of those were refused.
-- name: count_lanes
SELECT l.lane, l.last_place, (SELECT lanes FROM shelves s WHERE s.tenant_id = :tenant AND s.shelf = 'audit'),
  count(w.place), count(CASE WHEN w.is_refused THEN 1 END)
FROM audit_lanes l LEFT JOIN audit_waiting w ON w.tenant_id = l.tenant_id AND w.lane = l.lane
WHERE l.tenant_id = :tenant
GROUP BY l.lane, l.last_place
