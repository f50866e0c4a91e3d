"""List the public datasets that judges are measured on: which are below a folder, and how to get the others."""

import argparse
from pathlib import Path

from judge.cli.printing import add_form_option, print_grids
from judge.harness.evaluation.bench_data import DatasetsPlan, list_datasets
from judge.text.table import Table

COLUMNS = ("dataset", "there", "criterion", "rung", "unit", "stored judges", "licence", "source")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with the datasets")
    add_form_option(parser)


def main(args: argparse.Namespace) -> int:
    """List the datasets."""
    listed = list_datasets(DatasetsPlan(data=args.data))
    lines = tuple(
        (each.name, each.there, each.criterion, each.rung, each.unit, each.stored, each.licence, each.source)
        for each in listed
    )
    note = "Judge downloads none of them: clone or download the source into the folder, and keep to its licence."
    print_grids([Table(lines, COLUMNS, "Datasets", (note,))], args.format)
    return 0
