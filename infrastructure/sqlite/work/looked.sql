-- Only of the taking that it belongs to: of one that is over nothing is noted.
UPDATE work_items SET
    due_at = CASE WHEN noticed THEN ?1 ELSE ?2 END,
    holder = NULL, taking = NULL, noticed = 0,
    revision = ?3, view = ?4, failures = ?5
WHERE scope = ?6 AND conversation = ?7 AND taking = ?8
