"""Crowd: one grade for each item from workers' labels, or from the grades of a jury of judges.

labels       workers' labels of one criterion, as arrays
tables       tables of labels, read (sheets, frames) and checked (rows, distinct); layout is how, tasks what is
             labeled, problems what is wrong
platforms    exports of MTurk, Toloka and Label Studio (answers, annotations); wide surveys, with Prolific's submissions
known        leaves workers who contradict a known item out of that topic (known_file reads known items)
aggregators  ways from labels to one grade for each item, in a table
workers      each worker's agreement with the rest and signs of spam
reliability  how reliable the crowd is, over all and by topic
study        runs all of these on a set of tables
outputs      pool, bank, qrels, gold; audit and summary say how they came about
regin        the published CAsT-ReGIn resource, read
jury         the same aggregators over LLM judges; members names them
joint        judges and workers in one model, as a diagnostic only
"""
