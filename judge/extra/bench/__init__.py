"""Bench: judges on public labels by people.

datasets    how labels are read; grounded, graded: a reader a family of them
listing     the table of datasets, their items drawn, and these as a pool
card        the judge card, made of answers; page: as Markdown, and cards side by side
job         `judge bench`
"""
