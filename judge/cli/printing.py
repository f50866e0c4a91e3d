"""How commands speak: data on stdout as tables or JSON, messages on stderr, control characters made visible."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from judge.records import Problem
from judge.text.safe import printable

SHOWN = 5
"""How many problems of one code are listed for one file, unless all are asked for."""


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1, below: Sequence[str] = ()
) -> None:
    """Print columns: the first `words` columns to the left, the others, which hold numbers, to the right.

    Args:
        header: The names of the columns.
        rows: The cells of each row.
        words: How many columns hold words.
        below: A line for under each row, or an empty one.
    """
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row, line in zip(cells, ("", *(below or [""] * len(rows))), strict=True):
        padded = (
            cell.ljust(width) if column < words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(padded).rstrip())
        if line:
            print(f"{' ' * (widths[0] + 2)}{printable(line)}")


def print_json(value: object) -> None:
    """Print a value as indented JSON, fields in the order of the record."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say(text: str) -> None:
    """Say a line on stderr."""
    # A reader who stopped listening is no reason to stop a job, which may have paid calls under way.
    with contextlib.suppress(BrokenPipeError):
        print(printable(text), file=sys.stderr, flush=True)


def problem_lines(problems: Sequence[Problem], shown: int | None) -> Iterator[str]:
    """One line per problem; after `shown` problems of one code in one file, one line that counts the rest."""
    totals = Counter((problem.file, problem.code) for problem in problems)
    listed: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = (problem.file, problem.code)
        listed[kind] += 1
        if shown is None or listed[kind] <= shown:
            where = " ".join(part for part in (problem.turn_id, problem.path) if part)
            head = f"{problem.file}: {problem.severity} {problem.code}"
            yield f"{head}{' ' if where else ''}{where}: {problem.message}"
        elif listed[kind] == shown + 1:
            rest = totals[kind] - shown
            yield f"{problem.file}: {problem.severity} {problem.code}: {rest} more (--all lists them)"
