"""Results: judgments to qrels and leaderboards, plain, corrected, under other token rules; topics planned. Pure.

qrels             response qrels, each with a sidecar that says how it was made
turns             what became of the turns that each run had to answer
tables            all tables of a judged pool
leaderboard       a row for each run and criterion
differences       a row for every two runs
details           sentences, citations, and topics of interactive runs
corrected         means corrected by gold, which `gold` checks; leaderboard shows them
planning          variance components, and the topics that the next comparison needs
sensitivity       ranks under each token rule
rows              the records of these tables, and their words
"""
