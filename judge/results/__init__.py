"""Results: judgments to qrels and leaderboards, plain, corrected by gold, and under other token rules. Pure.

qrels             response qrels, each with a sidecar that says how it was made
leaderboard       a row for each run and criterion
corrected         means corrected by gold; corrected_tables shows them
sensitivity       ranks under each token rule
rows              the records of these tables
"""
