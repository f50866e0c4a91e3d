"""Sheets: what a plan drew, in the form in which assessors label it, and in which their labels come back.

items  what a sheet shows and to whom
kinds  the files of each kind, in a table
"""

from judge.gold.sheets.items import ASSESSOR, GoldSheet, make_sheet
from judge.gold.sheets.kinds import SHEETS, SheetOptions

__all__ = ["ASSESSOR", "SHEETS", "GoldSheet", "SheetOptions", "make_sheet"]
