"""Nuggets: what a good response says, which responses say it, and the recall and precision of runs.

A bank lists nuggets of turns or of topics. A match says whether a response supports one. A label of a claim says
whether nuggets carry a sentence of a response. `creation` makes a bank by a judge, which people edit in a sheet. A
directory of this room, `forms`, holds a module for each form of bank, and the edits.
"""
