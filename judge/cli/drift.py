"""Compare a judge's grades of the same responses at two dates.

Says how far the mean grade moved, with its interval over topics, and how many grades are unchanged. STEADY: two
one-sided tests at 5 % find a change smaller than the margin. MOVED: a change beyond it. Exit code 1 unless all is
STEADY.
"""

import argparse
from pathlib import Path

from judge.calibrate.drift import Drift
from judge.cli.printing import print_json, print_table, progress, say
from judge.harness.drift import DriftPlan, compare_dates
from judge.text.cells import interval, number

HEADER = (
    *("judge", "prompt", "n/topics", "change [95 %]", "[90 %]", "unchanged [95 %]"),
    *("higher", "lower", "lost", "gained", "verdict"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "before", type=Path, metavar="BEFORE", help="labels of the first date: folder, JSONL or columns"
    )
    parser.add_argument("after", type=Path, metavar="AFTER", help="labels of the second date, of the same responses")
    parser.add_argument(
        "--margin",
        type=float,
        default=0.1,
        metavar="M",
        help="the change of the mean grade that does not matter (default 0.1)",
    )
    parser.add_argument("--scale", metavar="LOW-HIGH", help="grades of labels in columns, such as 0-3")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def main(args: argparse.Namespace) -> int:
    """Compare and print; 1 unless every judge is STEADY."""
    with progress("comparing two dates"):
        outcome = compare_dates(DriftPlan(before=args.before, after=args.after, margin=args.margin, scale=args.scale))
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if args.json:
        print_json({"warnings": outcome.warnings, "rows": outcome.rows})
    else:
        print_table(HEADER, [_cells(row) for row in outcome.rows], words=2, keys=2)
    return 0 if outcome.steady else 1


def _cells(row: Drift) -> tuple[str, ...]:
    low, high = (number(end, signed=True) for end in (row.within.low, row.within.high))
    return (
        row.after,
        row.prompt or "-",
        f"{row.n}/{row.topics}",
        interval(row.change, signed=True),
        "-" if row.within.low is None else f"[{low}, {high}]",
        interval(row.unchanged),
        *map(str, (row.higher, row.lower, row.lost, row.gained)),
        row.word,
    )
