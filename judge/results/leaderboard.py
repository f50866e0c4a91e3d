"""Means for each run and criterion, with intervals over topics and counts of missing grades. Pure."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from judge.ask.records import Failure, Judgment
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Estimate
from judge.results.rows import LeaderboardRow
from judge.stats.means import FEWEST_TOPICS, mean_interval
from judge.text.cells import decimals, markdown_cell
from judge.text.ids import NaturalKey, natural_key
from judge.text.safe import escape
from judge.text.table import Table
from judge.text.tsv import tsv

_Asked = tuple[str, str, str]
"""Criterion, variant, response id."""
COLUMNS = (
    *("run_id", "criterion", "turns", "n", "unable", "missing", "not_asked", "unanswered", "coverage"),
    *("mean", "low", "high", "topics", "expected_mean", "positive", "share_positive", "note"),
)
HEADER = ("run", "mean", "95 % interval", "positive", "expected", "n/turns", "coverage", "no grade")
"""For people: `positive` is the share with its counts, `expected` the mean under the label probabilities."""
_NOTES = f"""
n/turns: the graded turns, which the mean is over, of those that the run had to answer. coverage: the share of them with
a grade or the verdict "unable". Runs of different coverage are not graded on the same turns.

no grade: *unable*, the judge could not say; *missing*, the judge was asked and failed (`failures.jsonl`); *not asked*,
the response was left out of a trial (`--limit`); *unanswered*, there is no response, or the one that the run ranks
first is excluded (`excluded.tsv`). A response ranked lower never takes its place.

95 % interval: of Student's t over topics, from {FEWEST_TOPICS} topics on. The topic of a turn is its id up to the last
`_`: `9-1` and `9-2`, two personas of one theme, count as two topics.
"""


def leaderboard(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    *,
    expected: Mapping[str, Collection[str]] | None = None,
) -> Table[LeaderboardRow]:
    """A row for each run and criterion: criteria as given, best mean first, ties in natural order of run id.

    A pooled response counts for every run that gave it. At any pool depth, the response that a run ranked first stands
    for the run in a turn; if it was excluded, the turn is unanswered. A run whose responses were all excluded has a
    row. A run that asked not to be judged (`eval_response: false`) or was not selected has none.

    Args:
        pool: The responses, the excluded ones, and the turns that each run had to answer.
        results: A judgment or a failure of each response that was asked about.
        criteria: The prompts, one for each criterion.
        expected: Run id to the ids of the turns that the run had to answer; by default as the pool says. A run that is
            not named had to answer every turn in `expected` or the pool. A turn that a run answered counts in any case.

    Raises:
        ValueError: A response has two judgments under one criterion, or two criteria share a name.
    """
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise ValueError("two prompts of one criterion cannot share a leaderboard")
    judged: dict[_Asked, Judgment | None] = {}
    for result in results:
        key = (result.criterion, result.variant, result.response_id)
        if isinstance(result, Failure):
            judged.setdefault(key, None)
        elif judged.get(key):
            raise ValueError(f"{result.response_id} has two judgments under {result.criterion}/{result.variant}")
        else:
            judged[key] = result
    answered = answers(pool, expected)
    return Table(
        row
        for criterion in criteria
        for row in sorted(
            (_row(run_id, turns, responses, criterion, judged) for run_id, (turns, responses) in answered.items()),
            key=lambda row: _place(row, criterion.scale.polarity == "higher"),
        )
    )


def answers(
    pool: Pool, expected: Mapping[str, Collection[str]] | None = None
) -> dict[str, tuple[int, tuple[PooledResponse, ...]]]:
    """Run id to the number of turns it had to answer and the responses that stand for it; runs without turns have none.

    Args:
        pool: As for `leaderboard`.
        expected: As for `leaderboard`.
    """
    expected = had_to_answer(pool) if expected is None else expected
    every = {response.turn_id for response in pool.responses}.union(*expected.values())
    responses = first_ranked(pool)
    declined = {row.run_id for row in pool.exclusions if row.reason == "eval_response_false"}
    declined.update(run.run_id for run in pool.runs if not run.selected)
    run_ids = {*responses, *expected, *(row.run_id for row in pool.exclusions)} - declined
    turns = {run_id: {*expected.get(run_id, every), *responses.get(run_id, {})} for run_id in run_ids}
    return {run_id: (len(had), tuple(responses.get(run_id, {}).values())) for run_id, had in turns.items() if had}


def had_to_answer(pool: Pool) -> dict[str, Collection[str]]:
    """Id of each selected run to the ids of the turns that it had to answer, beside those that it answered."""
    return {run.run_id: run.turns or () for run in pool.runs if run.selected}


def first_ranked(pool: Pool) -> dict[str, dict[str, PooledResponse]]:
    """Run id and turn id to the pooled response that the run ranked first.

    A response excluded for `no_relevant_passage` was never a candidate, so the next one may be first. If a response
    that ranks better was excluded for another reason, the turn is unanswered.
    """
    best: dict[tuple[str, str], tuple[int, PooledResponse | None]] = {}
    for response in pool.responses:
        for entry in response.runs:
            key = entry.run_id, response.turn_id
            if key not in best or entry.rank < best[key][0]:
                best[key] = entry.rank, response
    for row in pool.exclusions:
        if row.reason == "no_relevant_passage":
            continue
        key = row.run_id, row.turn_id
        # Rank 0 is valid too: some runs count from 0. At equal rank the pooled response stays first.
        if key in best and row.rank is not None and row.rank < best[key][0]:
            best[key] = row.rank, None
    runs: dict[str, dict[str, PooledResponse]] = {}
    for (run_id, turn_id), (_, first) in best.items():
        if first:
            runs.setdefault(run_id, {})[turn_id] = first
    return runs


def _row(
    run_id: str,
    turns: int,
    responses: Sequence[PooledResponse],
    criterion: Criterion,
    judged: Mapping[_Asked, Judgment | None],
) -> LeaderboardRow:
    """The row of one run; the mean is clustered by the topics in the turn ids, so `9-1` and `9-2` are two."""
    scale = criterion.scale
    keys = [(criterion.name, criterion.variant, response.response_id) for response in responses]
    asked = [judged[key] for key in keys if key in judged]
    judgments = [judgment for judgment in asked if judgment]
    graded = [judgment for judgment in judgments if not judgment.unable]
    levels = [level.grade for level in scale.levels]
    mean = mean_interval(
        [judgment.grade for judgment in graded],
        [judgment.topic_id for judgment in graded],
        bounds=(min(levels), max(levels)),
    )
    expected = [judgment.expected for judgment in graded if judgment.expected is not None]
    positive = sum(judgment.grade in scale.positive for judgment in graded)
    n = len(graded)
    return LeaderboardRow(
        run_id=run_id,
        criterion=criterion.name,
        turns=turns,
        n=n,
        unable=len(judgments) - n,
        missing=len(asked) - len(judgments),
        not_asked=len(responses) - len(asked),
        unanswered=turns - len(responses),
        mean=mean,
        # A mean over some of the grades must not stand beside one over all of them.
        expected_mean=math.fsum(expected) / n if n and len(expected) == n else None,
        positive=positive,
        share_positive=positive / n if n else None,
    )


def _place(row: LeaderboardRow, higher: bool) -> tuple[float, NaturalKey, str]:
    value = row.mean.value
    worst_first = math.inf if value is None else -value if higher else value
    return worst_first, natural_key(row.run_id), row.run_id


def leaderboard_tsv(rows: Iterable[LeaderboardRow]) -> str:
    """All rows under one header, four decimals, undefined numbers empty with the reason as `note`."""
    lines = (
        (
            *(row.run_id, row.criterion, row.turns, row.n, row.unable, row.missing, row.not_asked, row.unanswered),
            *(row.coverage, row.mean.value, row.mean.low, row.mean.high, row.mean.topics, row.expected_mean),
            *(row.positive, row.share_positive, row.mean.reason),
        )
        for row in rows
    )
    return tsv(COLUMNS, lines, 4)


def by_criterion(rows: Iterable[LeaderboardRow]) -> Iterator[tuple[str, list[LeaderboardRow]]]:
    """The rows of each criterion, in the rows' order."""
    for criterion, group in groupby(rows, key=lambda row: row.criterion):
        yield criterion, list(group)


def leaderboard_cells(rows: Iterable[LeaderboardRow]) -> list[list[str]]:
    """The rows of one criterion as text for a table, under HEADER; run ids without control characters."""
    return [
        [
            escape(row.run_id),
            decimals(row.mean.value, 3) or "-",
            _interval(row.mean),
            _share(row),
            decimals(row.expected_mean, 3) or "-",
            f"{row.n}/{row.turns}",
            decimals(row.coverage, 2),
            _without_grade(row),
        ]
        for row in rows
    ]


def leaderboard_markdown(
    rows: Iterable[LeaderboardRow], banner: str, criteria: Sequence[Criterion] = (), notes: Iterable[str] = ()
) -> str:
    """A table for each criterion under the banner and the notes; `criteria` adds how to read the grades."""
    prompts = {criterion.name: criterion for criterion in criteria}
    parts = [f"# Leaderboard\n\n**{markdown_cell(banner)}**\n", *(f"\n{markdown_cell(note)}\n" for note in notes)]
    for name, group in by_criterion(rows):
        table = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1)]
        table += [[markdown_cell(run_id), *numbers] for run_id, *numbers in leaderboard_cells(group)]
        parts.append(f"\n## {markdown_cell(name)}\n\n")
        if name in prompts:
            parts.append(markdown_cell(reading(prompts[name])) + "\n\n")
        parts += ["| " + " | ".join(cells) + " |\n" for cells in table]
    return "".join([*parts, _NOTES])


def reading(criterion: Criterion) -> str:
    """How to read the grades of a criterion, in one sentence."""
    scale = criterion.scale
    grades = ", ".join(str(level.grade) for level in scale.levels)
    positive = ", ".join(map(str, sorted(scale.positive)))
    return (
        f"Prompt {criterion.prompt_id}, grades {grades}: {scale.polarity} is better; positive: {positive} "
        "(share, then positive and other counts)."
    )


def _interval(mean: Estimate) -> str:
    if mean.low is None or mean.high is None:
        return mean.reason or "-"
    return f"[{decimals(mean.low, 3)}, {decimals(mean.high, 3)}]"


def _share(row: LeaderboardRow) -> str:
    """The share as iKAT 2023 prints it: `0.89 (65/8)`, 65 positive and 8 not."""
    return f"{decimals(row.share_positive, 2)} ({row.positive}/{row.n - row.positive})" if row.n else "-"


def _without_grade(row: LeaderboardRow) -> str:
    """Why turns have no grade, with counts, or a dash."""
    counts = {
        "unable": row.unable,
        "missing": row.missing,
        "not asked": row.not_asked,
        "unanswered": row.unanswered,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "-"
