-- Schema 6: what was decided about the history of a conversation is in rows of its own (docs/decisions/0035), and no longer
-- in the reports of attempts. For what is there already it is read from those reports.

CREATE TABLE compaction_steps (
    n                INTEGER PRIMARY KEY,
    exchange         INTEGER NOT NULL REFERENCES exchanges (n),
    attempt          INTEGER NOT NULL,
    conversation     INTEGER NOT NULL REFERENCES conversations (n),
    backend          TEXT NOT NULL,
    model            TEXT NOT NULL,
    at               INTEGER NOT NULL,
    follows_exchange INTEGER REFERENCES exchanges (n),
    follows_attempt  INTEGER,
    codec            INTEGER NOT NULL,
    size             INTEGER NOT NULL,
    bytes            BLOB NOT NULL,      -- what is decided beyond the step that it follows
    summary          TEXT,
    checksum         INTEGER NOT NULL,
    UNIQUE (exchange, attempt)
) STRICT;
CREATE INDEX compaction_steps_by_conversation ON compaction_steps (conversation, n);

-- The step whose decisions the prompt of an attempt shows.
ALTER TABLE attempts ADD COLUMN step_exchange INTEGER; -- exchanges.n
ALTER TABLE attempts ADD COLUMN step_attempt INTEGER;
