"""Jobs: from files to files, each a plan, a function and an outcome; the commands and Python share them.

pooling      runs to a pool
validation   what is wrong with runs; pages and fixed copies
run          the whole line and its dry run; run_inputs: its plan, its engine and what it names, read
folder       the bytes of the files of a pool and of results; manifest: how they came about, and what it is read for
judged       an output folder with judgments, read back
leaderboard  the leaderboard corrected by gold; topics planned with a judged folder as the pilot
calibration/ judges compared with gold, and asked first where they have not judged yet
tokens       how long the responses are; passages: indexes, and the texts of a pool; gold: gold files checked and made
crowd        workers' labels to grades
"""
