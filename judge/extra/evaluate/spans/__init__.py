"""Spans: the measures of RCD-2020.

overlap           predicted spans against gold spans
script            what the organizers' script prints for such a run
merged            ranked passages under qrels of topics that share a conversation
files             the files of RCD-2020
tables            what `judge evaluate spans` prints
"""
