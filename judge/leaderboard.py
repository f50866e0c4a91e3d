"""Judgments per run and criterion, with what is missing counted and topic-clustered intervals; no I/O."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from judge.ids import NaturalKey, natural_key
from judge.records import Criterion, Estimate, Failure, Judgment, LeaderboardRow, Pool, PooledResponse
from judge.stats.means import mean_interval

COLUMNS = (
    *("run_id", "criterion", "pooled", "n", "unable", "missing", "coverage", "mean", "low", "high", "topics"),
    *("expected_mean", "positive", "share_positive", "note"),
)
HEADER = ("run", "mean", "95 % interval", "positive", "expected", "n", "unable", "missing", "coverage")
"""For people: `positive` is the share with its counts, `expected` the mean under the label probabilities."""


def leaderboard(
    pool: Pool, results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]
) -> tuple[LeaderboardRow, ...]:
    """One row a run and criterion: criteria as given, runs best mean first, ties in natural order of run id.

    A pooled response counts for every run that gave it. At a pool depth above 1 a run is represented, in each
    turn, by its best-ranked pooled response. A response with no judgment is missing, whatever the cause.

    Raises:
        ValueError: A response has two judgments under one criterion, or two criteria share a name.
    """
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise ValueError("two prompts of one criterion cannot share a leaderboard")
    judged: dict[tuple[str, str, str], Judgment] = {}
    for result in results:
        if isinstance(result, Failure):
            continue
        key = (result.criterion, result.variant, result.response_id)
        if key in judged:
            raise ValueError(f"{result.response_id} has two judgments under {result.criterion}/{result.variant}")
        judged[key] = result
    runs = _best_ranked(pool)
    return tuple(
        row
        for criterion in criteria
        for row in sorted(
            (_row(run_id, responses, criterion, judged) for run_id, responses in runs.items()),
            key=lambda row: _place(row, criterion.scale.polarity == "higher"),
        )
    )


def _best_ranked(pool: Pool) -> dict[str, list[PooledResponse]]:
    """Every run's best-ranked pooled response of each turn."""
    best: dict[str, dict[str, tuple[int, PooledResponse]]] = {}
    for response in pool.responses:
        for entry in response.runs:
            turns = best.setdefault(entry.run_id, {})
            if response.turn_id not in turns or entry.rank < turns[response.turn_id][0]:
                turns[response.turn_id] = (entry.rank, response)
    return {run_id: [response for _, response in turns.values()] for run_id, turns in best.items()}


def _row(
    run_id: str,
    responses: Sequence[PooledResponse],
    criterion: Criterion,
    judged: Mapping[tuple[str, str, str], Judgment],
) -> LeaderboardRow:
    scale = criterion.scale
    found = [
        (response.topic_id, judgment)
        for response in responses
        if (judgment := judged.get((criterion.name, criterion.variant, response.response_id)))
    ]
    graded = [(topic_id, judgment) for topic_id, judgment in found if not judgment.unable]
    levels = [level.grade for level in scale.levels]
    mean = mean_interval(
        [judgment.grade for _, judgment in graded],
        [topic_id for topic_id, _ in graded],
        bounds=(min(levels), max(levels)),
    )
    expected = [judgment.expected for _, judgment in graded if judgment.expected is not None]
    positive = sum(judgment.grade in scale.positive for _, judgment in graded)
    n = len(graded)
    return LeaderboardRow(
        run_id=run_id,
        criterion=criterion.name,
        pooled=len(responses),
        n=n,
        unable=len(found) - n,
        missing=len(responses) - len(found),
        mean=mean,
        # A mean over some of the rows would be set beside one over all of them.
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
    lines: list[tuple[str, ...]] = [COLUMNS]
    for row in rows:
        counts = (row.pooled, row.n, row.unable, row.missing)
        mean = (row.mean.value, row.mean.low, row.mean.high)
        lines.append(
            (
                printable(row.run_id),
                printable(row.criterion),
                *map(str, counts),
                _decimals(row.coverage, 4),
                *(_decimals(number, 4) for number in mean),
                str(row.mean.topics),
                _decimals(row.expected_mean, 4),
                str(row.positive),
                _decimals(row.share_positive, 4),
                row.mean.reason or "",
            )
        )
    return "".join("\t".join(line) + "\n" for line in lines)


def by_criterion(rows: Iterable[LeaderboardRow]) -> Iterator[tuple[str, list[LeaderboardRow]]]:
    """The rows of each criterion, in the rows' order."""
    for criterion, group in groupby(rows, key=lambda row: row.criterion):
        yield criterion, list(group)


def leaderboard_cells(rows: Iterable[LeaderboardRow]) -> list[list[str]]:
    """The rows of one criterion as text for a table, under HEADER; run ids without control characters."""
    return [
        [
            printable(row.run_id),
            _decimals(row.mean.value, 3) or "-",
            _interval(row.mean),
            _share(row),
            _decimals(row.expected_mean, 3) or "-",
            str(row.n),
            str(row.unable),
            str(row.missing),
            _decimals(row.coverage, 2) or "-",
        ]
        for row in rows
    ]


def leaderboard_markdown(rows: Iterable[LeaderboardRow], banner: str, criteria: Sequence[Criterion] = ()) -> str:
    """A table a criterion under the banner; with `criteria`, each says how its grades are to be read."""
    prompts = {criterion.name: criterion for criterion in criteria}
    parts = [f"# Leaderboard\n\n**{_markdown(banner)}**\n"]
    for name, group in by_criterion(rows):
        table = [HEADER, ["---"] + ["---:"] * (len(HEADER) - 1)]
        table += [[_markdown(run_id), *numbers] for run_id, *numbers in leaderboard_cells(group)]
        parts.append(f"\n## {_markdown(name)}\n\n")
        if name in prompts:
            parts.append(_markdown(reading(prompts[name])) + "\n\n")
        parts += ["| " + " | ".join(cells) + " |\n" for cells in table]
    return "".join(parts)


def reading(criterion: Criterion) -> str:
    """How the grades of a criterion are to be read, in one sentence."""
    scale = criterion.scale
    grades = ", ".join(str(level.grade) for level in scale.levels)
    positive = ", ".join(map(str, sorted(scale.positive)))
    return (
        f"Prompt {criterion.prompt_id}, grades {grades}: {scale.polarity} is better; positive: {positive} "
        "(share, then positive and other counts)."
    )


def printable(text: str) -> str:
    r"""The text on one line without control characters: those, and the backslash, as `\n`, `\t`, `\u200b`."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)


def _decimals(number: float | None, places: int) -> str:
    # Adding 0.0 turns -0.0, which rounding may leave, into 0.0.
    return "" if number is None else f"{round(number, places) + 0.0:.{places}f}"


def _interval(mean: Estimate) -> str:
    if mean.low is None or mean.high is None:
        return f"none: {mean.reason}"
    return f"[{_decimals(mean.low, 3)}, {_decimals(mean.high, 3)}]"


def _share(row: LeaderboardRow) -> str:
    """The share as iKAT 2023 prints it: `0.89 (65/8)`, 65 positive and 8 not."""
    return f"{_decimals(row.share_positive, 2)} ({row.positive}/{row.n - row.positive})" if row.n else "-"


def _markdown(text: str) -> str:
    """Text that shows as itself in a Markdown cell: no markup, no HTML, no cell boundary."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~!#])", r"\\\1", text)
    # Underscores inside a word are no markup, and common in run ids.
    return re.sub(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\_", text)
