"""What the terminal shows: aligned plain text, safe to pipe; hostile characters made visible."""

import sys
from collections import Counter
from collections.abc import Sequence

from judge.leaderboard import HEADER, leaderboard_cells
from judge.records import Criterion, LeaderboardRow, Problem
from judge.text import printable

_SHOWN = 12


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print columns: the first `words` ones to the left, the others, which are numbers, to the right."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        padded = (
            cell.ljust(width) if column < words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(padded).rstrip())


def print_leaderboard(rows: Sequence[LeaderboardRow], criteria: Sequence[Criterion], banner: str) -> None:
    """Print one table a criterion under the banner."""
    print(printable(banner))
    for criterion in criteria:
        better = "higher is better" if criterion.scale.polarity == "higher" else "lower is better"
        grades = [level.grade for level in criterion.scale.levels]
        print(f"\n{criterion.name}, prompt {criterion.prompt_id}, grades {min(grades)} to {max(grades)}, {better}")
        print_table(HEADER, leaderboard_cells([row for row in rows if row.criterion == criterion.name]))


def print_problems(problems: Sequence[Problem], *, checked_topics: bool) -> None:
    """Say on stderr what is wrong with the runs: counts by code, and every error up to a dozen."""
    counts = Counter((problem.severity, problem.code) for problem in problems)
    for (severity, code), count in sorted(counts.items()):
        print(f"{severity}: {code} × {count}", file=sys.stderr)
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in errors[:_SHOWN]:
        where = " ".join(part for part in (problem.turn_id, problem.path) if part)
        print(f"  {printable(f'{problem.file}: {problem.code} at {where}: {problem.message}')}", file=sys.stderr)
    if len(errors) > _SHOWN:
        print(f"  … and {len(errors) - _SHOWN} more errors", file=sys.stderr)
    if problems:
        print("`judge validate` lists every problem; those with errors are not judged", file=sys.stderr)
    if not checked_topics:
        print("without --topics, turn ids and PTKB statements could not be checked", file=sys.stderr)
