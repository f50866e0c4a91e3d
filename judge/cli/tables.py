"""What commands show of pools and leaderboards on a terminal."""

from collections import Counter
from collections.abc import Sequence

from judge.cli.printing import print_table, say
from judge.harness.pooling import Pooled
from judge.pool.build import lacking_texts
from judge.records import Criterion, Problem
from judge.results.leaderboard import HEADER, leaderboard_cells
from judge.results.rows import LeaderboardRow
from judge.runs.check.problems import code_lines, file_report, remaining
from judge.text.ids import natural_key
from judge.text.safe import printable


def print_leaderboard(rows: Sequence[LeaderboardRow], criteria: Sequence[Criterion], banner: str) -> None:
    """Print the banner, and under it one table per criterion."""
    print(printable(banner))
    for criterion in criteria:
        better = "higher is better" if criterion.scale.polarity == "higher" else "lower is better"
        grades = [level.grade for level in criterion.scale.levels]
        print(f"\n{criterion.name}, prompt {criterion.prompt_id}, grades {min(grades)} to {max(grades)}, {better}")
        print_table(HEADER, leaderboard_cells([row for row in rows if row.criterion == criterion.name]))


def print_problems(problems: Sequence[Problem], *, checked_topics: bool) -> None:
    """Say the problems of each file by code, as `judge validate` does: errors with their places, warnings as counts."""
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    for file in sorted(by_file, key=natural_key):
        say(remaining(file_report(file, None, by_file[file])))
        # A warning about the whole run is few words about much.
        told = [row for row in by_file[file] if row.severity == "error" or row.code == "absent_evidence"]
        for line in code_lines(told):
            say(line)
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
