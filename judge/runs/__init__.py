"""Runs: a submission, read from its format, checked by the rules of the field, fixed and converted.

topics      the conversations
document    a file's bytes as JSON values, with the place of what cannot be read (typed: the quick way; fields: by hand)
formats/    a reader a format, and the facts that all others ask about it
tokens      the 250-token rule, counted the ways in use
provenance  which passages a response rests on; ranking: a run's passages as one ranking a turn
check/      every problem of a run, each with its code
fix/        fixed copies
convert/    one format to another
"""
