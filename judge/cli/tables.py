"""What commands show of pools and leaderboards on a terminal."""

from collections import Counter
from collections.abc import Sequence

from judge.cli.printing import print_table, say
from judge.harness.pooling import Pooled
from judge.pool.build import lacking_texts
from judge.records import Criterion, Problem
from judge.results.differences import told_apart
from judge.results.leaderboard import HEADER, ON_TERMINAL, flag_lines, leaderboard_cells
from judge.results.rows import LeaderboardRow, RunDifference
from judge.text.cells import fold
from judge.text.safe import printable

WIDTH = 110
"""Columns of a terminal that a leaderboard takes, where run ids are not long."""
_SHOWN = 12
"""How many errors in runs are listed before a pool is made."""


def print_leaderboard(
    rows: Sequence[LeaderboardRow],
    criteria: Sequence[Criterion],
    banner: str,
    pairs: Sequence[RunDifference] = (),
) -> None:
    """Print the banner, and under it one table per criterion, with a sentence on which pairs of runs differ."""
    apart = told_apart(pairs)
    print(printable(banner))
    for criterion in criteria:
        better = "higher is better" if criterion.scale.polarity == "higher" else "lower is better"
        grades = [level.grade for level in criterion.scale.levels]
        print(f"\n{criterion.name}, prompt {criterion.prompt_id}, grades {min(grades)} to {max(grades)}, {better}")
        cells = leaderboard_cells([row for row in rows if row.criterion == criterion.name])
        below = ["; ".join(cell for cell in row[-2:] if cell != "-") for row in cells]
        print_table(HEADER[:ON_TERMINAL], [row[:ON_TERMINAL] for row in cells], words=2, below=below)
        if criterion.name in apart:
            print("\n".join(fold(apart[criterion.name], WIDTH)))
    for line in flag_lines(rows):
        print("\n" + "\n".join(fold(line, WIDTH)))


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
