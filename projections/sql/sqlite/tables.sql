-- The tables of one generation of the read models (P1, P3). {g} is the generation's number.
CREATE TABLE summaries_{g} (
    identity       TEXT PRIMARY KEY,
    scope          TEXT NOT NULL,
    conversation   TEXT NOT NULL,
    from_pair      INTEGER NOT NULL,
    to_pair        INTEGER NOT NULL,
    source_hash    TEXT NOT NULL,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    settings       TEXT NOT NULL,
    prompt         TEXT NOT NULL,
    prompt_version INTEGER NOT NULL,
    status         TEXT NOT NULL,
    validity       TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    claim_id       TEXT,
    holder         TEXT,
    expires_at     INTEGER,
    retry_at       INTEGER,
    failure        TEXT,
    idx            INTEGER,
    recorded_at    INTEGER,
    origin         TEXT,
    input_tokens   INTEGER,
    output_tokens  INTEGER
);

CREATE TABLE ranges_{g} (
    scope         TEXT NOT NULL,
    conversation  TEXT NOT NULL,
    from_pair     INTEGER NOT NULL,
    to_pair       INTEGER NOT NULL,
    status        TEXT NOT NULL,
    source_hash   TEXT NOT NULL,
    identity      TEXT NOT NULL,
    expires_at    INTEGER,
    retry_at      INTEGER,
    updated_index INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (scope, conversation, from_pair)
) WITHOUT ROWID;

CREATE TABLE attempts_{g} (
    identity      TEXT NOT NULL,
    number        INTEGER NOT NULL,
    scope         TEXT NOT NULL,
    conversation  TEXT NOT NULL,
    from_pair     INTEGER NOT NULL,
    to_pair       INTEGER NOT NULL,
    attempt_id    TEXT NOT NULL,
    claim_id      TEXT NOT NULL,
    holder        TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    failure       TEXT,
    also          TEXT NOT NULL,
    detail        TEXT,
    signals       TEXT NOT NULL,
    tool_calls    INTEGER NOT NULL,
    output_digest TEXT,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    started_index INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_index   INTEGER,
    ended_at      INTEGER,
    PRIMARY KEY (identity, number)
);

CREATE TABLE deliveries_{g} (
    delivery_id    TEXT PRIMARY KEY,
    scope          TEXT NOT NULL,
    conversation   TEXT NOT NULL,
    run            TEXT,
    shape          TEXT NOT NULL,
    bytes_used     INTEGER NOT NULL,
    bytes_allowed  INTEGER NOT NULL,
    request_digest TEXT NOT NULL,
    idx            INTEGER NOT NULL,
    recorded_at    INTEGER NOT NULL
) WITHOUT ROWID;
