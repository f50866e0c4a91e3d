"""Desk: a local web app in which assessors label responses, and prompt writers look at what judges get wrong.

app      pages, forms and seats of any desk, and its address
assess   `judge serve assess`; store: the labels
review   `judge serve review`; rerun: prompts, new wordings, one asked again
"""
