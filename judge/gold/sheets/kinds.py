"""The files of each kind of sheet: one function for each, listed in the table at the foot."""

from collections.abc import Callable
from typing import NamedTuple

from judge.errors import UsageError
from judge.gold.sheets.form import form_page, worker_form
from judge.gold.sheets.items import GoldSheet, Share, shares
from judge.gold.sheets.labelstudio import config_xml, tasks_json
from judge.gold.sheets.mturk import batch_and_form
from judge.gold.sheets.table import levels_csv, sheet_csv


class SheetOptions(NamedTuple):
    """Who labels what, in which order."""

    assessors: tuple[str, ...] = ()
    double: float | None = None
    """The share of the items that every assessor labels, each other one being labeled by one; None for DOUBLE."""
    per_task: int = 1
    """How many responses a worker sees on one page of MTurk."""
    seed: int = 0


def _csv(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    """A table for each assessor, and a table of what the grades mean."""
    files = {f"{_name(share)}.csv": sheet_csv(sheet, share) for share in _shares(sheet, options)}
    return {**files, "levels.csv": levels_csv(sheet)}


def _html(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    """A page for each assessor."""
    return {f"{_name(share)}.html": form_page(sheet, share) for share in _shares(sheet, options)}


def _mturk(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    """The table of a batch, and its form."""
    _no_assessors(options)
    ((_, items),) = shares(sheet.items, (), None, options.seed)
    per_task = min(options.per_task, len(items))
    return batch_and_form(items, per_task, worker_form(sheet, per_task))


def _label_studio(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    """The tasks, and the labeling interface."""
    _no_assessors(options)
    ((_, items),) = shares(sheet.items, (), None, options.seed)
    return {"tasks.json": tasks_json(sheet._replace(items=items)), "config.xml": config_xml(sheet)}


def _shares(sheet: GoldSheet, options: SheetOptions) -> tuple[Share, ...]:
    return shares(sheet.items, options.assessors, options.double, options.seed)


def _name(share: Share) -> str:
    return f"sheet-{share.assessor}" if share.assessor else "sheet"


def _no_assessors(options: SheetOptions) -> None:
    if options.assessors or options.double is not None:
        raise UsageError("--assessor and --double belong to csv and html: a platform deals out the work itself")


SheetFiles = Callable[[GoldSheet, SheetOptions], dict[str, bytes]]
"""Makes the files of a sheet, by name."""

SHEETS: dict[str, SheetFiles] = {
    "csv": _csv,
    "html": _html,
    "labelstudio": _label_studio,
    "mturk": _mturk,
}
"""Kind of sheet to what makes its files."""
