"""Crowd: one grade for each item from workers' labels, or from the grades of a jury of judges.

labels     workers' labels of one criterion, as arrays, and ways to one grade for each item, in a table
tables     tables of labels in any layout, read (sheets) and checked (rows); layout is how, and what is wrong
platforms  exports of MTurk and Label Studio; wide surveys and Prolific's submissions
known      leaves workers who contradict a known item out of that topic
workers    each worker's agreement with the rest, and signs of spam
study      runs all of these on a set of tables, and says how reliable the crowd is, over all and by topic
outputs    pool, bank, qrels, gold, and how they came about
joint      judges beside a crowd's workers under one model, as a diagnostic
jury       the same aggregators over LLM judges
"""
