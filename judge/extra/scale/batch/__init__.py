"""Batch: requests as files that any engine can carry out, and the way of their completions into a journal."""
