-- Format 2: the windows of running agents (window.md). A file of format 1 is brought here by this script, in one
-- transaction; a new file gets these tables behind those of schema.sql.

-- === Originals: the transcripts of runs, and large tool results by their content (T14, T15) ===
--
-- Nothing is changed. All that belongs to a conversation can be removed, so that it can be forgotten.
CREATE TABLE window_runs (
    key          INTEGER PRIMARY KEY, -- in the order they began
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    run          TEXT NOT NULL,
    shape        TEXT NOT NULL,
    UNIQUE (scope, conversation, run)
);

-- key = run * 2^32 + position, so that a run is read as one run of rows: key >> 32 is the run's key, and
-- key & 4294967295 the position of the message in it.
CREATE TABLE window_messages (
    key      INTEGER PRIMARY KEY,
    role     TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    digest   TEXT NOT NULL,
    wire     BLOB NOT NULL
);

CREATE TABLE window_results (
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    digest       TEXT NOT NULL, -- SHA-256 of the content, in hexadecimal
    content      BLOB NOT NULL,
    UNIQUE (scope, conversation, digest)
);

CREATE TRIGGER window_runs_no_update BEFORE UPDATE ON window_runs
BEGIN SELECT RAISE(ABORT, 'the runs of windows are append-only'); END;
CREATE TRIGGER window_messages_no_update BEFORE UPDATE ON window_messages
BEGIN SELECT RAISE(ABORT, 'the messages of windows are append-only'); END;
CREATE TRIGGER window_results_no_update BEFORE UPDATE ON window_results
BEGIN SELECT RAISE(ABORT, 'the results of windows are append-only'); END;
