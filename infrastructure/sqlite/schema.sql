-- Format 1 of a ledger file; what came later stands in upgrades/, and a new file is made by all of them in turn.
-- The log: its head, and events with their leaves (proof.md L1).
-- An event and its leaf are one row: one write, and no event without its leaf.
CREATE TABLE log_head (
    id     INTEGER PRIMARY KEY CHECK (id = 0),
    size   INTEGER NOT NULL CHECK (size >= 0),
    origin TEXT NOT NULL
);

CREATE TABLE stored_events (
    idx                INTEGER PRIMARY KEY,
    originator_id      TEXT NOT NULL,
    originator_version INTEGER NOT NULL,
    topic              TEXT NOT NULL,
    leaf               BLOB NOT NULL,
    envelope           BLOB NOT NULL,
    state              BLOB NOT NULL,
    UNIQUE (originator_id, originator_version)
);

-- The random reference that stands for a conversation in the log (L3, L4), also when that has been erased (S3).
CREATE TABLE subjects (
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    reference    TEXT NOT NULL UNIQUE,
    state        TEXT NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'erased')),
    PRIMARY KEY (scope, conversation)
) WITHOUT ROWID;

CREATE TRIGGER stored_events_no_update BEFORE UPDATE ON stored_events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER stored_events_no_delete BEFORE DELETE ON stored_events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Transcripts: nothing is changed; an edit or a deletion is a new revision of its message. Whole conversations
-- can be removed, so that they can be erased.
CREATE TABLE conversations (
    key          INTEGER PRIMARY KEY,
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    revision     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope, conversation)
);

-- key = conversation * 2^32 + position, so that a conversation is read as one run of rows.
CREATE TABLE messages (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    id           TEXT NOT NULL,
    run          TEXT NOT NULL,
    role         TEXT NOT NULL,
    status       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    text         BLOB NOT NULL, -- TEXT where it is well formed, else its bytes with three-byte surrogates
    created_at   INTEGER,
    UNIQUE (conversation, id)
);

CREATE TABLE message_revisions (
    message  INTEGER NOT NULL REFERENCES messages (key),
    revision INTEGER NOT NULL CHECK (revision >= 1),
    status   TEXT NOT NULL,
    text     BLOB NOT NULL,
    deleted  INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    PRIMARY KEY (message, revision)
);

CREATE TABLE runs (
    conversation INTEGER NOT NULL REFERENCES conversations (key),
    id           TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    state        TEXT NOT NULL,
    PRIMARY KEY (conversation, id, revision)
) WITHOUT ROWID;

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'messages are append-only: an edit is a new revision'); END;
CREATE TRIGGER message_revisions_no_update BEFORE UPDATE ON message_revisions
BEGIN SELECT RAISE(ABORT, 'revisions are append-only'); END;
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs
BEGIN SELECT RAISE(ABORT, 'runs are append-only: a change of state is a new revision'); END;
