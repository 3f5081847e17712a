-- name: sum_counts
SELECT key, sum(value::bigint) FROM tenants, json_each_text(counts::json) GROUP BY key
