"""Sets: two sets of grades of the same items.

grades            a set, and the agreement of two on what both graded
holes             a run's score by one set; what only one set graded, and how far it could move scores and ranking
rankings          the runs ranked by each set; what `judge evaluate qrels` prints
"""
