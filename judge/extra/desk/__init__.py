"""Desk: a local web app in which assessors label responses, and prompt writers look at what judges get wrong."""
