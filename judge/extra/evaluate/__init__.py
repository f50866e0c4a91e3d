"""Evaluate: the measures that the tracks publish, over runs and grades.

scores            one run under one measure, over which turns, with the value of every turn
breakdown         runs taken apart by topic, depth of the turn, and need of the user's PTKB, and every two runs compared
intake            runs as rankings of passages or of PTKB statements, from the formats of the tracks and from TREC runs
responses         `judge evaluate responses`; graded: runs of responses under the grades of a criterion
measured          `judge evaluate passages` and `statements`
spans             `judge evaluate spans`; span_scores: predicted spans as RCD-2020 measured them
wording           `judge evaluate wording`
qrels             `judge evaluate qrels`; sets: agreement and holes; set_rankings: runs by each set
"""
