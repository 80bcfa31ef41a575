-- Schema 1. Rows are named by small integers inside the database and by the ids of the interface outside.
-- Moments are milliseconds since 1970. `codec` and `size` are those of pack.rs.

CREATE TABLE conversations (
    n          INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    identified TEXT NOT NULL,
    title      TEXT
) STRICT;
CREATE INDEX conversations_by_updated ON conversations (updated, n);

-- Names under which clients ask for a conversation.
CREATE TABLE keys (
    key          TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (n)
) STRICT, WITHOUT ROWID;

-- Records of entries and of envelopes, each stored once.
CREATE TABLE blobs (
    n      INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    codec  INTEGER NOT NULL,
    size   INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

-- The tree of entries. A node never changes, and its parent has a smaller number.
CREATE TABLE nodes (
    n            INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations (n),
    parent       INTEGER REFERENCES nodes (n),
    record       INTEGER NOT NULL REFERENCES blobs (n),
    chain        BLOB NOT NULL,
    counts       INTEGER NOT NULL,       -- whether the entry adds to the chain
    exchange     INTEGER REFERENCES exchanges (n),
    at           INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    tool         TEXT,
    call_id      TEXT,
    message      INTEGER,                -- where in the client's request it stood
    block        INTEGER
) STRICT;
CREATE INDEX nodes_by_chain ON nodes (chain) WHERE counts;
CREATE INDEX nodes_by_conversation ON nodes (conversation, n);
CREATE INDEX nodes_by_parent ON nodes (parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_by_call ON nodes (conversation, call_id) WHERE call_id IS NOT NULL;

-- Ids by which clients refer to entries.
CREATE TABLE items (
    id   TEXT PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES nodes (n)
) STRICT, WITHOUT ROWID;

CREATE TABLE exchanges (
    n            INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations (n),
    before       BLOB,                   -- nodes.id
    after        BLOB,                   -- nodes.id
    dialect      INTEGER NOT NULL,
    client       TEXT,
    asked_model  TEXT,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    ending       TEXT,
    status       INTEGER,
    input        INTEGER,                -- tokens
    cache_read   INTEGER,
    cache_write  INTEGER,
    output       INTEGER,
    reasoning    INTEGER,
    response     TEXT,
    stored       INTEGER NOT NULL,
    deleted      INTEGER NOT NULL
) STRICT;
CREATE INDEX exchanges_by_conversation ON exchanges (conversation, n);
CREATE INDEX exchanges_by_response ON exchanges (response) WHERE response IS NOT NULL;

CREATE TABLE attempts (
    exchange INTEGER NOT NULL REFERENCES exchanges (n),
    number   INTEGER NOT NULL,
    backend  TEXT NOT NULL,
    dialect  INTEGER NOT NULL,
    model    TEXT,
    strategy TEXT,
    report   TEXT,
    started  INTEGER NOT NULL,
    ended    INTEGER,
    status   INTEGER,
    failure  TEXT,
    PRIMARY KEY (exchange, number)
) STRICT, WITHOUT ROWID;

-- Requests as they were sent: what differs from another one, its base, and from records, its sources.
CREATE TABLE bodies (
    n       INTEGER PRIMARY KEY,
    digest  BLOB NOT NULL UNIQUE,
    base    INTEGER REFERENCES bodies (n),
    depth   INTEGER NOT NULL,            -- how many bases there are below
    sources BLOB,                        -- numbers of blobs, written as in a record
    head    INTEGER NOT NULL,
    tail    INTEGER NOT NULL,
    codec   INTEGER NOT NULL,
    size    INTEGER NOT NULL,            -- of what stands between head and tail
    bytes   BLOB NOT NULL
) STRICT;

CREATE TABLE sent (
    exchange INTEGER NOT NULL REFERENCES exchanges (n),
    attempt  INTEGER NOT NULL,
    body     INTEGER NOT NULL REFERENCES bodies (n),
    PRIMARY KEY (exchange, attempt)
) STRICT, WITHOUT ROWID;

-- Final answers as clients were given them.
CREATE TABLE answers (
    exchange INTEGER PRIMARY KEY REFERENCES exchanges (n),
    codec    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    bytes    BLOB NOT NULL
) STRICT;

-- Provider events, in pieces of many.
CREATE TABLE events (
    n        INTEGER PRIMARY KEY,
    exchange INTEGER NOT NULL REFERENCES exchanges (n),
    attempt  INTEGER NOT NULL,
    codec    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    bytes    BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_exchange ON events (exchange, attempt, n);

CREATE TABLE learned (
    backend    TEXT NOT NULL,
    model      TEXT NOT NULL,
    capability TEXT NOT NULL,
    verdict    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    expires    INTEGER,
    PRIMARY KEY (backend, model, capability)
) STRICT, WITHOUT ROWID;

-- Settings made at run time; those of conversation 0 hold everywhere.
CREATE TABLE settings (
    conversation INTEGER NOT NULL,
    name         TEXT NOT NULL,
    value        TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

-- The words of each node, by its number: which occur, not where. The texts themselves are in the records.
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = '', columnsize = 0, detail = none,
    tokenize = "unicode61 remove_diacritics 0"
);

-- Up to which node the words are known.
CREATE TABLE indexed (
    n INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (0);
