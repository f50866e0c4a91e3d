"""What the terminal shows: aligned plain text that is safe to pipe, with control characters made visible."""

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from judge.harness.pooling import Pooled
from judge.pool.build import lacking_texts
from judge.records import Criterion, Problem
from judge.results.leaderboard import HEADER, leaderboard_cells
from judge.results.rows import LeaderboardRow
from judge.text.safe import printable

SHOWN = 5
"""How many problems of one code are listed for one file, unless all are asked for."""
_SHOWN = 12
"""How many errors in runs are listed before a pool is made."""


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print columns: the first `words` columns to the left, the others, which hold numbers, to the right."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        padded = (
            cell.ljust(width) if column < words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(padded).rstrip())


def print_json(value: object) -> None:
    """Print a value as indented JSON, fields in the order of the record."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say(text: str) -> None:
    """Say a line on stderr."""
    # A reader who stopped listening is no reason to stop a job, which may have paid calls under way.
    with contextlib.suppress(BrokenPipeError):
        print(printable(text), file=sys.stderr, flush=True)


def print_leaderboard(rows: Sequence[LeaderboardRow], criteria: Sequence[Criterion], banner: str) -> None:
    """Print the banner, and under it one table per criterion."""
    print(printable(banner))
    for criterion in criteria:
        better = "higher is better" if criterion.scale.polarity == "higher" else "lower is better"
        grades = [level.grade for level in criterion.scale.levels]
        print(f"\n{criterion.name}, prompt {criterion.prompt_id}, grades {min(grades)} to {max(grades)}, {better}")
        print_table(HEADER, leaderboard_cells([row for row in rows if row.criterion == criterion.name]))


def print_problems(problems: Sequence[Problem], *, checked_topics: bool) -> None:
    """Say the problems of the runs: counts by code, and the first dozen errors."""
    counts: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        counts[problem.severity, problem.code] += problem.count
    for (severity, code), count in sorted(counts.items()):
        say(f"{severity}: {code} × {count}")
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in errors[:_SHOWN]:
        where = " ".join(part for part in (problem.turn_id, problem.path) if part)
        say(f"  {problem.file}: {problem.code} at {where}: {problem.message}")
    if len(errors) > _SHOWN:
        say(f"  … and {len(errors) - _SHOWN} more errors")
    if problems:
        say("`judge validate` lists every problem; responses with errors are not judged")
    if not checked_topics:
        say("without --topics, turn ids and PTKB statements could not be checked")


def print_pooled(pooled: Pooled) -> None:
    """Say what was pooled, what was left out and why, and what the screen flagged."""
    pool = pooled.pool
    runs = sum(run.selected for run in pooled.submitted.runs)
    say(f"pooled {len(pool.responses)} distinct responses of {runs} runs; {len(pool.exclusions)} excluded")
    reasons = Counter(row.reason for row in pool.exclusions)
    for reason, count in sorted(reasons.items()):
        say(f"  excluded: {reason} × {count}")
    flags = Counter(row.code for row in pooled.screened or ())
    for code, count in sorted(flags.items()):
        say(f"  screen: {code} × {count}")
    lacking = sum(bool(lacking_texts(response, pool)) for response in pool.responses)
    if lacking:
        say(f"  {lacking} responses use passages without a text, see missing_passages.tsv")


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
