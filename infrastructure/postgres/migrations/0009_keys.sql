-- Encrypted payloads, and forgetting (proof.md S1, S3).

-- The id of the data key that a conversation's payloads are encrypted with; empty where they are not. The key itself
-- is kept elsewhere, wrapped.
ALTER TABLE {schema}.subjects ADD COLUMN key text COLLATE "C" NOT NULL DEFAULT '';

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

DROP TRIGGER append_only ON {schema}.stored_events;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {schema}.stored_events
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change_of_event();

-- As before (see 0001_log), but for this: of an erased subject nothing is recorded any more (CL004), save that it is.
-- Which subject it is stands in the last piece of the envelope.
CREATE OR REPLACE FUNCTION {schema}.append_event(
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

-- The server lets everybody execute a new function. Who may is for the owner to say (roles.sql).
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
