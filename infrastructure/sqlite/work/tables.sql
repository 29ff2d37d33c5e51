-- The work list of a ledger file: which conversations to look at next. Made when it is first used. Like the read models
-- it can be thrown away: what was in it is found again. What the columns mean is told in domain/work.py.
CREATE TABLE IF NOT EXISTS work_items (
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    due_at       INTEGER,                    -- NULL: when it is noticed. Of one that is taken: when the lease is over
    turn         INTEGER,                    -- of one that is due
    holder       TEXT,
    taking       INTEGER,                    -- random; of one that is taken
    noticed      INTEGER NOT NULL DEFAULT 0, -- since it was taken
    failures     INTEGER NOT NULL DEFAULT 0,
    revision     TEXT,                       -- the one that was looked at
    view         TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (scope, conversation)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS work_items_due ON work_items (turn, due_at) WHERE turn IS NOT NULL;
CREATE INDEX IF NOT EXISTS work_items_to_come ON work_items (due_at) WHERE turn IS NULL AND due_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS work_scopes (
    scope     TEXT PRIMARY KEY,
    last_turn INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS work_scopes_last ON work_scopes (last_turn);

-- Until when nobody else does what is done once in a while.
CREATE TABLE IF NOT EXISTS work_periods (
    name    TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL
) WITHOUT ROWID;
