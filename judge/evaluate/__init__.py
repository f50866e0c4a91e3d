"""Evaluate: the measures that the tracks publish, over runs and grades; what papers print; judges on public labels.

scores            one run under one measure, over which turns, with the value of every turn
breakdown         runs taken apart by topic, depth of the turn, and whether it needs the user's PTKB
paired            every two runs on the same turns, and the letters that tied runs share
kinds             the kinds of tables that runs have, and their files
pictures          the breakdowns drawn
responses         runs of responses under the grades of a criterion
intake            runs as rankings, from the formats of the tracks and from TREC runs
rankings          runs under the measures of rankings, by each assessment; ranking_tables: as tables and lines
statements        the PTKB statements of runs as rankings of numbers; the assessment that topics hold
spans             predicted spans and their passages, as RCD-2020 measured them
wording           responses beside manual ones: BLEU and ROUGE
sets              two sets of grades: agreement, rankings of runs, holes
below             the files below a folder that a user downloaded
published         what papers printed beside what their released files give
datasets          public labels of responses by people: a reader a family, and the table of them in `catalog`
cards             a judge on such labels: its card, and cards compared
"""
