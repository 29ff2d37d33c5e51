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
