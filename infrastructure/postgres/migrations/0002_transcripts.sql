-- Transcripts: nothing is changed; an edit or a deletion is a new revision of its message. Whole conversations can be
-- removed, so that they can be erased.
--
-- The row of a conversation is what its writers wait for each other at. Each change of the conversation gets the next
-- number here, and what the change stores of a message or run bears that number as its revision.
CREATE TABLE {schema}.conversations (
    key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         bytea NOT NULL UNIQUE, -- SHA-256 of both: together they can be longer than an index takes
    scope        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    revision     bigint NOT NULL CHECK (revision >= 1),
    lines        integer NOT NULL CHECK (lines >= 0) -- deleted ones, too: the position of the next
) WITH (fillfactor = 70); -- updated with every change: room on the page keeps the new version of the row on it

-- For listing them in order. As much of each as an index surely takes: beyond that, in the order they came.
CREATE INDEX conversations_in_order
    ON {schema}.conversations (left(scope, 256), left(conversation, 256), key);

-- A conversation is read as one run of the primary key.
CREATE TABLE {schema}.messages (
    conversation bigint NOT NULL REFERENCES {schema}.conversations (key),
    position     integer NOT NULL CHECK (position >= 0),
    id           text COLLATE "C" NOT NULL,
    run          text COLLATE "C" NOT NULL,
    role         text COLLATE "C" NOT NULL,
    status       text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    text         bytea NOT NULL, -- UTF-8 with three bytes for a lone surrogate: type text has neither those nor NUL (E6)
    created_at   bigint,
    PRIMARY KEY (conversation, position),
    UNIQUE (conversation, id)
);

CREATE TABLE {schema}.message_revisions (
    conversation bigint NOT NULL,
    position     integer NOT NULL,
    revision     bigint NOT NULL CHECK (revision >= 1),
    status       text COLLATE "C" NOT NULL,
    text         bytea NOT NULL,
    deleted      boolean NOT NULL,
    PRIMARY KEY (conversation, position, revision),
    FOREIGN KEY (conversation, position) REFERENCES {schema}.messages
);

CREATE TABLE {schema}.runs (
    conversation bigint NOT NULL REFERENCES {schema}.conversations (key),
    id           text COLLATE "C" NOT NULL,
    revision     bigint NOT NULL CHECK (revision >= 1),
    state        text COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, id, revision)
);

CREATE TRIGGER append_only BEFORE UPDATE ON {schema}.messages
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON {schema}.message_revisions
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON {schema}.runs
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();

-- A conversation as it is now, in one snapshot and one answer: first a row with the runs, by their newest states, then
-- its messages in order, by their newest revisions and without the deleted ones. No row: there is no such conversation.
--
-- How long one conversation is says nothing about the next, and the planner, which goes by the average, would at times
-- read the whole table, with helpers that take longer to start than all of this. So it may use the keys alone.
CREATE FUNCTION {schema}.conversation_now(of_name bytea) RETURNS TABLE (
    id text, run text, role text, status text, kind text, text bytea, runs text[], states text[]
) LANGUAGE plpgsql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_nestloop = off
SET max_parallel_workers_per_gather = 0
SET jit = off
SET work_mem = '64MB'
AS $$
DECLARE
    found_key bigint;
BEGIN
    SELECT c.key INTO found_key FROM {schema}.conversations AS c WHERE c.name = of_name;
    IF found_key IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea,
            array_agg(newest.id), array_agg(newest.state)
        FROM (
            SELECT DISTINCT ON (r.id) r.id, r.state FROM {schema}.runs AS r
            WHERE r.conversation = found_key ORDER BY r.id DESC, r.revision DESC
        ) AS newest;
    IF EXISTS (SELECT FROM {schema}.message_revisions AS r WHERE r.conversation = found_key) THEN
        RETURN QUERY
            SELECT m.id, m.run, m.role, coalesce(newest.status, m.status), m.kind, coalesce(newest.text, m.text),
                NULL::text[], NULL::text[]
            FROM {schema}.messages AS m LEFT JOIN (
                SELECT DISTINCT ON (r.position) r.position, r.status, r.text, r.deleted
                FROM {schema}.message_revisions AS r
                WHERE r.conversation = found_key ORDER BY r.position, r.revision DESC
            ) AS newest ON newest.position = m.position
            WHERE m.conversation = found_key AND newest.deleted IS NOT TRUE ORDER BY m.position;
    ELSE
        RETURN QUERY
            SELECT m.id, m.run, m.role, m.status, m.kind, m.text, NULL::text[], NULL::text[]
            FROM {schema}.messages AS m WHERE m.conversation = found_key ORDER BY m.position;
    END IF;
END $$;

-- Make those conversations that are not there yet, as changed once and with so many lines. Those that are there, or
-- that another transaction makes at this moment, are left out. Always in the same order, so that two who make the same
-- ones wait for each other in turn.
CREATE FUNCTION {schema}.make_conversations(names bytea[], of_scope text, conversations text[], counts integer[])
RETURNS TABLE (name bytea, key bigint) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        INSERT INTO {schema}.conversations AS c (name, scope, conversation, revision, lines)
        SELECT given.name, of_scope, given.conversation, 1, given.lines
        FROM unnest(names, conversations, counts) AS given (name, conversation, lines)
        ORDER BY given.name
        ON CONFLICT (name) DO NOTHING
        RETURNING c.name, c.key;
END $$;

-- Change a conversation by new lines with these ids; it is made when it is new. Where an id is in it already (E4), the
-- first such one and its position are answered: then the whole transaction is to be rolled back.
CREATE FUNCTION {schema}.change_conversation(
    of_name bytea, of_scope text, of_conversation text, ids text[],
    OUT key bigint, OUT revision bigint, OUT first_position integer, OUT taken text, OUT taken_position integer
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO {schema}.conversations AS c (name, scope, conversation, revision, lines)
    VALUES (of_name, of_scope, of_conversation, 1, cardinality(ids))
    ON CONFLICT (name) DO UPDATE SET revision = c.revision + 1, lines = c.lines + excluded.lines
    RETURNING c.key, c.revision, c.lines - cardinality(ids) INTO STRICT key, revision, first_position;
    IF first_position > 0 AND cardinality(ids) > 0 THEN
        SELECT m.id, m.position INTO taken, taken_position
        FROM unnest(ids) WITH ORDINALITY AS given (id, place)
        JOIN {schema}.messages AS m ON m.conversation = change_conversation.key AND m.id = given.id
        ORDER BY given.place LIMIT 1;
    END IF;
END $$;

-- Store new messages.
CREATE FUNCTION {schema}.write_lines(
    conversations bigint[], positions integer[], ids text[], runs text[], roles text[], statuses text[],
    kinds text[], texts bytea[], times bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.messages (conversation, position, id, run, role, status, kind, text, created_at)
    SELECT * FROM unnest(conversations, positions, ids, runs, roles, statuses, kinds, texts, times);
END $$;

-- Store new states of runs.
CREATE FUNCTION {schema}.write_runs(conversations bigint[], revisions bigint[], ids text[], states text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.runs (conversation, revision, id, state)
    SELECT * FROM unnest(conversations, revisions, ids, states);
END $$;

-- Store new revisions of messages; where text or status is null, it stays as it is. An id that is not in its
-- conversation, or is deleted, is answered: then the whole transaction is to be rolled back.
CREATE FUNCTION {schema}.write_revisions(
    conversations bigint[], revisions bigint[], ids text[], texts bytea[], statuses text[], deleted boolean
) RETURNS TABLE (id text) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        WITH given AS (
            SELECT g.*, m.position,
                coalesce(g.text, newest.text, m.text) AS new_text,
                coalesce(g.status, newest.status, m.status) AS new_status,
                m.position IS NOT NULL AND newest.deleted IS NOT TRUE AS known
            FROM unnest(conversations, revisions, ids, texts, statuses)
                AS g (conversation, revision, id, text, status)
            LEFT JOIN {schema}.messages AS m ON m.conversation = g.conversation AND m.id = g.id
            LEFT JOIN LATERAL (
                SELECT r.text, r.status, r.deleted FROM {schema}.message_revisions AS r
                WHERE r.conversation = m.conversation AND r.position = m.position
                ORDER BY r.revision DESC LIMIT 1
            ) AS newest ON true
        ), written AS (
            INSERT INTO {schema}.message_revisions (conversation, position, revision, status, text, deleted)
            SELECT given.conversation, given.position, given.revision, given.new_status, given.new_text, deleted
            FROM given WHERE given.known
        )
        SELECT given.id FROM given WHERE NOT given.known;
END $$;
