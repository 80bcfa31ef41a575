-- Schema 7: what an attempt was about is in documents of several kinds, each kept as what differs from an earlier one of its
-- kind (docs/decisions/0036): the request as sent (0), as it came (1), where its parts come from (2), what was changed (3).
-- Reports are moved there from the rows of attempts, which have what lists show in columns of their own.

CREATE TABLE documents (
    exchange INTEGER NOT NULL REFERENCES exchanges (n),
    attempt  INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    body     INTEGER NOT NULL REFERENCES bodies (n),
    checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (exchange, attempt, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO documents (exchange, attempt, kind, body) SELECT exchange, attempt, 0, body FROM sent;
DROP TABLE sent;

ALTER TABLE attempts ADD COLUMN tokens_before INTEGER;
ALTER TABLE attempts ADD COLUMN tokens_after INTEGER;
ALTER TABLE attempts ADD COLUMN tool_tokens INTEGER;
ALTER TABLE attempts ADD COLUMN continues TEXT; -- the backend's own response
ALTER TABLE attempts ADD COLUMN recall TEXT;
