-- Format 3: encrypted payloads, and forgetting (proof.md S1, S3).
--
-- The id of the data key that a conversation's payloads are encrypted with; empty where they are not. The key itself
-- is kept elsewhere, wrapped.
ALTER TABLE subjects ADD COLUMN key TEXT NOT NULL DEFAULT '';

-- One change is possible in the log: of an erased subject, the payload of an event that was not encrypted is removed.
-- Its envelope, its leaf and its place stay.
DROP TRIGGER stored_events_no_update;
CREATE TRIGGER stored_events_no_update BEFORE UPDATE ON stored_events
WHEN NOT (
    NEW.state = x'' AND NEW.idx = OLD.idx AND NEW.originator_id = OLD.originator_id
    AND NEW.originator_version = OLD.originator_version AND NEW.topic = OLD.topic
    AND NEW.leaf = OLD.leaf AND NEW.envelope = OLD.envelope
    AND instr(OLD.envelope, CAST('"key":""' AS BLOB)) > 0
    AND EXISTS (
        SELECT 1 FROM subjects WHERE state = 'erased' AND reference = CAST(
            substr(OLD.envelope, instr(OLD.envelope, CAST('"subject":"' AS BLOB)) + 11, 32) AS TEXT
        )
    )
)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
