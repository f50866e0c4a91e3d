"""The tables of a store of labels; docs/desk.md explains them. Pure."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE assessor (assessor INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL);
CREATE TABLE item (
    item INTEGER PRIMARY KEY, turn_id TEXT NOT NULL, topic_id TEXT NOT NULL, response_id TEXT NOT NULL,
    text_sha256 TEXT NOT NULL, run_id TEXT, inclusion_probability REAL NOT NULL, stratum TEXT NOT NULL,
    shared INTEGER NOT NULL
);
CREATE TABLE task (
    assessor INTEGER NOT NULL, place INTEGER NOT NULL, item INTEGER NOT NULL, criterion TEXT NOT NULL,
    PRIMARY KEY (assessor, place)
);
CREATE TABLE label (
    number INTEGER PRIMARY KEY AUTOINCREMENT, assessor INTEGER NOT NULL, item INTEGER, criterion TEXT, grade INTEGER,
    unable INTEGER, comment TEXT, made TEXT, at TEXT NOT NULL, undoes INTEGER
);
CREATE VIEW labels AS
    SELECT item, assessor.name AS assessor, turn_id, topic_id, response_id, text_sha256, run_id, criterion, grade,
        unable, comment, made, inclusion_probability, stratum, shared, at
    FROM label JOIN assessor USING (assessor) JOIN item USING (item)
    WHERE number IN (
        SELECT max(number) FROM label
        WHERE undoes IS NULL AND number NOT IN (SELECT undoes FROM label WHERE undoes IS NOT NULL)
        GROUP BY label.assessor, item, criterion
    );
"""
