"""A judge that is tested itself: altered copies of pooled responses, and whether the judge's grade moves as it must.

    records      an item, its altered copy (the twin), and why an item has none
    canaries     texts that try to talk a judge into a grade: add a row to CANARIES
    alterations  evidence taken away, facts altered: the grade must fall
    invariances  other words, padding, formatting, order: the grade must stay
    probes       the table of all probes: add a row to PROBES
    drawing      which items are drawn, and their twins
    pairs        a judge's grades of an item and of its twin
    measured     the rows of a judge, and from the interval of a shift to holds, fails or inconclusive
    card         everything that a probe found, as `probe.json` has it, and the shifts as pictures
    page         tables and Markdown

Nothing here reads files or asks a judge; `job` does.
"""
