-- name: sum_counts
SELECT key, sum(value::bigint) FROM tenants, json_each_text(counts::json) GROUP BY key

-- Grant tokens of a bucket that is full again at `full_at`: it lacks (full_at - now) * rate of them now.
-- name: lease_tokens
INSERT INTO token_buckets AS b (name, full_at, granted)
VALUES (:name, now() + make_interval(secs => :want / :rate::float8), :want)
ON CONFLICT (name) DO UPDATE SET
  granted = greatest(0, least(:want, floor(:burst
    - extract(epoch FROM greatest(b.full_at, now()) - now())::float8 * :rate::float8)::integer)),
  full_at = greatest(b.full_at, now()) + make_interval(secs => greatest(0, least(:want, floor(:burst
    - extract(epoch FROM greatest(b.full_at, now()) - now())::float8 * :rate::float8)::integer)) / :rate::float8)
RETURNING granted, extract(epoch FROM full_at - now())::float8

-- name: drop_full_buckets
DELETE FROM token_buckets WHERE full_at < now()
