"""Results: judgments to qrels and leaderboards, plain, corrected by gold, and under other token rules. Pure.

qrels             response qrels, each with a sidecar that says how it was made
leaderboard       a row a run and criterion
corrected         means corrected by gold; corrected_tables: how they are shown
sensitivity       ranks under each token rule
rows              the records of all these
"""
