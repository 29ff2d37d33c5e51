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

-- The server lets everybody execute a new function. Who may is for the owner to say (roles.sql).
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
