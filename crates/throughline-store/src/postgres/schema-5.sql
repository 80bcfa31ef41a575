-- Schema 5: what was decided about the history of a conversation is in rows of its own (docs/decisions/0035), and no longer
-- in the reports of attempts. For what is there already it is read from those reports.

CREATE TABLE compaction_steps (
    n                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    exchange         bigint NOT NULL,
    conversation     bigint NOT NULL,
    at               bigint NOT NULL,
    follows_exchange bigint,
    checksum         bigint NOT NULL,
    attempt          integer NOT NULL,
    follows_attempt  integer,
    size             integer NOT NULL,
    codec            smallint NOT NULL,
    backend          text NOT NULL,
    model            text NOT NULL,
    summary          text,
    bytes            bytea NOT NULL,    -- what is decided beyond the step that it follows
    UNIQUE (exchange, attempt)
);
ALTER TABLE compaction_steps ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE INDEX compaction_steps_by_conversation ON compaction_steps (conversation, n);

-- The step whose decisions the prompt of an attempt shows.
ALTER TABLE attempts ADD COLUMN step_exchange bigint;
ALTER TABLE attempts ADD COLUMN step_attempt integer;
