-- Schema 2: which envelope an entry shares with others, so that it can be told when nobody does any more. For the
-- entries that are there already it is read from their records.

ALTER TABLE nodes ADD COLUMN envelope INTEGER REFERENCES blobs (n);
