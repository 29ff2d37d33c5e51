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
