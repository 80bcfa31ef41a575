-- Schema 2: how far each writer has come. One that loses its connection in a commit finds out by it whether that was done.
-- The number of its transaction would not tell: a server that has crashed gives numbers anew that were not in its log.

CREATE TABLE writers (
    id     uuid PRIMARY KEY,
    groups bigint NOT NULL,
    at     timestamptz NOT NULL
) WITH (fillfactor = 50);
