-- Times are texts of fixed width that begin with the day.
-- fragment: created_day
CASE WHEN created_at < :since THEN '' ELSE substr(created_at, 1, 10) END

-- fragment: event_day
substr(at, 1, 10)

-- fragment: by_title
lower(title)

-- fragment: entry_bytes
length(terms) + coalesce(length(vector), 0)
