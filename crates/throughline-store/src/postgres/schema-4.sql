-- Schema 4: every row that nothing else vouches for has a checksum over its columns (checksum.rs): conversations, keys,
-- exchanges, attempts, entries, items, requests, events, answers, verdicts, settings. It is computed for what is there.
-- `write_probe` is written to by whoever asks whether something can be written.

ALTER TABLE conversations ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE exchanges ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE bodies ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE sent ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE answers ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE learned ADD COLUMN checksum bigint NOT NULL DEFAULT 0;
ALTER TABLE settings ADD COLUMN checksum bigint NOT NULL DEFAULT 0;

CREATE TABLE write_probe (
    at timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO write_probe VALUES (now());
