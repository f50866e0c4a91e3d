"""Evaluate: the measures that the tracks publish, over runs and grades.

scores            one run under one measure, over which turns, with the value of every turn
breakdown         runs taken apart by topic, depth of the turn, and whether it needs the user's PTKB
paired            every two runs on the same turns, and the letters that tied runs share
pictures          the breakdowns drawn
responses         runs of responses under the grades of a criterion
intake            runs as rankings, from the formats of the tracks and from TREC runs
rankings          runs under the measures of rankings, by each assessment; ranking_tables: as tables and lines
statements        the PTKB statements of runs as rankings of numbers; the assessment that topics hold
spans             predicted spans and their passages, as RCD-2020 measured them
wording           responses beside manual ones: BLEU and ROUGE
sets              two sets of grades: agreement, rankings of runs, holes
jobs              the commands, from files to files
"""
