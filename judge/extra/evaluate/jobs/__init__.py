"""Evaluation: the measures of the tracks from files to files, for use from Python as on the command line.

responses         runs of responses under anybody's grades
measured          passages and PTKB statements of runs
spans             spans and passages of RCD-2020
wording           BLEU and ROUGE against manual responses
qrels             two sets of grades; set_inputs: their files, and the runs that they grade
"""
