"""The review desk: what judges and assessors disagree on, worst first, and a prompt that is improved on it.

plan     what the desk is given
cases    the disagreements, and those that a filter keeps
shelf    the prompts that may be read and edited, and the wordings saved here
rerun    a wording asked again on dev items, beside the one that it came from
wording  the difference of two prompt files, line by line
desk     the pages
serve    the job of `judge serve review`
"""
