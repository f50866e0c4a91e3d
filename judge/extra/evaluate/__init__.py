"""Evaluate: the measures that the tracks publish, over runs and grades.

scores            one run under one measure, over which turns, with the value of every turn
breakdown         runs taken apart by topic, depth of the turn, and need of the user's PTKB, as tables and pictures
paired            every two runs on the same turns, and the letters that tied runs share
graded            runs of responses under the grades of a criterion
intake            runs as rankings of passages or of PTKB statements, from the formats of the tracks and from TREC runs
rankings          runs under the measures of rankings, by each assessment
spans             predicted spans as RCD-2020 measured them
sets              two sets of grades: agreement, rankings of runs, holes
jobs              the commands, from files to files
"""
