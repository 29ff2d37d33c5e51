-- The read models of windows: three more tables in each generation of layout 2. The functions that make, index and
-- find the tables of a generation are replaced by ones that know them; generations of layout 1 are built anew by the
-- first follower.

-- The tables of generations that are there, also of those that nobody knows any more.
CREATE OR REPLACE FUNCTION {read_models}.generation_tables(OUT name name, OUT number bigint) RETURNS SETOF record
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT relname, substring(relname FROM '[0-9]+$')::bigint FROM pg_class
        WHERE relnamespace = '{read_models}'::regnamespace AND relkind = 'r'
            AND relname ~ '^(summaries|ranges|attempts|deliveries|window_chunks|window_pins|window_deliveries)_[1-9][0-9]{0,8}$'
$$;

-- Begin the next generation, empty and without the indexes that are not needed to fill it. Others that do not serve are
-- over: what a killed rebuild left behind, or one that goes on, which will find out.
CREATE OR REPLACE FUNCTION {read_models}.begin_generation(of_layout integer, of_verdicts text) RETURNS bigint
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
CREATE OR REPLACE FUNCTION {read_models}.index_generation(number bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
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
