"""The leaderboard as if responses over the token limit had been excluded, by one rule or by each. Pure.

Nothing is judged again. A response over the limit is removed and its turn is unanswered, as if the pool had been made
with `--over-limit exclude`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from judge.ask.records import Failure, Judgment
from judge.errors import InputError
from judge.io.cells import decimals, markdown_cell, table
from judge.io.safe import escape
from judge.io.table import tsv
from judge.pool.records import Pool
from judge.records import Criterion
from judge.results.leaderboard import leaderboard
from judge.results.rows import LeaderboardRow
from judge.results.turns import first_ranked, turns_of_runs
from judge.runs.records import Exclusion, TokenRule
from judge.runs.tokens import RULES
from judge.stats.ranking import kendall_tau_b
from judge.stats.tables import Undefined

AS_JUDGED: Literal["none"] = "none"
"""The name of the view in which nothing is excluded."""
VIEWS: tuple[Literal["none"] | TokenRule, ...] = (AS_JUDGED, *RULES)
COLUMNS = (
    *("criterion", "run_id", "rule", "limit", "over_limit"),
    *("turns", "n", "unanswered", "mean", "bound", "rank", "tau_b", "note"),
)


class View(msgspec.Struct, frozen=True):
    """One run under one criterion, without the responses that are too long by a rule."""

    criterion: str
    run_id: str
    rule: str
    """`none`, `bare`, `english` or `whitespace`."""
    over: int
    """Turns whose best-ranked response is over the limit by the rule, whether judged or not."""
    turns: int
    n: int
    unanswered: int
    mean: float | None
    bound: float | None
    """The mean over all turns, where those without a grade count as the worst one."""
    rank: int | None
    """By the bound; equal bounds share a rank."""


class Agreement(msgspec.Struct, frozen=True):
    """Kendall's tau-b between the runs' bounds with and without a rule, over runs that have both."""

    criterion: str
    rule: str
    tau_b: float | None
    runs: int
    reason: str | None
    """Why there is no tau-b."""


class Sensitivity(msgspec.Struct, frozen=True):
    """Every run's means and ranks under every rule, and how far the orders agree."""

    limit: int
    views: tuple[View, ...]
    agreements: tuple[Agreement, ...]


def without_over_limit(pool: Pool, rule: TokenRule, limit: int) -> tuple[Pool, dict[str, set[str]]]:
    """Remove the responses over the limit by a rule; the turns that each run had to answer stay.

    Returns:
        The reduced pool, and run id to the turns that the run had to answer.

    Raises:
        InputError: Texts were cut when the pool was made, so the lengths of the submitted texts are unknown.
    """
    cut = sum(response.truncated for response in pool.responses)
    if cut:
        raise InputError(
            f"{cut} responses of the pool were cut to the token limit, and the lengths of the submitted texts are not "
            "stored; judge the runs with --over-limit flag to compare token rules"
        )
    # Computed before responses are removed: a turn without any response left must still count as unanswered.
    turns = turns_of_runs(pool, first_ranked(pool))
    out = [response for response in pool.responses if getattr(response.tokens, rule) > limit]
    said = f"over {limit} tokens by the {rule} rule"
    rows = [
        Exclusion(entry.run_id, one.turn_id, entry.rank, "over_limit", f"{said}: {getattr(one.tokens, rule)}")
        for one in out
        for entry in one.runs
    ]
    gone = {response.response_id for response in out}
    kept = tuple(response for response in pool.responses if response.response_id not in gone)
    return msgspec.structs.replace(pool, responses=kept, exclusions=(*pool.exclusions, *rows)), turns


def token_sensitivity(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criteria: Sequence[Criterion],
    limit: int,
) -> Sensitivity:
    """Compare the leaderboard with nothing excluded to the leaderboards under each token rule.

    Raises:
        InputError: As for `without_over_limit`.
    """
    rows: dict[tuple[str, str], dict[str, LeaderboardRow]] = {}
    for view in VIEWS:
        shown, turns = (pool, None) if view == AS_JUDGED else without_over_limit(pool, view, limit)
        for row in leaderboard(shown, results, criteria, expected=turns):
            rows.setdefault((row.criterion, row.run_id), {})[view] = row
    firsts = first_ranked(pool)
    views = tuple(
        View(
            criterion=name,
            run_id=run_id,
            rule=view,
            over=0
            if view == AS_JUDGED
            else sum(getattr(response.tokens, view) > limit for response in firsts.get(run_id, {}).values()),
            turns=row.turns,
            n=row.n,
            unanswered=row.unanswered,
            mean=row.mean.value,
            bound=row.bound,
            rank=row.rank,
        )
        for (name, run_id), by_view in rows.items()
        for view, row in by_view.items()
    )
    agreements = tuple(
        _agreement(criterion.name, rule, [by_view for (name, _), by_view in rows.items() if name == criterion.name])
        for criterion in criteria
        for rule in RULES
    )
    return Sensitivity(limit, views, agreements)


def _agreement(criterion: str, rule: str, runs: Sequence[Mapping[str, LeaderboardRow]]) -> Agreement:
    """How far the order of runs, each with its rows by view, is that of all judged responses."""
    both = [(by_view[AS_JUDGED].bound, by_view[rule].bound) for by_view in runs]
    pairs = [(before, after) for before, after in both if before is not None and after is not None]
    tau = kendall_tau_b([before for before, _ in pairs], [after for _, after in pairs])
    if isinstance(tau, Undefined):
        return Agreement(criterion, rule, None, len(pairs), tau.reason)
    return Agreement(criterion, rule, tau, len(pairs), None)


def sensitivity_header(limit: int, *, apart: bool = False) -> tuple[str, ...]:
    """Column names for people: the run, then mean, rank and turns lost under each rule.

    `apart`: whether the columns of a rule may stand apart, so that each names the rule.
    """
    rules = (
        (f"{rule} > {limit}", *(f"{rule} {name}" if apart else name for name in ("mean", "rank"))) for rule in RULES
    )
    return ("run", "mean", "rank", *(column for rule in rules for column in rule))


def sensitivity_cells(sensitivity: Sensitivity, criterion: str) -> list[list[str]]:
    """A line for each run under `sensitivity_header`, and a last line with tau-b in the columns of ranks."""
    lines: dict[str, list[str]] = {}
    for view in sensitivity.views:
        if view.criterion == criterion:
            line = lines.setdefault(view.run_id, [escape(view.run_id)])
            line += [] if view.rule == AS_JUDGED else [str(view.over)]
            line += [decimals(view.mean, 3) or "-", "-" if view.rank is None else str(view.rank)]
    taus = [agreement for agreement in sensitivity.agreements if agreement.criterion == criterion]
    last = ["tau-b with the first ranking", "", ""]
    for agreement in taus:
        last += ["", "", decimals(agreement.tau_b, 3) or "-"]
    return [*lines.values(), last]


def sensitivity_tsv(sensitivity: Sensitivity) -> str:
    """A line for each criterion, run and rule; tau-b is the rule's, the same for every run."""
    taus = {(row.criterion, row.rule): row for row in sensitivity.agreements}
    lines = (
        (
            *(view.criterion, view.run_id, view.rule, sensitivity.limit, view.over, view.turns, view.n),
            *(view.unanswered, view.mean, view.bound, view.rank, tau and tau.tau_b, tau and tau.reason),
        )
        for view in sensitivity.views
        for tau in (taus.get((view.criterion, view.rule)),)
    )
    return tsv(COLUMNS, lines, 4)


def sensitivity_markdown(sensitivity: Sensitivity, criteria: Sequence[Criterion], banner: str) -> str:
    """A table for each criterion under the banner."""
    parts = [f"# Leaderboard by token rule\n\n**{markdown_cell(banner)}**\n\n{explained(sensitivity.limit)}\n"]
    header = sensitivity_header(sensitivity.limit)
    for criterion in criteria:
        lines = [
            [markdown_cell(run_id), *numbers] for run_id, *numbers in sensitivity_cells(sensitivity, criterion.name)
        ]
        parts.append(f"\n## {markdown_cell(criterion.name)}\n\n{table([*map(markdown_cell, header)], lines)}\n")
    return "".join(parts)


def explained(limit: int) -> str:
    """What the table shows, in two sentences."""
    return (
        f"Left: all judged responses. Then, for each way of counting tokens, how many of the run's turns have a first "
        f"response of more than {limit}, and the mean and rank with these turns unanswered, which count as the worst "
        "grade in the rank."
    )
