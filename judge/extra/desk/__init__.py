"""Desk: a local web app in which assessors label responses.

app      pages, forms and seats, and the address
assess   `judge serve assess`; store: the labels
adjudication  what assessors differ on, for a third person
"""
