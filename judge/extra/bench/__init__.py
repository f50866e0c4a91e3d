"""Bench: judges on public labels by people.

datasets   a reader a family of labels, and the table of them in `catalog`
cards      a judge on such labels: its card, and cards compared
job        `judge bench`; listing, comparing: its datasets, and cards side by side
"""
