"""Nuggets: what a good response says, which responses say it, and the recall and precision of runs.

A bank lists nuggets of turns or of topics. A match says whether a response supports one. A label of a claim says
whether nuggets carry a sentence of a response. `sources` and `creation` make a bank by a judge; `sheet` lets people
edit one. A directory of this room, `forms`, holds a module for each form of bank, and reads people's edits of it.
"""
