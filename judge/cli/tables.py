"""What commands show of pools and leaderboards on a terminal."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judge.calibrate.certificate import CALIBRATED
from judge.calibrate.recheck import RECHECKED
from judge.cli.printing import print_table, print_text, say, say_all
from judge.io.ids import groups_of, natural_key
from judge.io.table import records_table
from judge.io.text import count, printable, shown
from judge.jobs.pooling import Pooled
from judge.jobs.recheck import Rechecked
from judge.jobs.run import Outcome
from judge.pool.build import lacking_texts
from judge.records import Criterion
from judge.report.sections import scale_of
from judge.results.citations import boards_of, headlines_of
from judge.results.grade_counts import GradeCount, level_table
from judge.results.leaderboard import CORRECTED_ON_TERMINAL, board, bound_note, corrected_board, on_terminal
from judge.results.pairs import rating_board
from judge.results.rows import RunDifference, Score, flag_lines, flag_meanings, folder_unit
from judge.results.tables import ResultTables, told_apart
from judge.results.used import ABOUT, UsedPassages, use_tables
from judge.runs.check.problems import code_lines, file_report, remaining
from judge.runs.formats import rules_of
from judge.units import UNITS

UNCITED = "uncited_sentence"
"""The reason of a sentence that cites nothing."""


def print_leaderboard(
    rows: Sequence[Score],
    criteria: Sequence[Criterion],
    banner: str,
    pairs: Sequence[RunDifference] = (),
    clustered: Sequence[str] = (),
    first: Callable[[], None] = lambda: None,
) -> None:
    """Print banner, clustering and what comes `first`, then one table per criterion, and which pairs of runs differ."""
    apart = told_apart(pairs, criteria)
    nouns = folder_unit(criteria).nouns
    print_text(banner, "heading" if banner.startswith(CALIBRATED) else "warning")
    for line in clustered:
        print()
        print_text(line)
    first()
    boards = boards_of(criteria)
    headlines = headlines_of(criteria)
    for criterion in headlines:
        print()
        print_text(f"{criterion.name}, prompt {criterion.prompt_id}, {scale_of(criterion)}")
        table = board([row for row in rows if row.criterion == criterion.name], nouns)
        below: list[str] = []
        for row in table.cells():
            below.append("; ".join(cell for cell in row[-2:] if cell != "-"))
        shown = table.pick(on_terminal(nouns))
        print_table(shown.names, [*shown.cells()], words=2, keys=2, below=below, whole="leaderboard.tsv")
        if criterion.name in apart:
            print_text(apart[criterion.name])
    lines = [bound_note(nouns), *flag_lines(rows, flag_meanings(nouns))]
    if len(boards) > len(headlines):
        lines.insert(0, f"{len(boards) - len(headlines)} more measures stand in leaderboard.md")
    for line in lines:
        print()
        print_text(line)


def print_grades(rows: Sequence[GradeCount], criteria: Sequence[Criterion], banner: str) -> None:
    """Print how many items have each grade, a table for each criterion."""
    print_text(banner, "heading" if banner.startswith(CALIBRATED) else "warning")
    for criterion in criteria:
        print()
        print_text(f"{criterion.name}, prompt {criterion.prompt_id}, {scale_of(criterion)}")
        table = level_table(rows, criterion)
        print_table(table.names, [*table.cells()], words={3}, keys=1, whole="grades.md")
        print_text(table.notes[0])


def print_used(used: UsedPassages) -> None:
    """Print how many of the passages that responses use are relevant, and groundedness on those."""
    for table in use_tables(used):
        print()
        print_text(f"{table.title}: {used.criterion.prompt_id} says what is relevant")
        print_table(table.names, [*table.cells()], words=1, keys=2, whole="used_passages.tsv")
    print_text(ABOUT)


def print_ratings(tables: ResultTables) -> None:
    """Print the ratings by compared pairs, where there are any; why a run has none stands below its row."""
    for name, said in tables.advantages.items():
        print()
        print_text(f"{name}: ratings by pairs of responses")
        rated = rating_board(tables.ratings, name)
        below = ["" if line[-1] == "-" else line[-1] for line in rated.cells()]
        shown = rated.pick(name for name in rated.names if name not in ("ranks", "note"))
        print_table(shown.names, [*shown.cells()], words={1, 2}, keys=3, below=below, whole="ratings.tsv")
        print_text(said)


def print_corrected(rows: Sequence[Score]) -> None:
    """Print the table of one criterion, corrected by gold; flags stand below a row."""
    table = corrected_board(rows, CORRECTED_ON_TERMINAL)
    flags = [" ".join(row.flags) for row in rows]
    print_table(table.names, [*table.cells()], words={1, 8}, keys=2, below=flags, whole="--json")


def print_rechecked(rechecked: Rechecked | None, *, table: bool) -> None:
    """Print how often the second answer differs, and warn where something else answered."""
    if rechecked is None:
        return
    if table:
        print()
        print_text(
            f"{count(sum(row.asked for row in rechecked.rows), 'question')} asked again (--recheck {rechecked.part}): "
            "the share of other answers and the mean distance of the two grades, with 95 % intervals"
        )
        asked_again = records_table(RECHECKED, rechecked.rows, "", places=3)
        print_table(asked_again.names, [*asked_again.cells()], words=2, keys=2, whole="manifest.json")
    else:
        say(f"{count(len(rechecked.items), 'question')} asked again: manifest.json says what came of it")
    say_all(rechecked.changes, "warning: ")
    if rechecked.missing:
        say(f"{count(rechecked.missing, 'question')} of the recheck without a second answer, see recheck.jsonl")


def print_problems(pooled: Pooled, *, checked_topics: bool) -> None:
    """Say the problems of each file by code, as `judge validate` does: errors with their places, warnings as counts."""
    by_file = groups_of((problem.file, problem) for problem in pooled.submitted.problems)
    for file in sorted(by_file, key=natural_key):
        say(remaining(file_report(file, None, by_file[file])))
        # A warning about the whole run is few words about much.
        told = [row for row in by_file[file] if row.severity == "error" or row.code == "absent_evidence"]
        say_all(code_lines(told))
    if by_file:
        say(f"`judge validate` lists every problem; {UNITS[pooled.pool.unit].words.errors}")
    if not checked_topics:
        say("without --topics, turn ids and PTKB statements could not be checked")


def pooled_counts(pooled: Pooled) -> dict[str, Any]:
    """What `print_pooled` says, for --json."""
    pool = pooled.pool
    return {
        "responses": len(pool.responses),
        "runs": sum(run.selected for run in pooled.submitted.runs),
        "excluded": dict(sorted(Counter(row.reason for row in pool.exclusions).items())),
        "screen": None
        if pooled.screened is None
        else dict(sorted(Counter(row.code for row in pooled.screened).items())),
        "without_texts": sum(bool(lacking_texts(response, pool)) for response in pool.responses),
    }


def print_pooled(pooled: Pooled) -> None:
    """Say what was pooled, what was left out and why, and what the screen flagged."""
    say_all(pooled.notes)
    counts = pooled_counts(pooled)
    runs = counts["runs"]
    lacking = counts["without_texts"]
    unit = UNITS[pooled.pool.unit]
    pooled_units = count(counts["responses"] // unit.orders, f"distinct {unit.nouns.response}")
    if unit.orders > 1:
        pooled_units += " in both orders"
    reasons = {reason: n for reason, n in counts["excluded"].items() if reason != UNCITED}
    say(f"pooled {pooled_units} of {count(runs, 'run')}; {sum(reasons.values())} excluded")
    for kind, rows in (("excluded", reasons), ("screen", counts["screen"] or {})):
        for reason, n in rows.items():
            say(f"  {kind}: {reason} × {n}")
    # Nothing is lost by them: there is no citation to judge, and measures of recall count them.
    if uncited := counts["excluded"].get(UNCITED, 0):
        say(f"  {count(uncited, 'sentence')} without a citation, which recall counts")
    if lacking:
        use = "uses" if lacking == 1 else "use"
        said = f"{count(lacking, unit.nouns.response)} {use} passages without a text"
        if unit.listed:
            said = f"{count(lacking, unit.nouns.response)} without a text"
        if unit.part_of_response:
            said = f"the passage of {count(lacking, unit.nouns.response)} has no text"
        say(f"  {said}, see missing_passages.tsv")
    if unit.listed:
        longest = max((entry.rank for response in pooled.pool.responses for entry in response.runs), default=0)
        depth = pooled.configured["pooling"]["depth"]
        if longest < depth:
            say(
                f"  no turn has {depth} passages (--depth): the last one that is judged is number {longest} of its list"
            )
    held = sum(run.selected and not rules_of(run.format).own_turns for run in pooled.submitted.runs)
    if held > 1:
        others = "every other run" if held == runs else "every other run that is not interactive"
        for run_id, n in sorted(_answered_alone(pooled).items(), key=lambda item: natural_key(item[0])):
            verb = "counts" if n == 1 else "count"
            say(
                f"warning: {shown(run_id)} is alone in answering {count(n, 'turn')}, which {verb} against {others}; "
                f"--topics FILE tells whether {'it exists' if n == 1 else 'they exist'}"
            )


def _answered_alone(pooled: Pooled) -> Counter[str]:
    """By run, the number of turns that no other run answered and no topics or conversation has."""
    runs: dict[str, set[str]] = {}
    for response in pooled.pool.responses:
        if response.turn_id not in (pooled.turns or {}):
            runs.setdefault(response.turn_id, set()).update(entry.run_id for entry in response.runs)
    return Counter(min(names) for names in runs.values() if len(names) == 1)


MOST = 10_000
"""Judgments up to which `judge run` writes the page by itself; more take longer than anybody waits for unasked."""


def name_results(outcome: Outcome) -> None:
    """Say where to start: the leaderboard, and the report, which is written if it is not there.

    A report that cannot be written is no reason to call a finished run failed.
    """
    # Imported late, because templates and charts are not needed before the run is finished.
    from judge.jobs.manifest import REPORT_RECORD
    from judge.report.job import PAGE, ReportPlan, write_report

    out = outcome.out
    passages = outcome.passages or outcome
    if (filled := passages.filled) is not None:
        say(f"people graded {count(len(filled.people), 'passage')}, the judge {len(filled.judge)} more: {filled.name}")
        if filled.off_scale:
            said = f"{count(filled.off_scale, 'grade')} by people off the judge's scale, left as given"
            say(f"warning: {said}")
    if UNITS[outcome.pool.unit].listed:
        say(f"start here: {out / 'grades.md'} (index.md lists all files)")
        return
    page = out / PAGE
    shown = shlex.quote(str(out))
    say(f"start here: {out / 'leaderboard.md'}")
    if outcome.passages is not None:
        say(f"the passages: {outcome.passages.out / 'grades.md'}")
    # A report that no longer fits the results was removed with them.
    if not ((out / REPORT_RECORD).is_file() and page.is_file()):
        if len(outcome.results) > MOST:
            say(f"`judge report {shown}` puts everything on one page")
            return
        try:
            files = dict.fromkeys(criterion.file for criterion in outcome.criteria)
            own = [file for file in files if Path(file).is_file()]
            write_report(ReportPlan(folders=(out,), prompts=own, page_only=True))
        except Exception as error:  # noqa: BLE001 - the run is finished, and nothing about its report may say otherwise
            say(f"warning: no report: {printable(str(error) or type(error).__name__)}")
            say(f"the results are complete; `judge report {shown}` writes the report once that is fixed")
            return
    say(f"the same and more in a browser: {page} (index.md lists all files)")
