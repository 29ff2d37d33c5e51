-- The index of transcripts (T15), made when it is first used: it can be made anew at any time, and needs FTS5.
CREATE TABLE history_conversations (
    key          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: it stands in every term
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    UNIQUE (scope, conversation)
);

-- What is indexed at once, with a mark that says how far.
CREATE TABLE history_shelves (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES history_conversations (key),
    shelf        TEXT NOT NULL,
    mark         TEXT NOT NULL,
    UNIQUE (conversation, shelf)
);

-- The greater the key, the newer: of what has a time it is that, times 1024, or the next that is free; lines, which
-- have none, are below zero, at conversation * 2^32 + position - 2^62.
CREATE TABLE history_places (
    key      INTEGER PRIMARY KEY,
    shelf    INTEGER NOT NULL REFERENCES history_shelves (key),
    run      TEXT,
    message  TEXT NOT NULL,
    position INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    role     TEXT NOT NULL,
    pair     INTEGER NOT NULL,
    at       INTEGER
);
CREATE INDEX history_places_by_shelf ON history_places (shelf);

-- Each term has the key of its conversation in front, so that a search touches the entries of one conversation alone.
-- Terms are made by us: all that is not ASCII belongs to a term here.
CREATE VIRTUAL TABLE history_terms USING fts5 (terms, characters, columnsize = 0, tokenize = 'ascii');
