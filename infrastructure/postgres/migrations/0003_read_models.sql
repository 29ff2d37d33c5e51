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
            AND relname ~ '^(summaries|ranges|attempts|deliveries)_[1-9][0-9]{0,8}$'
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
    IF of_layout <> 1 THEN
        RAISE EXCEPTION 'the tables of the read models are of layout 1, not %', of_layout;
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
            '{read_models}.attempts_%2$s, {read_models}.deliveries_%2$s TO %3$s',
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
            ON {read_models}.deliveries_%1$s ({schema}.conversation_name(scope, conversation))
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
