"""Compare a judge's grades of the same responses at two dates.

Says how far the mean grade moved, with its interval over topics, and how many grades are unchanged. STEADY: two
one-sided tests at 5 % find a change smaller than the margin. MOVED: a change beyond it. Exit code 1 unless all is
STEADY.
"""

from judge.calibrate.drift import Drift
from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_table, progress, say
from judge.io.cells import interval, number
from judge.jobs.drift import DriftPlan, compare_dates

HEADER = (
    *("judge", "prompt", "n/topics", "change [95 %]", "[90 %]", "unchanged [95 %]"),
    *("higher", "lower", "lost", "gained", "verdict"),
)


def main(plan: DriftPlan, output: JsonOutput) -> int:
    """Compare and print; 1 unless every judge is STEADY."""
    with progress("comparing two dates"):
        outcome = compare_dates(plan)
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if output.as_json:
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
