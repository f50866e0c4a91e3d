"""The assess desk: people label pooled responses on a prompt's own rubric, each in an order of their own.

inputs  reads the pool, the plan, the prompts and the conversations; a judge's grades in post-edit mode only
store   keeps every label in one SQLite file
desk    the pages, and the job of `judge serve assess`
"""
