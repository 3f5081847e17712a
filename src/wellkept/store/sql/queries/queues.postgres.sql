-- name: sum_counts
SELECT key, sum(value::bigint) FROM tenants, json_each_text(counts::json) GROUP BY key

-- fragment: granted_tokens
greatest(0, least(:want::integer, floor(:burst::float8
  - extract(epoch FROM greatest(b.full_at, excluded.asked_at) - excluded.asked_at)::float8 * :rate::float8)::integer))

-- Grant tokens of a bucket that is full again at `full_at`: it lacks (full_at - now) * rate of them now.
-- name: lease_tokens
INSERT INTO token_buckets AS b (name, granted, full_at, asked_at)
VALUES (:name, :want::integer, now() + make_interval(secs => :want::integer / :rate::float8), now())
ON CONFLICT (name) DO UPDATE SET granted = {granted_tokens}, asked_at = excluded.asked_at,
  full_at = greatest(b.full_at, excluded.asked_at) + make_interval(secs => {granted_tokens} / :rate::float8)
RETURNING granted, extract(epoch FROM full_at - asked_at)::float8

-- name: drop_full_buckets
DELETE FROM token_buckets WHERE full_at < now()
