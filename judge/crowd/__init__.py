"""Crowd: from workers' labels to a consensus, and from there to response qrels.

labels       workers' labels of one criterion, as arrays
tables       long and wide tables of labels, read and checked
known        workers who contradict a known item are left out of that topic
aggregators  labels to one grade an item: a table of ways
workers      how reliable the crowd is, and each worker
outputs      pool, bank, qrels, gold, audit trail
regin        the published CAsT-ReGIn resource, checked and made again
jury         the same aggregators over LLM judges
"""
