"""Sets: two sets of grades of the same items.

grades            a set, and the agreement of two on what both graded
measures          a run's score by one of two sets
rankings          the runs ranked by each set: agreement, and pairs that swap
holes             what only one set graded, and how far it could move scores and ranking
tables            what `judge evaluate qrels` prints
"""
