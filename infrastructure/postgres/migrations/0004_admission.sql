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
