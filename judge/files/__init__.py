"""Files: how they are read whole and replaced whole, line by line, as tables, in TREC's formats.

stored     the bytes of a file, unpacked; digests
folder     output folders: where one may lie, and how its files are replaced without leaving a stale one
jsonl      JSON and JSON Lines
lines      lists of turns, runs, teams: one entry a line
tabular    CSV and TSV, with the line that each row begins on
trec       qrels and runs; ids as columns and as file names
processes  a function of many files in processes of their own, where cores are free
extras     packages that pip installs only if asked to, and what says so
zstandard  the module for Zstandard, whichever Python runs
bundle     files that are installed with the program: prompts, gold, example; its version
"""
