-- Schema 3: the index is given words as they are, and no longer texts that it takes apart by rules of its own: those know
-- fewer letters than Unicode has by now, and join marks to letters. What is there is indexed anew.

DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = '', columnsize = 0, detail = none,
    tokenize = "ascii"
);
UPDATE indexed SET n = 0;
