"""Evaluation: the measures of the tracks from files to files, for use from Python as on the command line.

responses         runs of responses under anybody's grades; response_inputs: their files
measured          passages and PTKB statements of runs
spans             spans of dialogues
qrels             two sets of grades; set_inputs: their files, and the runs that they grade
"""
