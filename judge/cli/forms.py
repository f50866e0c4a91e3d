"""The forms in which commands print their tables."""

import argparse
from collections.abc import Sequence
from typing import Annotated, Any

from judge.cli.printing import print_json, print_table, print_text
from judge.files.plan import OneOf, Options
from judge.text.table import FORMS, Table


def add_form_option(parser: argparse.ArgumentParser, *others: str) -> None:
    """Declare `--format`; a command that knows `others` writes them itself."""
    parser.add_argument(
        "--format",
        choices=("table", *FORMS, *others),
        default="table",
        help="how the tables are printed (default table)",
    )


class TableFormat(Options, section="output"):
    """How tables are printed."""

    format: Annotated[str, OneOf(("table", *FORMS))] = "table"
    """How the tables are printed."""


def print_grids(grids: Sequence[Table[Any]], form: str) -> None:
    """Print tables in a form, with an empty line between two; as JSON, one list of them."""
    if form == "json":
        print_json([grid.to_object() for grid in grids])
        return
    for place, grid in enumerate(grids):
        print("\n" if place else "", end="")
        if form == "table":
            _print(grid)
        else:
            print(FORMS[form][1](grid), end="")


def _print(grid: Table[Any]) -> None:
    print_text(grid.title, "heading")
    print_table(grid.columns, list(grid.cells()), words=grid.words())
    for note in grid.notes:
        print_text(note)
