"""Crowd: workers' labels, or those of a jury of judges, to one grade an item.

labels       workers' labels of one criterion, as arrays
tables       long and wide tables of labels, read (sheets, wide) and checked (rows); faults lists what is wrong
known        workers who contradict a known item are left out of that topic (known_file: which those are)
aggregators  labels to one grade an item: a table of ways
workers      each worker's agreement with the rest and signs of spam
reliability  how reliable the crowd is, over all and by topic
study        all of it for a set of tables
outputs      pool, bank, qrels, gold; audit and summary say how they came about
regin/       the published CAsT-ReGIn resource: checked, made again, runs matched with it
jury         the same aggregators over LLM judges; members: who they are; notes: what outputs say of them
joint        judges and workers in one model, to look at and nothing else
"""
