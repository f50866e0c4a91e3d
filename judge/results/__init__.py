"""Results: judgments to qrels and leaderboards, plain and corrected; topics planned. Pure.

qrels             response qrels, each with a sidecar that says how it was made
turns             what became of the turns that each run had to answer
tables            all tables of a judged pool, and a row for every two runs
leaderboard       a row for each run and criterion, as judged and as corrected
details           sentences, citations, and topics of interactive runs
corrected         means corrected by gold, which `gold` checks
planning          variance components, and the topics that the next comparison needs
rows              the records of these tables, and their words
"""
