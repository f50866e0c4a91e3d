"""Results: judgments to qrels and leaderboards, plain, corrected by gold, and under other token rules. Pure.

qrels             response qrels, each with a sidecar that says how it was made
turns             what became of the turns that each run had to answer
leaderboard       a row for each run and criterion
differences       a row for every two runs
corrected         means corrected by gold, which `graded` checks; corrected_tables shows them
sensitivity       ranks under each token rule
rows              the records of these tables
"""
