"""A judge that is tested itself: altered copies of pooled responses, and whether the judge's grade moves as it must.

    alterations  copies (twins) without evidence or true facts: the grade must fall; in other words: it must stay
    probes       the tables of probes and of canaries, texts that try to talk a judge into a grade: add a row; and
                 a judge's grade of an item beside that of its copy
    card         the rows of a judge, from the interval of a shift to holds, fails or inconclusive; tables and pictures

Nothing here reads files or asks a judge; `job` does.
"""
