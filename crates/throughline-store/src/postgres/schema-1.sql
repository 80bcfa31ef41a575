-- Schema 1: what the SQLite store keeps, as PostgreSQL keeps it best. Rows whose order matters are numbered;
-- contents and entries go by their digests, 16 bytes, for which `uuid` is the type without overhead. Moments
-- are milliseconds since 1970. `codec` and `size` are those of pack.rs.
--
-- There are no foreign keys: what refers to another row is written by the statement that finds it, writers of
-- one conversation take turns, and whoever deletes locks `format` against all writers first.

CREATE TABLE format (
    version integer NOT NULL
);
INSERT INTO format VALUES (1);

CREATE TABLE conversations (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text COLLATE "C" NOT NULL UNIQUE,
    created    bigint NOT NULL,
    updated    bigint NOT NULL,
    identified text NOT NULL,
    title      text
);
CREATE INDEX conversations_by_updated ON conversations (updated, n);

-- Names under which clients ask for a conversation.
CREATE TABLE keys (
    key          text COLLATE "C" PRIMARY KEY,
    conversation bigint NOT NULL
);

-- Records of entries and of envelopes, each stored once. What is worth compressing is compressed already.
CREATE TABLE blobs (
    digest uuid PRIMARY KEY,
    codec  smallint NOT NULL,
    size   integer NOT NULL,
    bytes  bytea NOT NULL
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The tree of entries. A node never changes, and its parent has a smaller number.
CREATE TABLE nodes (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL,
    exchange     bigint,
    at           bigint NOT NULL,
    message      integer,               -- where in the client's request it stood
    block        integer,
    kind         smallint NOT NULL,
    counts       boolean NOT NULL,      -- whether the entry adds to the chain
    id           uuid NOT NULL UNIQUE,
    record       uuid NOT NULL,         -- blobs.digest
    chain        uuid NOT NULL,
    parent       uuid,                  -- nodes.id
    envelope     uuid,                  -- blobs.digest, of an envelope that is shared
    tool         text COLLATE "C",
    call_id      text COLLATE "C"
);
CREATE INDEX nodes_by_chain ON nodes (chain, n) WHERE counts;
CREATE INDEX nodes_by_conversation ON nodes (conversation, n);
CREATE INDEX nodes_by_parent ON nodes (parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_by_call ON nodes (conversation, call_id) WHERE kind = 5; -- calls

-- Pieces of the history, by the numbers of their nodes, and the words that occur in each, once. The texts
-- themselves are in the records.
CREATE TABLE words (
    first bigint PRIMARY KEY,
    last  bigint NOT NULL,
    words text NOT NULL
);
CREATE INDEX words_by_word ON words USING gin (array_to_tsvector(string_to_array(words, ' ')))
    WITH (fastupdate = off);

-- Up to which node there are pieces.
CREATE TABLE indexed (
    n bigint NOT NULL
);
INSERT INTO indexed VALUES (0);

-- Ids by which clients refer to entries.
CREATE TABLE items (
    id   text COLLATE "C" PRIMARY KEY,
    node uuid NOT NULL
);

CREATE TABLE exchanges (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL,
    started      bigint NOT NULL,
    ended        bigint,
    input        bigint,                -- tokens
    cache_read   bigint,
    cache_write  bigint,
    output       bigint,
    reasoning    bigint,
    status       integer,
    dialect      smallint NOT NULL,
    stored       boolean NOT NULL,
    deleted      boolean NOT NULL,
    before       uuid,                  -- nodes.id
    after        uuid,                  -- nodes.id
    id           text COLLATE "C" NOT NULL UNIQUE,
    client       text,
    asked_model  text,
    ending       text,
    response     text COLLATE "C"
);
CREATE INDEX exchanges_by_conversation ON exchanges (conversation, n);
CREATE INDEX exchanges_by_response ON exchanges (response) WHERE response IS NOT NULL;

CREATE TABLE attempts (
    exchange bigint NOT NULL,
    started  bigint NOT NULL,
    ended    bigint,
    number   integer NOT NULL,
    status   integer,
    dialect  smallint NOT NULL,
    backend  text NOT NULL,
    model    text,
    strategy text,
    report   text,
    failure  text,
    PRIMARY KEY (exchange, number)
);

-- Requests as they were sent: what differs from another one, its base, and from records, its sources.
CREATE TABLE bodies (
    digest  uuid PRIMARY KEY,
    base    uuid,
    depth   integer NOT NULL,           -- how many bases there are below
    head    integer NOT NULL,
    tail    integer NOT NULL,
    size    integer NOT NULL,           -- of what stands between head and tail
    codec   smallint NOT NULL,
    sources uuid[],                     -- blobs.digest
    bytes   bytea NOT NULL
);
ALTER TABLE bodies ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE sent (
    exchange bigint NOT NULL,
    attempt  integer NOT NULL,
    body     uuid NOT NULL,
    PRIMARY KEY (exchange, attempt)
);

-- Final answers as clients were given them.
CREATE TABLE answers (
    exchange bigint PRIMARY KEY,
    size     integer NOT NULL,
    codec    smallint NOT NULL,
    bytes    bytea NOT NULL
);
ALTER TABLE answers ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Provider events, in pieces of many.
CREATE TABLE events (
    exchange bigint NOT NULL,
    n        bigint GENERATED ALWAYS AS IDENTITY,
    attempt  integer NOT NULL,
    size     integer NOT NULL,
    codec    smallint NOT NULL,
    bytes    bytea NOT NULL,
    PRIMARY KEY (exchange, n)
);
ALTER TABLE events ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE learned (
    backend    text COLLATE "C" NOT NULL,
    model      text COLLATE "C" NOT NULL,
    capability text COLLATE "C" NOT NULL,
    verdict    text NOT NULL,
    reason     text NOT NULL,
    at         bigint NOT NULL,
    expires    bigint,
    PRIMARY KEY (backend, model, capability)
);

-- Settings made at run time; those of conversation 0 hold everywhere.
CREATE TABLE settings (
    conversation bigint NOT NULL,
    name         text COLLATE "C" NOT NULL,
    value        text NOT NULL,
    at           bigint NOT NULL,
    PRIMARY KEY (conversation, name)
);
