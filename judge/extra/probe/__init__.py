"""A judge that is tested itself: altered copies of pooled responses, and whether the judge's grade moves as it must.

    records      an item, its altered copy (the twin), why an item has none, and a judge's grades of both
    alterations  evidence taken away, facts altered: the grade must fall; other words, padding, order: it must stay
    probes       the tables of probes and of canaries, texts that try to talk a judge into a grade: add a row
    card         the rows of a judge, from the interval of a shift to holds, fails or inconclusive; tables and pictures

Nothing here reads files or asks a judge; `inputs` and `job` do.
"""
