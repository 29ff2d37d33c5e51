-- The present tables and functions of a ledger on PostgreSQL: what the migrations come to, as a test proves.
-- A new ledger is made by this file; an older one is brought here by the migrations.

-- The log: its head, and events with their leaves (proof.md L1). An event and its leaf are one row.
-- {schema} is the ledger's schema. Text that is compared or ordered is compared byte by byte, as everywhere else.
CREATE TABLE {schema}.log_head (
    id     integer PRIMARY KEY CHECK (id = 0),
    size   bigint NOT NULL CHECK (size >= 0),
    origin text COLLATE "C" NOT NULL
) WITH (fillfactor = 10); -- updated with every event: room on the page keeps each new version of the row on it
INSERT INTO {schema}.log_head VALUES (0, 0, 'compaction-ledger/' || replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE {schema}.stored_events (
    idx                bigint PRIMARY KEY,
    originator_id      text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    topic              text COLLATE "C" NOT NULL,
    leaf               bytea NOT NULL,
    envelope           bytea NOT NULL,
    state              bytea NOT NULL,
    UNIQUE (originator_id, originator_version)
);

-- What a conversation is found by: two ids may be longer together than an entry of an index (E4).
CREATE FUNCTION {schema}.conversation_name(of_scope text, of_conversation text)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(of_scope, 'UTF8') || decode('00', 'hex') || convert_to(of_conversation, 'UTF8'))
$$;

-- The random reference that stands for a conversation in the log (L3, L4), also when that has been erased (S3).
CREATE TABLE {schema}.subjects (
    name         bytea PRIMARY KEY,
    scope        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    reference    text COLLATE "C" NOT NULL UNIQUE,
    state        text COLLATE "C" NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'erased')),
    -- The id of the data key that its payloads are encrypted with; empty where they are not. The key is elsewhere.
    key          text COLLATE "C" NOT NULL DEFAULT ''
);

CREATE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CL003';
END $$;

-- One change is possible in the log: of an erased subject, the payload of an event that was not encrypted is removed.
-- Its envelope, its leaf and its place stay.
CREATE FUNCTION {schema}.refuse_change_of_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sealed text := convert_from(OLD.envelope, 'UTF8');
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.state = '' AND NEW.idx = OLD.idx AND NEW.originator_id = OLD.originator_id
        AND NEW.originator_version = OLD.originator_version AND NEW.topic = OLD.topic
        AND NEW.leaf = OLD.leaf AND NEW.envelope = OLD.envelope AND position('"key":""' IN sealed) > 0
        AND EXISTS (
            SELECT 1 FROM {schema}.subjects AS s
            WHERE s.state = 'erased' AND s.reference = substring(sealed FROM '"subject":"([0-9a-f]{32})"')
        )
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CL003';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {schema}.stored_events
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change_of_event();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON {schema}.stored_events
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();

-- The store's clock (A5): microseconds since the epoch, at this moment and not at the transaction's beginning.
CREATE FUNCTION {schema}.store_clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- Append one event and seal it (L1, L3), in one statement: so the head is locked for as long as a commit takes and
-- never for as long as a client does. The writer gives the envelope in two pieces, between which stand the hash of
-- the stream's previous envelope and the time. The clock is read after the head is locked; where it is outside of
-- the times that the writer's decision holds for, nothing is stored (CL001). Nor is anything of an erased subject, save
-- that it is erased (CL004). Which subject it is stands in the last piece of the envelope.
CREATE FUNCTION {schema}.append_event(
    not_before bigint, not_after bigint, stream text, version bigint, topic text, payload bytea,
    before text, after text,
    OUT idx bigint, OUT recorded bigint
) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
DECLARE
    previous text;
    envelope bytea;
BEGIN
    UPDATE {schema}.log_head AS h SET size = h.size + 1 WHERE h.id = 0 RETURNING h.size - 1 INTO STRICT idx;
    recorded := {schema}.store_clock();
    IF recorded < not_before OR recorded >= not_after THEN
        RAISE EXCEPTION 'it is now %', recorded USING ERRCODE = 'CL001';
    END IF;
    IF EXISTS (
        SELECT 1 FROM {schema}.subjects AS s WHERE s.reference = split_part(after, '"', 10) AND s.state = 'erased'
    ) AND topic NOT LIKE 'Erasure%' THEN
        RAISE EXCEPTION 'the conversation was erased' USING ERRCODE = 'CL004';
    END IF;
    SELECT encode(e.leaf, 'hex') INTO previous FROM {schema}.stored_events AS e
        WHERE e.originator_id = stream ORDER BY e.originator_version DESC LIMIT 1;
    envelope := convert_to(before || coalesce(previous, '') || '","recorded":' || recorded || after, 'UTF8');
    INSERT INTO {schema}.stored_events
        VALUES (idx, stream, version, topic, sha256(decode('00', 'hex') || envelope), envelope, payload);
END $$;

-- Append several events, in order and all of them or none.
CREATE FUNCTION {schema}.append_events(
    not_before bigint, not_after bigint, streams text[], versions bigint[], topics text[], payloads bytea[],
    befores text[], afters text[],
    OUT idx bigint, OUT recorded bigint
) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    FOR n IN 1 .. cardinality(streams) LOOP
        SELECT e.idx, e.recorded INTO STRICT idx, recorded FROM {schema}.append_event(
            not_before, not_after, streams[n], versions[n], topics[n], payloads[n], befores[n], afters[n]
        ) AS e;
        RETURN NEXT;
    END LOOP;
END $$;

-- The reference of a conversation; the one given is kept where it has none.
CREATE FUNCTION {schema}.subject_of(of_scope text, of_conversation text, new_reference text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.subjects (name, scope, conversation, reference)
        VALUES ({schema}.conversation_name(of_scope, of_conversation), of_scope, of_conversation, new_reference)
        ON CONFLICT (name) DO NOTHING;
    RETURN (SELECT s.reference FROM {schema}.subjects AS s
        WHERE s.name = {schema}.conversation_name(of_scope, of_conversation));
END $$;

-- The subject of a conversation; the reference that is given is kept where it has none, and so is the key. Of one
-- whose name an erasure has forgotten between two of the statements nothing is recorded any more (CL004).
CREATE FUNCTION {schema}.subject_with_key(of_scope text, of_conversation text, new_reference text, new_key text)
RETURNS {schema}.subjects LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    of_name bytea := {schema}.conversation_name(of_scope, of_conversation);
    known {schema}.subjects;
BEGIN
    INSERT INTO {schema}.subjects (name, scope, conversation, reference, key)
        VALUES (of_name, of_scope, of_conversation, new_reference, new_key)
        ON CONFLICT (name) DO NOTHING;
    UPDATE {schema}.subjects AS s SET key = new_key WHERE s.name = of_name AND s.key = '' AND s.state = 'live';
    SELECT * INTO known FROM {schema}.subjects AS s WHERE s.name = of_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the conversation was erased' USING ERRCODE = 'CL004';
    END IF;
    RETURN known;
END $$;

-- What an erasure does beside being recorded. It is for the owner of the ledger: no role is given these.
CREATE FUNCTION {schema}.mark_erased(of_reference text) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE {schema}.subjects SET state = 'erased' WHERE reference = of_reference
$$;

CREATE FUNCTION {schema}.forget_name(of_reference text) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE {schema}.subjects SET name = sha256(convert_to('erased ' || reference, 'UTF8')), scope = '',
        conversation = reference, state = 'erased'
    WHERE reference = of_reference
$$;

-- Delete a conversation with all its lines and revisions.
CREATE FUNCTION {schema}.forget_conversation(of_scope text, of_conversation text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    of_key bigint;
BEGIN
    SELECT c.key INTO of_key FROM {schema}.conversations AS c
        WHERE c.name = {schema}.conversation_name(of_scope, of_conversation) FOR UPDATE;
    DELETE FROM {schema}.message_revisions AS r WHERE r.conversation = of_key;
    DELETE FROM {schema}.messages AS m WHERE m.conversation = of_key;
    DELETE FROM {schema}.runs AS r WHERE r.conversation = of_key;
    DELETE FROM {schema}.conversations AS c WHERE c.key = of_key;
END $$;

-- Remove the payloads of an erased subject that are not encrypted; how many.
CREATE FUNCTION {schema}.blank_payloads(of_reference text) RETURNS bigint LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    WITH blanked AS (
        UPDATE {schema}.stored_events AS e SET state = ''
        WHERE position(convert_to('"subject":"' || of_reference || '"', 'UTF8') IN e.envelope) > 0
            AND position(convert_to('"key":""', 'UTF8') IN e.envelope) > 0
            AND e.topic NOT LIKE 'Erasure%' AND e.state <> ''
        RETURNING 1
    )
    SELECT count(*) FROM blanked
$$;

-- The last transaction that each connection committed: so a client whose commit was not answered learns whether it
-- happened (A9). A connection is known here by what its client calls it, also through a pooler. A week is much longer
-- than anybody asks.
CREATE TABLE {schema}.last_commits (
    connection uuid PRIMARY KEY,
    number     bigint NOT NULL,
    at         timestamptz NOT NULL
) WITH (fillfactor = 50); -- updated with every transaction: room on the page keeps each new version of the row on it

-- Say at the beginning of a transaction which one it is. Returns PostgreSQL's number of it.
CREATE FUNCTION {schema}.mark_transaction(of_connection uuid, of_number bigint)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF of_number = 1 THEN -- nobody waits for who is at it already
        DELETE FROM {schema}.last_commits WHERE connection IN (
            SELECT l.connection FROM {schema}.last_commits AS l WHERE l.at < now() - interval '7 days'
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    INSERT INTO {schema}.last_commits VALUES (of_connection, of_number, now())
        ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at;
    RETURN pg_current_xact_id()::text;
END $$;

-- The last transaction that a connection committed. Waits for one that is not settled; for a second, then 55P03.
CREATE FUNCTION {schema}.last_commit_of(of_connection uuid)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    found bigint;
BEGIN
    INSERT INTO {schema}.last_commits AS l VALUES (of_connection, 0, now())
        ON CONFLICT (connection) DO UPDATE SET number = l.number RETURNING l.number INTO STRICT found;
    RETURN found;
END $$;

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

-- The read models (P1 to P4): which generation of tables serves, and the functions that make, index and drop the tables
-- of one. The functions act as the owner of the ledger, so that whoever follows the log needs no right to make a table,
-- and so that all tables belong to one owner, whoever rebuilds. Changing rows needs no function.
CREATE SCHEMA {read_models};

-- Which generation serves, how far it and any other have come, and by which verdicts its rows are judged. Whoever has a
-- right on this table has it on the tables of every generation that is begun from then on.
CREATE TABLE {read_models}.generations (
    generation bigint PRIMARY KEY CHECK (generation BETWEEN 1 AND 999999999),
    position   bigint NOT NULL CHECK (position >= 0),
    layout     integer NOT NULL,
    verdicts   text COLLATE "C" NOT NULL,
    active     boolean NOT NULL
) WITH (fillfactor = 10); -- updated with every batch: room on the page keeps each new version of the row on it
CREATE UNIQUE INDEX one_active_generation ON {read_models}.generations (active) WHERE active;

-- Have all generations for oneself until the transaction ends: nobody begins, switches, or applies a batch meanwhile.
CREATE FUNCTION {read_models}.hold_generations() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '3s'
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('{read_models}', 0));
    PERFORM FROM {read_models}.generations ORDER BY generation FOR UPDATE;
END $$;

-- The tables of generations that are there, also of those that nobody knows any more.
CREATE FUNCTION {read_models}.generation_tables(OUT name name, OUT number bigint) RETURNS SETOF record
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT relname, substring(relname FROM '[0-9]+$')::bigint FROM pg_class
        WHERE relnamespace = '{read_models}'::regnamespace AND relkind = 'r'
            AND relname ~ '^(summaries|ranges|attempts|deliveries|window_chunks|window_pins|window_deliveries)_[1-9][0-9]{0,8}$'
$$;

-- Drop the tables of generations that are over, and say how many are left because somebody still reads them (or has made
-- a view of one). It never waits for a reader, because other readers would have to wait behind it.
CREATE FUNCTION {read_models}.drop_generations() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old name;
    kept integer := 0;
BEGIN
    FOR old IN SELECT t.name FROM {read_models}.generation_tables() AS t
        WHERE NOT EXISTS (SELECT FROM {read_models}.generations AS g WHERE g.generation = t.number)
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE {read_models}.%I IN ACCESS EXCLUSIVE MODE NOWAIT', old);
            EXECUTE format('DROP TABLE {read_models}.%I', old);
        EXCEPTION
            WHEN lock_not_available OR dependent_objects_still_exist THEN kept := kept + 1;
            WHEN undefined_table THEN NULL; -- by somebody else, just now
        END;
    END LOOP;
    RETURN kept;
END $$;

-- Begin the next generation, empty and without the indexes that are not needed to fill it. Others that do not serve are
-- over: what a killed rebuild left behind, or one that goes on, which will find out.
CREATE FUNCTION {read_models}.begin_generation(of_layout integer, of_verdicts text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '3s'
AS $$
DECLARE
    number bigint;
    granted record;
BEGIN
    IF of_layout <> 2 THEN
        RAISE EXCEPTION 'the tables of the read models are of layout 2, not %', of_layout;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('{read_models}', 0));
    number := 1 + greatest( -- no number is ever used again: others may still know it as another generation
        (SELECT max(g.generation) FROM {read_models}.generations AS g),
        (SELECT max(t.number) FROM {read_models}.generation_tables() AS t),
        0
    );
    DELETE FROM {read_models}.generations WHERE NOT active;
    PERFORM {read_models}.drop_generations();
    EXECUTE format($ddl$
        CREATE TABLE {read_models}.summaries_%1$s (
            identity       text COLLATE "C" PRIMARY KEY,
            scope          text COLLATE "C" NOT NULL,
            conversation   text COLLATE "C" NOT NULL,
            from_pair      bigint NOT NULL,
            to_pair        bigint NOT NULL,
            source_hash    text COLLATE "C" NOT NULL,
            provider       text COLLATE "C" NOT NULL,
            model          text COLLATE "C" NOT NULL,
            settings       text COLLATE "C" NOT NULL,
            prompt         text COLLATE "C" NOT NULL,
            prompt_version bigint NOT NULL,
            status         text COLLATE "C" NOT NULL,
            validity       text COLLATE "C" NOT NULL,
            attempts       bigint NOT NULL,
            claim_id       text COLLATE "C",
            holder         text COLLATE "C",
            expires_at     bigint,
            retry_at       bigint,
            failure        text COLLATE "C",
            idx            bigint,
            recorded_at    bigint,
            origin         text COLLATE "C",
            input_tokens   bigint,
            output_tokens  bigint
        );
        CREATE TABLE {read_models}.ranges_%1$s (
            scope         text COLLATE "C" NOT NULL,
            conversation  text COLLATE "C" NOT NULL,
            from_pair     bigint NOT NULL,
            to_pair       bigint NOT NULL,
            status        text COLLATE "C" NOT NULL,
            source_hash   text COLLATE "C" NOT NULL,
            identity      text COLLATE "C" NOT NULL,
            expires_at    bigint,
            retry_at      bigint,
            updated_index bigint NOT NULL,
            updated_at    bigint NOT NULL
        );
        CREATE UNIQUE INDEX ranges_%1$s_key
            ON {read_models}.ranges_%1$s ({schema}.conversation_name(scope, conversation), from_pair);
        CREATE TABLE {read_models}.attempts_%1$s (
            identity      text COLLATE "C" NOT NULL,
            number        bigint NOT NULL,
            scope         text COLLATE "C" NOT NULL,
            conversation  text COLLATE "C" NOT NULL,
            from_pair     bigint NOT NULL,
            to_pair       bigint NOT NULL,
            attempt_id    text COLLATE "C" NOT NULL,
            claim_id      text COLLATE "C" NOT NULL,
            holder        text COLLATE "C" NOT NULL,
            outcome       text COLLATE "C" NOT NULL,
            failure       text COLLATE "C",
            also          text COLLATE "C" NOT NULL,
            detail        text COLLATE "C",
            signals       text COLLATE "C" NOT NULL,
            tool_calls    bigint NOT NULL,
            output_digest text COLLATE "C",
            input_tokens  bigint,
            output_tokens bigint,
            started_index bigint NOT NULL,
            started_at    bigint NOT NULL,
            ended_index   bigint,
            ended_at      bigint,
            PRIMARY KEY (identity, number)
        );
        CREATE TABLE {read_models}.deliveries_%1$s (
            delivery_id    text COLLATE "C" PRIMARY KEY,
            scope          text COLLATE "C" NOT NULL,
            conversation   text COLLATE "C" NOT NULL,
            run            text COLLATE "C",
            shape          text COLLATE "C" NOT NULL,
            bytes_used     bigint NOT NULL,
            bytes_allowed  bigint NOT NULL,
            request_digest text COLLATE "C" NOT NULL,
            idx            bigint NOT NULL,
            recorded_at    bigint NOT NULL
        );
        CREATE TABLE {read_models}.window_chunks_%1$s (
            identity       text COLLATE "C" PRIMARY KEY,
            scope          text COLLATE "C" NOT NULL,
            conversation   text COLLATE "C" NOT NULL,
            run            text COLLATE "C" NOT NULL,
            first_message  bigint NOT NULL,
            last_message   bigint NOT NULL,
            source_hash    text COLLATE "C" NOT NULL,
            provider       text COLLATE "C" NOT NULL,
            model          text COLLATE "C" NOT NULL,
            settings       text COLLATE "C" NOT NULL,
            prompt         text COLLATE "C" NOT NULL,
            prompt_version bigint NOT NULL,
            replaces       text COLLATE "C" NOT NULL,
            status         text COLLATE "C" NOT NULL,
            claim_id       text COLLATE "C" NOT NULL,
            replaced_by    text COLLATE "C",
            attempts       bigint NOT NULL,
            holder         text COLLATE "C",
            expires_at     bigint,
            retry_at       bigint,
            failure        text COLLATE "C",
            idx            bigint,
            recorded_at    bigint,
            ungrounded     bigint,
            input_tokens   bigint,
            output_tokens  bigint,
            updated_index  bigint NOT NULL,
            updated_at     bigint NOT NULL
        );
        CREATE TABLE {read_models}.window_pins_%1$s (
            pin_key       text COLLATE "C" PRIMARY KEY,
            scope         text COLLATE "C" NOT NULL,
            conversation  text COLLATE "C" NOT NULL,
            run           text COLLATE "C" NOT NULL,
            pin_id        text COLLATE "C" NOT NULL,
            message       bigint NOT NULL,
            digest        text COLLATE "C" NOT NULL,
            part          bigint NOT NULL,
            quote_start   bigint NOT NULL,
            quote_end     bigint NOT NULL,
            quote         text COLLATE "C" NOT NULL,
            exchange      bigint NOT NULL,
            proposer      text COLLATE "C" NOT NULL,
            supersedes    text COLLATE "C",
            superseded_by text COLLATE "C",
            idx           bigint NOT NULL,
            recorded_at   bigint NOT NULL
        );
        CREATE TABLE {read_models}.window_deliveries_%1$s (
            delivery_key   text COLLATE "C" PRIMARY KEY,
            delivery_id    text COLLATE "C" NOT NULL,
            scope          text COLLATE "C" NOT NULL,
            conversation   text COLLATE "C" NOT NULL,
            run            text COLLATE "C" NOT NULL,
            shape          text COLLATE "C" NOT NULL,
            verbatim       bigint NOT NULL,
            summarized     bigint NOT NULL,
            left_out       bigint NOT NULL,
            chunks         bigint NOT NULL,
            pins           bigint NOT NULL,
            stubs          bigint NOT NULL,
            tokens         bigint NOT NULL,
            token_limit    bigint NOT NULL,
            bytes_sent     bigint NOT NULL,
            bytes_reused   bigint NOT NULL,
            request_digest text COLLATE "C" NOT NULL,
            idx            bigint NOT NULL,
            recorded_at    bigint NOT NULL
        )
    $ddl$, number);
    FOR granted IN
        SELECT a.privilege_type AS what,
            CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS whom
        FROM pg_class AS c, aclexplode(c.relacl) AS a
        WHERE c.oid = '{read_models}.generations'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format(
            'GRANT %1$s ON {read_models}.summaries_%2$s, {read_models}.ranges_%2$s, '
            '{read_models}.attempts_%2$s, {read_models}.deliveries_%2$s, {read_models}.window_chunks_%2$s, '
            '{read_models}.window_pins_%2$s, {read_models}.window_deliveries_%2$s TO %3$s',
            granted.what, number, granted.whom
        );
    END LOOP;
    INSERT INTO {read_models}.generations VALUES (number, 0, of_layout, of_verdicts, false);
    RETURN number;
END $$;

-- The indexes that only readers need: one sort is cheaper than an insertion for each row. Of a conversation they hold
-- its name: two ids may be longer together than an entry of an index (E4).
CREATE FUNCTION {read_models}.index_generation(number bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format($ddl$
        CREATE INDEX IF NOT EXISTS summaries_%1$s_conversation
            ON {read_models}.summaries_%1$s ({schema}.conversation_name(scope, conversation));
        CREATE INDEX IF NOT EXISTS ranges_%1$s_scope ON {read_models}.ranges_%1$s (scope);
        CREATE INDEX IF NOT EXISTS attempts_%1$s_conversation
            ON {read_models}.attempts_%1$s ({schema}.conversation_name(scope, conversation));
        CREATE INDEX IF NOT EXISTS deliveries_%1$s_conversation
            ON {read_models}.deliveries_%1$s ({schema}.conversation_name(scope, conversation));
        CREATE INDEX IF NOT EXISTS window_chunks_%1$s_conversation
            ON {read_models}.window_chunks_%1$s ({schema}.conversation_name(scope, conversation));
        CREATE INDEX IF NOT EXISTS window_pins_%1$s_conversation
            ON {read_models}.window_pins_%1$s ({schema}.conversation_name(scope, conversation));
        CREATE INDEX IF NOT EXISTS window_deliveries_%1$s_conversation
            ON {read_models}.window_deliveries_%1$s ({schema}.conversation_name(scope, conversation))
    $ddl$, number);
END $$;

-- Let one generation serve, and no other. The tables of the others are still there, for those who read them now.
CREATE FUNCTION {read_models}.switch_generation(number bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    DELETE FROM {read_models}.generations WHERE generation <> number;
    UPDATE {read_models}.generations SET active = true WHERE generation = number;
END $$;

-- What acts as the owner is for those to whom the owner grants it.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {read_models} FROM PUBLIC;

-- The bound on attempts at once across processes (D1): slots, and a queue of those who were told "not now" (D2).
--
-- A slot is a lease. It counts for `lease` microseconds after it was last renewed, by the store's clock; its row is
-- deleted when the next slot is given out, and until then it can still be renewed. So there never are more rows than
-- the bound of whoever took the last slot. A ticket is a place in the queue; it goes when it was not asked again for
-- `kept` microseconds. Whatever changes a row first locks the one row of `admission`, for a single statement.
CREATE TABLE {schema}.admission (
    id     integer PRIMARY KEY CHECK (id = 0),
    places bigint NOT NULL CHECK (places >= 0) -- how many times a slot was asked for; gives tickets their order
) WITH (fillfactor = 10);
INSERT INTO {schema}.admission VALUES (0, 0);

CREATE TABLE {schema}.admission_slots (
    token      uuid PRIMARY KEY, -- random: only who took the slot knows it
    holder     text COLLATE "C" NOT NULL,
    renewed_at bigint NOT NULL,
    lease      bigint NOT NULL CHECK (lease > 0)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.admission_tickets (
    asker       uuid PRIMARY KEY, -- one process with the ledger open, whatever it calls itself
    holder      text COLLATE "C" NOT NULL,
    place       bigint NOT NULL UNIQUE,
    first_asked bigint NOT NULL,
    last_asked  bigint NOT NULL,
    kept        bigint NOT NULL CHECK (kept > 0)
) WITH (fillfactor = 50);

-- Whether who asks may have a slot: there are more free ones than others who have waited for longer.
CREATE FUNCTION {schema}.may_take_slot(for_asker uuid, bound bigint, moment bigint)
RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT bound - (SELECT count(*) FROM {schema}.admission_slots AS s WHERE s.renewed_at + s.lease > moment)
        > (SELECT count(*) FROM {schema}.admission_tickets AS t
            WHERE t.last_asked + t.kept > moment AND t.place < coalesce(
                (SELECT own.place FROM {schema}.admission_tickets AS own WHERE own.asker = for_asker),
                9223372036854775807))
$$;

-- What is over is deleted. What was renewed at a time to come (the clock was set back) counts from now on: otherwise
-- the slot of a dead holder would be taken for as long as the clock was wrong.
CREATE FUNCTION {schema}.settle_admission(moment bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE {schema}.admission_slots SET renewed_at = moment WHERE renewed_at > moment;
    UPDATE {schema}.admission_tickets SET last_asked = moment WHERE last_asked > moment;
    DELETE FROM {schema}.admission_slots WHERE renewed_at + lease <= moment;
    DELETE FROM {schema}.admission_tickets WHERE last_asked + kept <= moment;
$$;

-- Take a slot under `new_token`; false means: not now, and then there is a ticket for who asked. Asked again with the
-- same token it gives the same answer. Who asks more often than ten times in the life of a ticket and would be told
-- the same is told so without a write or a lock. Only a slot waits for the disk: the rest may be lost with the server.
CREATE FUNCTION {schema}.take_slot(
    new_token uuid, for_asker uuid, for_holder text, bound bigint, for_lease bigint, keep_ticket bigint
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
    new_place bigint;
BEGIN
    IF NOT {schema}.may_take_slot(for_asker, bound, moment) AND EXISTS (
        SELECT FROM {schema}.admission_tickets AS t
            WHERE t.asker = for_asker AND t.last_asked BETWEEN moment - t.kept / 10 AND moment
    ) THEN
        RETURN false;
    END IF;
    UPDATE {schema}.admission AS a SET places = a.places + 1 WHERE a.id = 0 RETURNING a.places INTO STRICT new_place;
    moment := {schema}.store_clock();
    PERFORM {schema}.settle_admission(moment);
    IF EXISTS (SELECT FROM {schema}.admission_slots AS s WHERE s.token = new_token) THEN
        RETURN true;
    END IF;
    IF {schema}.may_take_slot(for_asker, bound, moment) THEN
        DELETE FROM {schema}.admission_tickets AS t WHERE t.asker = for_asker;
        INSERT INTO {schema}.admission_slots VALUES (new_token, for_holder, moment, for_lease);
        RETURN true;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO {schema}.admission_tickets VALUES (for_asker, for_holder, new_place, moment, moment, keep_ticket)
        ON CONFLICT (asker) DO UPDATE SET last_asked = moment, kept = keep_ticket;
    RETURN false;
END $$;

-- Begin the leases of these slots anew; those that are still there. One that is missing was given to another.
CREATE FUNCTION {schema}.renew_slots(tokens uuid[]) RETURNS SETOF uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
BEGIN
    PERFORM FROM {schema}.admission AS a WHERE a.id = 0 FOR UPDATE;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY UPDATE {schema}.admission_slots AS s SET renewed_at = {schema}.store_clock()
        WHERE s.token = ANY (tokens) RETURNING s.token;
END $$;

-- Give these slots back, and the ticket of `of_asker` (NULL: nobody's).
CREATE FUNCTION {schema}.give_back_slots(tokens uuid[], of_asker uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
BEGIN
    PERFORM FROM {schema}.admission AS a WHERE a.id = 0 FOR UPDATE;
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM {schema}.admission_slots AS s WHERE s.token = ANY (tokens);
    DELETE FROM {schema}.admission_tickets AS t WHERE t.asker = of_asker;
END $$;

-- The server lets everybody execute a new function. Who may is for the owner to say (roles.sql).
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;

-- The work list: which conversations to look at next. A hint (W3, A8) that can be thrown away: what was in it is found
-- again. What the columns mean is told in domain/work.py. All changes are made by the functions below.
CREATE TABLE {schema}.work_items (
    name         bytea PRIMARY KEY, -- of the conversation, see conversation_name
    scope        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    due_at       bigint, -- NULL: when it is noticed. Of one that is taken: when the lease is over
    turn         bigint, -- of one that is due
    holder       text COLLATE "C",
    taking       bigint, -- random; of one that is taken
    noticed      boolean NOT NULL DEFAULT false, -- since it was taken
    failures     integer NOT NULL DEFAULT 0,
    revision     text COLLATE "C", -- the one that was looked at
    view         text COLLATE "C" NOT NULL DEFAULT ''
) WITH (autovacuum_vacuum_scale_factor = 0.02); -- most rows rest, and some change all the time
CREATE INDEX work_items_due ON {schema}.work_items (turn, due_at) WHERE turn IS NOT NULL;
CREATE INDEX work_items_to_come ON {schema}.work_items (due_at) WHERE turn IS NULL AND due_at IS NOT NULL;

CREATE TABLE {schema}.work_scopes (
    scope     text COLLATE "C" PRIMARY KEY,
    last_turn bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX work_scopes_last ON {schema}.work_scopes (last_turn);

-- Until when nobody else does what is done once in a while.
CREATE TABLE {schema}.work_periods (
    name    text COLLATE "C" PRIMARY KEY,
    next_at bigint NOT NULL
);

-- Give turns to those whose time has come, or whose lease is over: a thousand at most. The turns of a scope are one
-- apart and begin behind its last one, but not before the present turn. Rows that somebody else has locked are left to
-- that one. Items are locked first and then scopes, in order: so nobody waits in a circle.
CREATE FUNCTION {schema}.ripen_work(moment bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off -- what the planner knows of how many are due is never true for long
SET enable_bitmapscan = off
AS $$
DECLARE
    present bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.work_items AS w WHERE w.turn IS NULL AND w.due_at <= moment) THEN
        RETURN;
    END IF;
    present := coalesce(
        (SELECT min(w.turn) FROM {schema}.work_items AS w WHERE w.turn IS NOT NULL),
        (SELECT max(s.last_turn) FROM {schema}.work_scopes AS s),
        0
    );
    WITH ripe AS MATERIALIZED (
        SELECT w.name, w.scope, w.conversation, w.due_at FROM {schema}.work_items AS w
        WHERE w.turn IS NULL AND w.due_at <= moment
        ORDER BY w.due_at, w.scope, w.conversation LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), placed AS (
        SELECT r.name, r.scope, count(*) OVER (PARTITION BY r.scope) AS many,
            row_number() OVER (PARTITION BY r.scope ORDER BY r.due_at, r.conversation) AS place
        FROM ripe AS r
    ), given AS (
        INSERT INTO {schema}.work_scopes AS s (scope, last_turn)
        SELECT DISTINCT p.scope, present + p.many - 1 FROM placed AS p ORDER BY p.scope
        ON CONFLICT (scope) DO UPDATE
            SET last_turn = greatest(s.last_turn + 1, present) + (excluded.last_turn - present)
        RETURNING s.scope, s.last_turn
    )
    UPDATE {schema}.work_items AS w SET turn = g.last_turn - p.many + p.place, holder = NULL, taking = NULL
    FROM placed AS p JOIN given AS g ON g.scope = p.scope
    WHERE w.name = p.name;
END $$;

-- Notice conversations, and say for how many that is news. Of what is due already nothing changes; what is taken is
-- marked; all else is due now.
CREATE FUNCTION {schema}.notice_work(scopes text[], conversations text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
    news bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH given AS (
        SELECT DISTINCT ON (name) {schema}.conversation_name(u.scope, u.conversation) AS name, u.scope, u.conversation
        FROM unnest(scopes, conversations) AS u (scope, conversation) ORDER BY name
    ), changed AS (
        INSERT INTO {schema}.work_items AS w (name, scope, conversation, due_at)
        SELECT g.name, g.scope, g.conversation, moment FROM given AS g ORDER BY g.name
        ON CONFLICT (name) DO UPDATE SET
            noticed = w.taking IS NOT NULL,
            due_at = CASE WHEN w.taking IS NULL THEN moment ELSE w.due_at END
        WHERE w.turn IS NULL AND (w.due_at IS NULL OR w.due_at > moment) AND NOT w.noticed
        RETURNING 1
    )
    SELECT count(*) INTO news FROM changed;
    PERFORM {schema}.ripen_work(moment);
    RETURN news;
END $$;

-- Whether it is news that a conversation was found under this revision (NULL: none is kept), compared with a view (NULL:
-- with none). What is due or taken is none; where nothing can be compared, neither is what waits for its time.
CREATE FUNCTION {schema}.is_work(w {schema}.work_items, found_revision text, for_view text, moment bigint)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT w.turn IS NULL AND w.taking IS NULL AND coalesce(w.due_at > moment, true) AND (
        coalesce(w.view <> for_view, false)
        OR CASE
            WHEN found_revision IS NULL OR w.revision IS NULL THEN w.due_at IS NULL
            ELSE w.revision <> found_revision
        END
    )
$$;

-- Notice those of these conversations that were not looked at as they were found, and say how many.
CREATE FUNCTION {schema}.notice_changed_work(
    scopes text[], conversations text[], revisions text[], for_view text
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
    news bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH given AS (
        SELECT DISTINCT ON (name) {schema}.conversation_name(u.scope, u.conversation) AS name,
            u.scope, u.conversation, u.revision
        FROM unnest(scopes, conversations, revisions) AS u (scope, conversation, revision) ORDER BY name
    ), known AS MATERIALIZED (
        SELECT w.name FROM {schema}.work_items AS w JOIN given AS g ON g.name = w.name
        WHERE {schema}.is_work(w, g.revision, for_view, moment)
        ORDER BY w.name FOR UPDATE OF w SKIP LOCKED
    ), noticed AS (
        UPDATE {schema}.work_items AS w SET due_at = moment FROM known AS k WHERE w.name = k.name RETURNING 1
    ), made AS (
        INSERT INTO {schema}.work_items (name, scope, conversation, due_at)
        SELECT g.name, g.scope, g.conversation, moment FROM given AS g
        WHERE NOT EXISTS (SELECT FROM {schema}.work_items AS w WHERE w.name = g.name)
        ORDER BY g.name ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT (SELECT count(*) FROM noticed) + (SELECT count(*) FROM made) INTO news;
    PERFORM {schema}.ripen_work(moment);
    RETURN news;
END $$;

-- Embedded conversations that were not looked at as they are now, with their revisions: so many at most. The whole of both tables is read, in
-- one pass each; in steps along an index, each row would be fetched from another place.
CREATE FUNCTION {schema}.changed_work(for_view text, bound bigint)
RETURNS TABLE (scope text, conversation text, revision text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET work_mem = '128MB'
AS $$
    SELECT c.scope, c.conversation, c.key || '.' || c.revision
    FROM (SELECT {schema}.store_clock() AS moment) AS now
        CROSS JOIN {schema}.conversations AS c LEFT JOIN {schema}.work_items AS w ON w.name = c.name
    WHERE w.name IS NULL OR {schema}.is_work(w, c.key || '.' || c.revision, for_view, now.moment)
    LIMIT bound
$$;

-- Take so many, the lowest turns first. Asked again with the same number, because the answer was lost, it gives the same
-- answer.
CREATE FUNCTION {schema}.take_work(
    new_taking bigint, asked_before boolean, for_holder text, bound bigint, for_lease bigint
) RETURNS TABLE (scope text, conversation text, failures integer) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    moment bigint := {schema}.store_clock();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    IF asked_before THEN
        RETURN QUERY SELECT w.scope, w.conversation, w.failures FROM {schema}.work_items AS w
            WHERE w.turn IS NULL AND w.due_at > moment AND w.taking = new_taking;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    PERFORM {schema}.ripen_work(moment);
    RETURN QUERY
        WITH next AS MATERIALIZED (
            SELECT w.name, w.turn, w.due_at FROM {schema}.work_items AS w
            WHERE w.turn IS NOT NULL ORDER BY w.turn, w.due_at LIMIT bound FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE {schema}.work_items AS w
            SET turn = NULL, due_at = moment + for_lease, holder = for_holder, taking = new_taking, noticed = false
            FROM next AS n WHERE w.name = n.name
            RETURNING w.scope, w.conversation, w.failures, n.turn AS its_turn, n.due_at AS since
        )
        SELECT t.scope, t.conversation, t.failures FROM taken AS t ORDER BY t.its_turn, t.since;
END $$;

-- It was looked at. Of a taking that is over nothing is noted.
CREATE FUNCTION {schema}.note_look(
    of_scope text, of_conversation text, of_taking bigint,
    again_at bigint, seen_revision text, seen_view text, new_failures integer
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE {schema}.work_items AS w SET
        due_at = CASE WHEN w.noticed THEN moment ELSE again_at END,
        holder = NULL, taking = NULL, noticed = false,
        revision = seen_revision, view = seen_view, failures = new_failures
    WHERE w.name = {schema}.conversation_name(of_scope, of_conversation) AND w.taking = of_taking;
END $$;

-- Delete what is known of a conversation; with a taking, only if it was not noticed since then.
CREATE FUNCTION {schema}.forget_work(of_scope text, of_conversation text, of_taking bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    DELETE FROM {schema}.work_items AS w
    WHERE w.name = {schema}.conversation_name(of_scope, of_conversation)
        AND (of_taking IS NULL OR w.taking = of_taking AND NOT w.noticed);
END $$;

-- Whether the last period of this name is over: then one begins, for one caller alone.
CREATE FUNCTION {schema}.begin_work_period(of_name text, length bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
BEGIN
    IF EXISTS (SELECT FROM {schema}.work_periods AS p WHERE p.name = of_name AND p.next_at > moment) THEN
        RETURN false;
    END IF;
    INSERT INTO {schema}.work_periods AS p VALUES (of_name, moment + length)
        ON CONFLICT (name) DO UPDATE SET next_at = excluded.next_at WHERE p.next_at <= moment;
    RETURN FOUND;
END $$;

-- Let the period last so long from now on, at least.
CREATE FUNCTION {schema}.extend_work_period(of_name text, length bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
DECLARE
    moment bigint := {schema}.store_clock();
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE {schema}.work_periods AS p SET next_at = moment + length
        WHERE p.name = of_name AND p.next_at < moment + length;
END $$;

-- The server lets everybody execute a new function. Who may is for the owner to say (roles.sql).
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;

-- Originals: the transcripts of running agents, and large tool results by their content (window.md T14, T15). Nothing is
-- changed; all that belongs to a conversation can be removed, so that it can be forgotten. Everything is changed through
-- functions alone, which run as their owner: so a writer can append at the next free place, and do nothing else.
--
-- What a run is found by.
CREATE FUNCTION {schema}.window_name(of_scope text, of_conversation text, of_run text)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(
        convert_to(of_scope, 'UTF8') || decode('00', 'hex') || convert_to(of_conversation, 'UTF8')
        || decode('00', 'hex') || convert_to(of_run, 'UTF8')
    )
$$;

-- The row of a run is what its writers wait for each other at.
CREATE TABLE {schema}.window_runs (
    key          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order they began
    name         bytea NOT NULL UNIQUE, -- see window_name: the ids can be longer together than an index takes
    place        bytea NOT NULL, -- of scope and conversation, see conversation_name
    scope        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    run          text COLLATE "C" NOT NULL,
    shape        text COLLATE "C" NOT NULL,
    messages     integer NOT NULL CHECK (messages >= 0)
) WITH (fillfactor = 70); -- updated with every append: room on the page keeps the new version of the row on it
CREATE INDEX window_runs_of_conversation ON {schema}.window_runs (place, key);

-- A run is read as one run of the primary key.
CREATE TABLE {schema}.window_messages (
    run      bigint NOT NULL REFERENCES {schema}.window_runs (key),
    position integer NOT NULL CHECK (position >= 0),
    role     text COLLATE "C" NOT NULL,
    exchange integer NOT NULL,
    at       bigint NOT NULL,
    digest   text COLLATE "C" NOT NULL,
    wire     bytea NOT NULL,
    PRIMARY KEY (run, position)
);

CREATE TABLE {schema}.window_results (
    place   bytea NOT NULL, -- of scope and conversation, see conversation_name
    digest  text COLLATE "C" NOT NULL, -- SHA-256 of the content, in hexadecimal
    content bytea NOT NULL,
    PRIMARY KEY (place, digest)
);

CREATE TRIGGER append_only
    BEFORE UPDATE OF key, name, place, scope, conversation, run, shape ON {schema}.window_runs
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON {schema}.window_messages
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON {schema}.window_results
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();

-- Append messages to a run behind its first ones; it is made when it is new. The outcome is 'stored', 'repeated' where
-- the same messages are at these places already (A9), 'taken' where others are or would leave a gap, or 'shape' where the
-- run has another one. Only with 'stored' is anything changed.
CREATE FUNCTION {schema}.append_originals(
    of_scope text, of_conversation text, of_run text, of_shape text, first integer,
    roles text[], exchanges integer[], times bigint[], digests text[], wires bytea[],
    OUT outcome text, OUT present_shape text, OUT present integer
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    of_name bytea := {schema}.window_name(of_scope, of_conversation, of_run);
    found_key bigint;
    many integer := cardinality(roles);
BEGIN
    LOOP
        SELECT r.key, r.shape, r.messages INTO found_key, present_shape, present
        FROM {schema}.window_runs AS r WHERE r.name = of_name FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        present_shape := of_shape;
        present := 0;
        IF first > 0 OR many = 0 THEN
            EXIT;
        END IF;
        INSERT INTO {schema}.window_runs AS r (name, place, scope, conversation, run, shape, messages)
        VALUES (of_name, {schema}.conversation_name(of_scope, of_conversation), of_scope, of_conversation, of_run,
            of_shape, 0)
        ON CONFLICT (name) DO NOTHING RETURNING r.key INTO found_key;
        EXIT WHEN FOUND;
        -- Another transaction made it at this moment.
    END LOOP;
    IF present_shape <> of_shape THEN
        outcome := 'shape';
    ELSIF many = 0 AND first <= present THEN
        outcome := 'repeated';
    ELSIF first = present THEN
        INSERT INTO {schema}.window_messages (run, position, role, exchange, at, digest, wire)
        SELECT found_key, first + n.place - 1, n.role, n.exchange, n.at, n.digest, n.wire
        FROM unnest(roles, exchanges, times, digests, wires)
            WITH ORDINALITY AS n (role, exchange, at, digest, wire, place);
        UPDATE {schema}.window_runs AS r SET messages = first + many WHERE r.key = found_key;
        outcome := 'stored';
    ELSIF first + many <= present AND many = (
        SELECT count(*) FROM unnest(roles, exchanges, digests) WITH ORDINALITY AS n (role, exchange, digest, place)
        JOIN {schema}.window_messages AS m ON m.run = found_key AND m.position = (first + n.place - 1)::integer
            AND m.role = n.role AND m.exchange = n.exchange AND m.digest = n.digest
    ) THEN
        outcome := 'repeated';
    ELSE
        outcome := 'taken';
    END IF;
END $$;

-- Keep a tool result once, and answer by what it is found.
CREATE FUNCTION {schema}.keep_result(of_scope text, of_conversation text, content bytea)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found_digest text := encode(sha256(content), 'hex');
BEGIN
    INSERT INTO {schema}.window_results AS r (place, digest, content)
    VALUES ({schema}.conversation_name(of_scope, of_conversation), found_digest, keep_result.content)
    ON CONFLICT ON CONSTRAINT window_results_pkey DO NOTHING;
    RETURN found_digest;
END $$;

-- Delete all runs and results of a conversation.
CREATE FUNCTION {schema}.forget_originals(of_scope text, of_conversation text)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    of_place bytea := {schema}.conversation_name(of_scope, of_conversation);
    keys bigint[];
BEGIN
    SELECT array_agg(locked.key) INTO keys FROM (
        SELECT r.key FROM {schema}.window_runs AS r WHERE r.place = of_place ORDER BY r.key FOR UPDATE
    ) AS locked;
    DELETE FROM {schema}.window_messages AS m WHERE m.run = ANY (keys);
    DELETE FROM {schema}.window_runs AS r WHERE r.key = ANY (keys);
    DELETE FROM {schema}.window_results AS r WHERE r.place = of_place;
END $$;

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

-- The tree over the log (proof.md K1), and who signs it.

-- The hashes of complete subtrees of 2^level leaves, one level in eight: 256 leaves, 65,536, 16,777,216 … They only save
-- work: whoever uses them checks that they lead to a signed root, and all of them can be made again from the leaves.
CREATE TABLE {schema}.tree_nodes (
    level    integer NOT NULL,
    position bigint NOT NULL,
    hash     bytea NOT NULL,
    PRIMARY KEY (level, position)
);

-- The signer that came last, and what it was about to publish: one that was held up finds here that it is not the
-- signer any more. The last signed head itself is kept outside of the database.
CREATE TABLE {schema}.signer (
    id     integer PRIMARY KEY CHECK (id = 0),
    epoch  bigint NOT NULL,
    holder text COLLATE "C" NOT NULL,
    size   bigint NOT NULL,
    root   bytea NOT NULL
);
INSERT INTO {schema}.signer VALUES (0, 0, '', 0, '');

-- Become the signer; the new epoch. The same holder again, where an answer was lost, has the epoch that it has.
CREATE FUNCTION {schema}.begin_signing(by_holder text)
RETURNS TABLE (epoch bigint, size bigint, root bytea) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
BEGIN
    UPDATE {schema}.signer AS s SET epoch = s.epoch + 1, holder = by_holder
    WHERE s.id = 0 AND s.holder <> by_holder;
    RETURN QUERY SELECT s.epoch, s.size, s.root FROM {schema}.signer AS s WHERE s.id = 0;
END $$;

-- Say what is published next; false where another has become the signer.
CREATE FUNCTION {schema}.announce_signing(of_epoch bigint, by_holder text, new_size bigint, new_root bytea)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '30s'
AS $$
BEGIN
    UPDATE {schema}.signer AS s SET size = new_size, root = new_root
    WHERE s.id = 0 AND s.epoch = of_epoch AND s.holder = by_holder;
    RETURN FOUND;
END $$;

-- Keep hashes of subtrees.
CREATE FUNCTION {schema}.keep_tree_nodes(levels integer[], positions bigint[], hashes bytea[])
RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO {schema}.tree_nodes AS n (level, position, hash)
    SELECT * FROM unnest(levels, positions, hashes) ON CONFLICT (level, position)
    DO UPDATE SET hash = excluded.hash WHERE n.hash <> excluded.hash
$$;

-- Forget them all, so that they are made again.
CREATE FUNCTION {schema}.forget_tree_nodes()
RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    DELETE FROM {schema}.tree_nodes
$$;

-- The server lets everybody execute a new function. Who may is for the owner to say (roles.sql).
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
