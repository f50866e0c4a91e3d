"""Io: how ids, texts and numbers are written, and files read whole and replaced whole.

safe       strangers' texts made safe to print, to show in a message, to store
ids        the natural order of ids, and the topic in a turn id
cells      numbers and names as text that fits its place
layout     tables and lines as wide as the terminal
table      records as a table for notebooks, data frames and every form of page
markup     tables and names in Markdown
sentences  where a sentence of a response ends
words      the content words of a text
lucene     the words of a text as Lucene's analyzers find them
steps      how far a job is
stored     the bytes of a file, unpacked; digests
content    JSON and JSON Lines; lists of turns, runs, teams: one entry a line
folder     output folders: where one may lie, and how its files are replaced without leaving a stale one
plan       options as fields of a plan
tabular    CSV and TSV, with the line that each row begins on
trec       qrels and runs; ids as columns and as file names
processes  a function of many files in processes of their own, where cores are free
extras     packages that pip installs only if asked to, and what says so
below      the files below a folder that a user downloaded
bundle     files that are installed with the program: prompts, gold, example; its version
draw       pictures as SVG and PNG, and the look of pages
"""
