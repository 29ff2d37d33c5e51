-- Format 4: the tree over the log (proof.md K1), and who signs it.

-- The hashes of complete subtrees of 2^level leaves, one level in eight: 256 leaves, 65,536, 16,777,216 … They only save
-- work: whoever uses them checks that they lead to a signed root, and all of them can be made again from the leaves.
CREATE TABLE tree_nodes (
    level    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash     BLOB NOT NULL,
    PRIMARY KEY (level, position)
) WITHOUT ROWID;

-- The signer that came last, and what it was about to publish: one that was held up finds here that it is not the
-- signer any more. The last signed head itself is kept outside of this file.
CREATE TABLE signer (
    id     INTEGER PRIMARY KEY CHECK (id = 0),
    epoch  INTEGER NOT NULL,
    holder TEXT NOT NULL,
    size   INTEGER NOT NULL,
    root   BLOB NOT NULL
);
INSERT INTO signer VALUES (0, 0, '', 0, x'');
