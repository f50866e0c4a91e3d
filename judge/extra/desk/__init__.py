"""Desk: a local web app in which assessors label responses, and prompt writers look at what judges get wrong.

app      pages, forms and seats of any desk; server: its address
assess   `judge serve assess`; assess_inputs: what is labeled; store: the labels
review   `judge serve review`; rerun: prompts, new wordings, one asked again
"""
