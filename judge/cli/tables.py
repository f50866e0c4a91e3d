"""What the terminal shows: aligned plain text, safe to pipe; hostile characters made visible."""

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
"""Problems of one code listed for one file, unless all are asked for."""
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


def print_json(value: object) -> None:
    """Print a value as indented JSON, fields in the order of the record."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def say(text: str) -> None:
    """Say a line on stderr."""
    print(printable(text), file=sys.stderr)


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
    counts: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        counts[problem.severity, problem.code] += problem.count
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


def print_pooled(pooled: Pooled) -> None:
    """Say on stderr what was pooled, what was left out and why, and what the screen found."""
    pool = pooled.pool
    runs = sum(run.selected for run in pooled.submitted.runs)
    print(
        f"pooled {len(pool.responses)} distinct responses of {runs} runs; {len(pool.exclusions)} excluded",
        file=sys.stderr,
    )
    reasons = Counter(row.reason for row in pool.exclusions)
    for reason, count in sorted(reasons.items()):
        print(f"  excluded: {reason} × {count}", file=sys.stderr)
    flags = Counter(row.code for row in pooled.screened or ())
    for code, count in sorted(flags.items()):
        print(f"  screen: {code} × {count}", file=sys.stderr)
    lacking = sum(bool(lacking_texts(response, pool)) for response in pool.responses)
    if lacking:
        print(f"  {lacking} responses use passages without a text, see missing_passages.tsv", file=sys.stderr)


def problem_lines(problems: Sequence[Problem], shown: int | None) -> Iterator[str]:
    """One line a problem; beyond `shown` of a code in a file, one line that counts the rest."""
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
            more = totals[kind] - shown
            yield f"{problem.file}: {problem.severity} {problem.code}: {more} more (--all lists them)"
