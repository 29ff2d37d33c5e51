-- A conversation was found under revision ?4 (NULL: none is kept), to be compared with view ?5 (NULL: with none).
-- What is due or taken is left alone. Where nothing can be compared, what waits for its time is left alone, too.
INSERT INTO work_items AS w (scope, conversation, due_at) VALUES (?1, ?2, ?3)
ON CONFLICT (scope, conversation) DO UPDATE SET due_at = min(?3, coalesce(w.due_at, ?3))
WHERE w.turn IS NULL AND w.taking IS NULL AND (
    ?5 IS NOT NULL AND w.view <> ?5
    OR CASE WHEN ?4 IS NULL OR w.revision IS NULL THEN w.due_at IS NULL ELSE w.revision <> ?4 END
)
