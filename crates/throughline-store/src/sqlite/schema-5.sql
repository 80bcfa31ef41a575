-- Schema 5: every row that nothing else vouches for has a checksum over its columns (checksum.rs): conversations, keys,
-- exchanges, attempts, entries, items, requests, events, answers, verdicts, settings. It is computed for what is there.
-- `write_probe` is written to by whoever asks whether something can be written.

ALTER TABLE conversations ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE exchanges ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bodies ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sent ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE answers ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE learned ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE settings ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

CREATE TABLE write_probe (
    at INTEGER NOT NULL
) STRICT;
INSERT INTO write_probe VALUES (0);

-- Numbers of entries that were deleted are given out again, so the index may not claim to reach beyond the last one.
UPDATE indexed SET n = min(n, coalesce((SELECT max(n) FROM nodes), 0));
