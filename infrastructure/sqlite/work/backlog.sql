SELECT
    count(*) FILTER (WHERE due_at <= ?1),
    count(*) FILTER (WHERE due_at > ?1 AND taking IS NOT NULL),
    count(*) FILTER (WHERE due_at > ?1 AND taking IS NULL),
    min(due_at) FILTER (WHERE due_at <= ?1),
    count(*) FILTER (WHERE due_at > ?1 AND taking IS NULL AND failures > 0)
FROM work_items WHERE due_at IS NOT NULL
