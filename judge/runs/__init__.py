"""Runs: a submission, read from its format, checked by the rules of the field, fixed and converted.

topics      the conversations
document    a file's bytes as JSON values, with the place of an error (fields: its members, one by one)
formats/    a reader for each format, and the rules that tell it from others
tokens      the token limit, counted the ways in use
profiles    the limits of each track's year
ranking     which passages count as used by a response, and a run's passages as one ranking a turn
measures    measures of rankings by grades; trec_run: a run of six columns as rankings
check/      every problem of a run, each with its code
fix/        fixed copies
convert/    one format to another
"""
