-- A page of ?4 embedded conversations, behind (?1, ?2), that were not looked at as they are now, or not with view ?3.
SELECT c.scope, c.conversation, CAST(c.revision AS TEXT)
FROM conversations AS c LEFT JOIN work_items AS w ON w.scope = c.scope AND w.conversation = c.conversation
WHERE (c.scope, c.conversation) > (?1, ?2) AND (
    w.scope IS NULL
    OR w.turn IS NULL AND w.taking IS NULL AND (
        w.view <> ?3 OR w.revision <> CAST(c.revision AS TEXT) OR w.revision IS NULL AND w.due_at IS NULL
    )
)
ORDER BY c.scope, c.conversation LIMIT ?4
