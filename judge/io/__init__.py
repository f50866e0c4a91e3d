"""Io: how ids, texts and numbers are written, and files read whole and replaced whole.

text       strangers' texts made safe to print, to show in a message, to store; numbers and names that fit their place
ids        the natural order of ids, and the topic in a turn id; qrels and runs; ids as columns and as file names
layout     tables as wide as the terminal
table      records as a table for notebooks, data frames and every form of page
words      the words and sentences of a text
steps      how far a job is, and how that is shown
files      paths as Python callers give them; the bytes and lines of a file, unpacked; JSON; digests; bounds
folder     output folders: where one may lie, and how its files are replaced without leaving a stale one
plan       options as fields of a plan
tabular    CSV, TSV and Parquet, with the place of each row
processes  a function of many files in processes of their own, where cores are free
installed  prompts, gold, examples and version of the program; packages that pip installs only if asked to
draw       pictures as SVG and PNG
page       templates that escape, one style sheet, a policy that lets nothing in
"""
