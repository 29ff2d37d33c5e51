-- Of what is due already nothing changes; what is taken is marked; all else is due now.
INSERT INTO work_items AS w (scope, conversation, due_at) VALUES (?1, ?2, ?3)
ON CONFLICT (scope, conversation) DO UPDATE SET
    noticed = w.taking IS NOT NULL,
    due_at = CASE WHEN w.taking IS NULL THEN ?3 ELSE w.due_at END
WHERE w.turn IS NULL AND (w.due_at IS NULL OR w.due_at > ?3) AND NOT w.noticed
