"""Models of a crowd's workers: who is reliable, and how the labels of each are to be weighed.

models   aggregators with a parameter for each worker, rows of `AGGREGATORS`
joint    judges and workers in one model, as a diagnostic only
workers  each worker's agreement with the rest and signs of spam
"""
