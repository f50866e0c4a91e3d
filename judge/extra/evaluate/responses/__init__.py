"""Responses: runs under the grades of a criterion.

graded            each run's values over the turns of the qrels
tables            their tables and pictures
"""
