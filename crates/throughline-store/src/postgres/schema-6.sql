-- Schema 6: what an attempt was about is in documents of several kinds, each kept as what differs from an earlier one of its
-- kind (docs/decisions/0036): the request as sent (0), as it came (1), where its parts come from (2), what was changed (3).
-- Reports are moved there from the rows of attempts, which have what lists show in columns of their own.

CREATE TABLE documents (
    exchange bigint NOT NULL,
    attempt  integer NOT NULL,
    kind     smallint NOT NULL,
    body     uuid NOT NULL,
    checksum bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (exchange, attempt, kind)
);
INSERT INTO documents (exchange, attempt, kind, body) SELECT exchange, attempt, 0, body FROM sent;
DROP TABLE sent;

ALTER TABLE attempts ADD COLUMN tokens_before bigint;
ALTER TABLE attempts ADD COLUMN tokens_after bigint;
ALTER TABLE attempts ADD COLUMN tool_tokens bigint;
ALTER TABLE attempts ADD COLUMN continues text; -- the backend's own response
ALTER TABLE attempts ADD COLUMN recall text;
