"""What papers printed, beside what their released files give.

papers      a function a paper: the numbers of its tables, made from a folder of its files
cast_regin  the same for CAsT-ReGIn
*.tsv       what each paper printed, a cell a line; `released`: what the release gives where it is not that, and why
"""
