"""The review desk: what judges and assessors disagree on, worst first, and a prompt that is improved on it.

cases    the disagreements, and those that a filter keeps
shelf    the prompts that may be read and edited, the wordings saved here, and how two of them differ
rerun    a wording asked again on dev items, beside the one that it came from
desk     the pages, and the job of `judge serve review`
"""
