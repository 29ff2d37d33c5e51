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
    state        text COLLATE "C" NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'erased'))
);

CREATE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CL003';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {schema}.stored_events
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON {schema}.stored_events
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();

-- The store's clock (A5): microseconds since the epoch, at this moment and not at the transaction's beginning.
CREATE FUNCTION {schema}.store_clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- Append one event and seal it (L1, L3), in one statement: so the head is locked for as long as a commit takes and
-- never for as long as a client does. The writer gives the envelope in two pieces, between which stand the hash of
-- the stream's previous envelope and the time. The clock is read after the head is locked; where it is outside of
-- the times that the writer's decision holds for, nothing is stored (CL001).
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
