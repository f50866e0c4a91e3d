"""Nuggets: what a good response says, which responses say it, and the recall and precision of runs.

A bank lists nuggets of turns or of topics. A match says whether a response supports one. A label of a claim says
whether nuggets carry a sentence of a response. `create` makes a bank by a judge, which people edit in a sheet.
`forms` has a row for each form of bank.
"""
