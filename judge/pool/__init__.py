"""Pool: which responses are judged, on what evidence, under which id.

intake         from a folder of runs to candidates, one file in memory at a time
admission      from one run file to its candidates, responses or dialogues
selection      which responses of a run are pooled; lists: the files that name them
run_choice     which runs are pooled, by a list or by their effectiveness
build          distinct responses with their passages, each under an id that never changes
screen         flags low-quality responses without a judge
bank           the pool as files, and the pool back from its files
"""
