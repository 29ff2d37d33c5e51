-- The index of transcripts (T15). It can be made anew at any time, and is by the first search that finds it empty: so
-- it is kept out of the server's own log, which it would fill, and out of backups. After a crash all of it is empty.
CREATE UNLOGGED TABLE {schema}.history_conversations (
    key  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name bytea NOT NULL UNIQUE -- as in conversations
);

-- What is indexed at once, with a mark that says how far.
CREATE UNLOGGED TABLE {schema}.history_shelves (
    key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES {schema}.history_conversations (key),
    shelf        text COLLATE "C" NOT NULL,
    mark         text COLLATE "C" NOT NULL,
    UNIQUE (conversation, shelf)
);

-- terms: hashes of what the text is found by, each mixed with its conversation, so that a search touches the entries
-- of one conversation alone; also of each two words that stand side by side, so that no text has to be looked through
-- for those that do. A hash that two terms share costs a look at an original, and no more.
CREATE UNLOGGED TABLE {schema}.history_places (
    key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shelf        bigint NOT NULL REFERENCES {schema}.history_shelves (key),
    conversation bigint NOT NULL,
    rank         bigint NOT NULL, -- the greater, the newer
    run          text COLLATE "C",
    message      text COLLATE "C" NOT NULL,
    position     integer NOT NULL,
    part         integer NOT NULL,
    role         text COLLATE "C" NOT NULL,
    pair         integer NOT NULL,
    at           bigint,
    terms        bigint[] NOT NULL
);
ALTER TABLE {schema}.history_places ALTER COLUMN terms SET STORAGE EXTERNAL; -- hashes cannot be compressed
CREATE INDEX history_places_by_shelf ON {schema}.history_places (shelf);
CREATE INDEX history_places_newest ON {schema}.history_places (conversation, rank, key);
CREATE INDEX history_places_by_terms ON {schema}.history_places USING gin (terms)
    WITH (fastupdate = off); -- each search would have to look through what is pending
