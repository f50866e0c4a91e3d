"""Boards of runs: means with intervals over topics and counts of missing grades, and means corrected by gold. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from judge.ask.records import Failure, Judgment
from judge.io.ids import Cluster, groups_of
from judge.io.table import Column, RecordColumns, Table, as_column, fields, records_table
from judge.io.text import count, decimals, markdown_cell, number, printable
from judge.pool.records import Pool
from judge.records import Criterion, Estimate
from judge.results import rows as board_rows
from judge.results.citations import Measure, boards_of
from judge.results.details import sentences_markdown
from judge.results.turns import HARNESS, RunTurns, run_flags, turns_by_criterion, worst_grade
from judge.stats.means import FEWEST_TOPICS
from judge.units import UNITS
from judge.units.unit import Nouns

COLUMNS: RecordColumns = {
    **fields("run_id criterion rank turns=counts.turns n=counts.n unable=counts.unable missing=counts.missing"),
    **fields("harness=counts.harness not_asked=counts.not_asked unanswered=counts.unanswered"),
    "coverage": lambda row: coverage(row),
    **fields("mean=mean.value low=mean.low high=mean.high topics=mean.topics bound expected_mean=more.expected_mean"),
    **fields("positive=counts.positive"),
    "share_positive": lambda row: share_positive(row),
    **fields("share_of_turns=more.share_of_turns"),
    "reasons": lambda row: _reasons(row.reasons),
    "flags": lambda row: " ".join(row.flags),
    "note": lambda row: board_rows.noted(
        "; ".join(filter(None, (row.mean.reason, _recital(row)))) or None, row.cluster
    ),
}


def _shown(nouns: Nouns) -> RecordColumns:
    """For people: `positive` is the share with its counts, `expected` the mean under the label probabilities."""
    return {
        **fields("rank run=run_id mean=mean.value"),
        "95 % interval": lambda row: _interval(row.mean),
        "bound": lambda row: row.bound,
        # As iKAT 2023 prints it: `0.89 (65/8)`, 65 positive and 8 not.
        "positive": lambda row: _positive(row),
        f"all {nouns.turns}": lambda row: decimals(row.more.get("share_of_turns"), 2),
        "expected": lambda row: row.more.get("expected_mean"),
        f"n/{nouns.turns}": lambda row: f"{row.counts['n']}/{row.counts['turns']}",
        "coverage": lambda row: decimals(coverage(row), 2),
        "no grade": lambda row: _without_grade(row),
        "flags": lambda row: "; ".join(filter(None, (per_topic(row), _recital(row), " ".join(row.flags)))),
    }


def on_terminal(nouns: Nouns) -> tuple[str, ...]:
    """The columns that a terminal shows, the important ones first; those of no grade and flags stand below a row."""
    return ("rank", "run", "mean", "95 % interval", "bound", f"n/{nouns.turns}", "positive")


def bound_note(nouns: Nouns) -> str:
    """What the bound is, below a board on a terminal."""
    return f"bound: the mean over all {nouns.turns}, with the worst grade where there is none; ranks go by it"


def _notes(nouns: Nouns) -> str:
    """How to read a board of the judge's means, up to why a run has no answer."""
    turn = nouns.turn
    turns = nouns.turns
    response = nouns.response
    responses = nouns.responses
    return f"""
rank: by the bound. mean: over the graded {turns} alone; of a measure of citations over those without a \
{response} as well,
which count 0 and are not in n. bound: over all {turns} that the run had to answer, with the worst
grade for each {turn} without one; so a run gains nothing by {responses} that nobody can grade. \
{turns.capitalize()} whose lack of a grade
is no run's doing count as the run's other {responses} do on average: those left out of a trial, those for which the
budget was spent, and those on which the provider failed, or the server cut the prompt, for every run.

n/{turns}: the graded {turns} of those that the run had to answer. coverage: the share of them with
a grade or the verdict "unable". Runs of different coverage are not graded on the same {turns}.

positive: the share of the graded {turns} with a positive grade. all {turns}: the {turns} with a positive grade among \
all
{turns} of the qrels, which is what `trec_eval -c` makes of the published qrels and response runs.

no grade: *unable*, the judge could not say; *missing*, the judge was asked and failed (`failures.jsonl`), for a reason
that may lie in the {response}; *harness*, the provider failed, the server cut the prompt or the budget was spent;
*not asked*, the {response} was left out of a trial (`--limit`); *unanswered*, """


_CLUSTERED: dict[tuple[bool, Cluster], str] = {
    (False, "topic"): f"""
95 % interval: of Student's t over topics, from {FEWEST_TOPICS} topics on. The topic of a turn is its id up to the last
`_`: `9-1` and `9-2`, two personas of one theme, count as two topics.
""",
    (True, "topic"): f"""
95 % interval: of Student's t over topics, from {FEWEST_TOPICS} topics on. `9-1` and `9-2`, two personas of one theme,
count as two topics.
""",
    (False, "theme"): f"""
95 % interval: of Student's t over themes, from {FEWEST_TOPICS} themes on. The theme of a turn is its topic id up to
the first `-`: `9-1` and `9-2`, two personas of one theme, count as one. In `leaderboard.tsv` and `differences.tsv`, the
column `topics` counts themes.
""",
    (True, "theme"): f"""
95 % interval: of Student's t over themes, from {FEWEST_TOPICS} themes on. The theme of a topic is its id up to the
first `-`: `9-1` and `9-2`, two personas of one theme, count as one. In `leaderboard.tsv` and `differences.tsv`, the
column `topics` counts themes.
""",
}
"""What the intervals are over, of units that a run has one of by topic or not."""


def leaderboard(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    *,
    expected: Mapping[str, Collection[str]] | None = None,
    cluster: Cluster = "topic",
) -> Table[board_rows.Score]:
    """A row for each run and criterion: criteria as given, best bound first, ties in natural order of run id.

    The bound is the mean over all turns that a run had to answer, where turns without a grade count as the worst one
    (`run_turns` has the exceptions). Equal bounds share a rank.

    A pooled response counts for every run that gave it. At any pool depth, the response that a run ranked first stands
    for the run in a turn; if it was excluded, the turn is unanswered. A run whose responses were all excluded has a
    row. A run that asked not to be judged (`eval_response: false`) or was not selected has none.

    Args:
        pool: The responses, the excluded ones, and the turns that each run had to answer.
        results: A judgment or a failure of each response that was asked about.
        criteria: The prompts, one for each criterion.
        expected: Run id to the ids of the turns that the run had to answer; by default as the pool says. A run that is
            not named had to answer every turn in `expected` or the pool. A turn that a run answered counts in any case.
        cluster: What the intervals are over.

    Raises:
        ValueError: A response has two judgments under one criterion, or two criteria share a name.
    """
    return Table(
        row
        for criterion, runs in turns_by_criterion(pool, results, criteria, expected)
        for row in ranked_runs(runs, criterion, cluster)
    )


def ranked_runs(runs: Iterable[RunTurns], criterion: Criterion, cluster: Cluster) -> list[board_rows.Score]:
    """The scores under one criterion by bound, each with its rank; those without a bound have none and come last."""
    scores = [score_of(run, criterion, cluster) for run in runs]
    return board_rows.ranked(scores, higher_is_better=criterion.scale.polarity == "higher")


def score_of(run: RunTurns, criterion: Criterion, cluster: Cluster) -> board_rows.Score:
    """A run under a criterion: the mean is over the graded turns, and the counts are of COUNTS."""
    graded = [(unit.topic_id, grade.grade) for unit, grade in run.graded]
    mean = board_rows.mean_over(graded, cluster, criterion.scale.ends)
    n = sum(grade.answered for _, grade in run.graded)
    worst = worst_grade(criterion.scale)
    more = {name: fact(run, criterion) for name, fact in MORE.items()}
    return board_rows.Score(
        run_id=run.run_id,
        criterion=criterion.name,
        mean=mean,
        bound=run.bound(mean.value, [worst] * len(run.failed), worst),
        counts={
            "turns": run.turns,
            "n": n,
            "unable": run.unable,
            "missing": sum(run.reasons.values()),
            "harness": sum(count for reason, count in run.reasons.items() if reason in HARNESS),
            "not_asked": run.not_asked,
            "unanswered": run.unanswered + len(run.graded) - n,
            "positive": sum(grade.grade in criterion.scale.positive for _, grade in run.graded),
        },
        reasons={str(reason): count for reason, count in run.reasons.items()},
        flags=run_flags(run),
        more={name: value for name, value in more.items() if value is not None},
        cluster=cluster,
    )


def _expected_mean(run: RunTurns, criterion: Criterion) -> float | None:
    """The mean under the label probabilities; a mean over some of the grades must not stand beside one over all."""
    expected = [grade.expected for _, grade in run.graded if grade.expected is not None]
    return math.fsum(expected) / len(expected) if expected and len(expected) == len(run.graded) else None


def _grades(run: RunTurns, criterion: Criterion) -> Mapping[int, int] | None:
    """On how many turns a run has each grade of the scale."""
    if not run.graded or isinstance(criterion, Measure):
        return None
    counts = Counter(grade.grade for _, grade in run.graded)
    return {grade: counts[grade] for grade in sorted(level.grade for level in criterion.scale.levels)}


MORE: dict[str, Callable[[RunTurns, Criterion], Any]] = {
    "expected_mean": _expected_mean,
    "share_of_turns": lambda run, _: run.share_of_turns,
    "turns_per_topic": lambda run, _: run.turns_per_topic,
    "grades": _grades,
    "reciting": lambda run, _: run.reciting or None,
}
"""What a leaderboard says of a run beside its mean; None is left out. A row is what a column may show.

expected_mean: under the label probabilities. share_of_turns: of the turns of the qrels, those on which the run's top
pooled response has a positive grade. turns_per_topic: of an interactive run, of a topic that it reached, on average.
grades: on how many turns it has each grade. reciting: share of its pooled responses that recite the judge's prompt.
"""
COUNTS = {
    "turns": "turns that the run had to answer; n, unable, missing, not_asked and unanswered add up to it",
    "n": "turns with a grade",
    "unable": "turns on which the judge said that it cannot grade",
    "missing": "turns on which the judge was asked and failed",
    "harness": "turns of these on which the provider failed, the server cut the prompt or the budget was spent",
    "not_asked": "turns left out of a trial of part of the pool",
    "unanswered": "turns without a pooled response that the run ranked first",
    "positive": "turns with a positive grade",
}
"""What leaderboards count."""


def coverage(score: board_rows.Score) -> float:
    """Share of the turns that have a grade or an 'unable' verdict."""
    return (score.counts["n"] + score.counts["unable"]) / score.counts["turns"]


def share_positive(score: board_rows.Score) -> float | None:
    """Share of the graded turns with a positive grade."""
    n = score.counts["n"]
    return score.counts["positive"] / n if n else None


def _positive(score: board_rows.Score) -> str:
    n = score.counts["n"]
    positive = score.counts["positive"]
    return f"{decimals(share_positive(score), 2)} ({positive}/{n - positive})" if n else ""


def per_topic(score: board_rows.Score) -> str:
    """The turns a topic of an interactive run; empty for other runs."""
    turns = score.more.get("turns_per_topic")
    return "" if turns is None else f"{turns:.1f} turns a topic"


def _recital(score: board_rows.Score) -> str:
    return f"{score.more['reciting']:.0%} recite the prompt" if "reciting" in score.more else ""


def board(rows: Iterable[board_rows.Score], nouns: Nouns = UNITS["response"].nouns) -> Table[Any]:
    """The rows of one criterion for people."""
    return records_table(_shown(nouns), rows, "", places=3)


def leaderboard_markdown(
    rows: Sequence[board_rows.Score],
    banner: str,
    criteria: Sequence[Criterion] = (),
    notes: Iterable[str] = (),
    apart: Mapping[str, str] | None = None,
    sentences: Sequence[board_rows.Score] = (),
    first: str = "",
) -> str:
    """A table for each criterion under the banner and the notes, and under what comes `first`.

    `apart`: criterion to a sentence on which runs are better.
    """
    prompts = {criterion.name: criterion for criterion in boards_of(criteria)}
    unit = board_rows.folder_unit(criteria)
    parts = [
        f"# Leaderboard\n\n**{markdown_cell(banner)}**\n",
        *(f"\n{markdown_cell(note)}\n" for note in notes),
        first,
    ]
    for name, group in groups_of((row.criterion, row) for row in rows).items():
        parts.append(f"\n## {markdown_cell(name)}\n\n")
        parts += [f"**{markdown_cell(apart[name])}**\n\n"] if apart and name in apart else []
        if name in prompts:
            positive = ", ".join(map(str, sorted(prompts[name].scale.positive)))
            said = f"Prompt {reading(prompts[name])}; positive: {positive} (share, then positive and other counts)."
            parts.append(f"{markdown_cell(said)}\n\n")
        table = board(group, unit.nouns)
        parts.append(table.body(words={1, len(table.columns) - 1}) + "\n")
    clustered = _CLUSTERED[unit.by_topic, next((row.cluster for row in rows), "topic")]
    parts += [sentences_markdown(sentences), _notes(unit.nouns), unit.words.unanswered, clustered]
    flags = board_rows.flag_lines(rows, board_rows.flag_meanings(unit.nouns))
    return "".join([*parts, *(f"\n{line}.\n" for line in flags)])


def reading(criterion: Criterion) -> str:
    """How to read the grades of a criterion."""
    if isinstance(criterion, Measure):
        what = "a measure"
        lacking = " in the mean too, and is not in n"
        if criterion.of_pairs:
            what = "a share of wins"
            lacking = (
                ", and so does one in which no pair of the run has a verdict, though two or more responses that it met "
                "have one against others; any other without a verdict counts as the rest do"
            )
        without = f"a turn without a response counts 0{lacking}"
        return f"{criterion.prompt_id}, {what} from 0 to 1 ({without}): higher is better"
    grades = ", ".join(str(level.grade) for level in criterion.scale.levels)
    return f"{criterion.prompt_id}, grades {grades}: {criterion.scale.polarity} is better"


def _interval(mean: Estimate) -> str:
    if mean.low is None or mean.high is None:
        return mean.reason or ""
    return f"[{decimals(mean.low, 3)}, {decimals(mean.high, 3)}]"


def _without_grade(row: board_rows.Score) -> str:
    """Why turns have no grade, with counts; failures of the harness stand apart."""
    counts = {
        "unable": row.counts["unable"],
        f"missing ({_reasons(row.reasons, harness=False)})": row.counts["missing"] - row.counts["harness"],
        f"harness ({_reasons(row.reasons, harness=True)})": row.counts["harness"],
        "not asked": row.counts["not_asked"],
        "unanswered": row.counts["unanswered"],
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _reasons(reasons: Mapping[str, int], harness: bool | None = None) -> str:
    """Reasons with their counts where they differ: all of them, those of the harness, or the others."""
    chosen = {reason: n for reason, n in reasons.items() if harness is None or (reason in HARNESS) is harness}
    return ", ".join(
        reason if harness is not None and len(chosen) == 1 else f"{n} {reason}" for reason, n in chosen.items()
    )


CORRECTED_COLUMNS: RecordColumns = {
    **fields("criterion rank rank_lo=place.low rank_hi=place.high tie=place.letters run=run_id family=more.family"),
    **fields("n=raw.mean.n"),
    "missing": lambda row: missing_grades(row),
    **fields("raw=raw.mean.value raw_lo=raw.mean.low raw_hi=raw.mean.high raw_bound=raw.bound gold_n=counts.gold"),
    **fields("corrected=mean.value lo=mean.low hi=mean.high bound bound_lo=more.bound_low bound_hi=more.bound_high"),
    **fields("method=more.method lambda=more.weight ess=more.effective_n bias=more.bias"),
    "flags": lambda row: " ".join(row.flags),
    "note": lambda row: board_rows.noted(row.mean.reason or row.few_topics or row.raw.mean.reason, row.cluster),
}
_CORRECTED_SHOWN: RecordColumns = {
    **fields("rank ranks tie=place.letters run=run_id raw=raw.mean.value"),
    Column("raw [95 %]"): lambda row: row.raw.mean,
    Column("corrected [95 %]"): lambda row: mean_shown(row),
    "bound": lambda row: row.bound,
    "bounds": lambda row: _extreme_bounds(row),
    "gold": lambda row: row.counts["gold"],
    "n": lambda row: f"{row.raw.mean.n}/{row.raw.counts['turns']}",
    "method": lambda row: row.more["method"],
    Column("lambda", 2): lambda row: row.more.get("weight"),
    Column("ESS", 1): lambda row: row.more.get("effective_n"),
    Column("bias", 2, signed=True): lambda row: row.more.get("bias"),
    "flags": lambda row: " ".join(row.flags),
}
"""For people."""
IN_FILE = tuple(as_column(column).name for column in _CORRECTED_SHOWN if column != "raw")
CORRECTED_ON_TERMINAL = ("rank", "run", "corrected [95 %]", "bound", "ranks", "raw", "gold", "n", "tie")
"""The important ones first: a narrow terminal leaves out the last, and 45 runs may have as many letters."""


def _corrected_notes(nouns: Nouns) -> str:
    """How to read a board corrected by gold."""
    turns = nouns.turns
    return f"""
corrected: gold grades of a part of the {nouns.responses}, carried to all of them by the judge's grades (PPI++). \
lambda: how
much the judge's grades count; ESS (effective sample size): gold grades times how many times larger the variance would
be without the judge; bias: judge minus gold. bound: the corrected mean over all {turns} that the run had \
to answer, with
the gold grade of each {nouns.turn} without a grade or, where there is none, the worst grade. bounds: the interval \
with such
{turns} at the lowest and the highest grade.

rank: by the bound, among the runs that have a corrected mean. ranks: the ranks that the run may have among all runs,
of which those without a corrected mean may stand anywhere. Runs that share a letter (tie) cannot be told apart. Both
hold for all runs at once with 95 % confidence.
"""


EVERY_GRADED = "people graded every response"
"""Why a corrected mean is shown without an interval."""


def missing_grades(score: board_rows.Score) -> int:
    """The turns of a corrected run that should have a grade by the judge and have none."""
    raw = score.raw
    return raw.counts["turns"] - raw.mean.n if raw else 0


def mean_shown(score: board_rows.Score) -> Estimate:
    """The corrected mean for people: an interval without a width, where they graded every response, is left out."""
    mean = score.mean
    every = score.raw is not None and score.counts["gold"] == score.raw.mean.n
    if every and mean.low is not None and mean.low == mean.high:
        return msgspec.structs.replace(mean, low=None, high=None, reason=EVERY_GRADED)
    return mean


def _extreme_bounds(score: board_rows.Score) -> str | None:
    """The bound with turns without a grade at the lowest and the highest one; None where there is no such turn."""
    if not missing_grades(score) or "bound_low" not in score.more:
        return None
    return f"[{number(score.more['bound_low'])}, {number(score.more['bound_high'])}]"


def corrected_board(rows: Iterable[board_rows.Score], columns: Sequence[str] = IN_FILE) -> Table[Any]:
    """The rows of one criterion for people."""
    return records_table(_CORRECTED_SHOWN, rows, "", places=3).pick(columns)


def corrected_markdown(
    rows: Sequence[board_rows.Score],
    criteria: Sequence[Criterion],
    changes: Mapping[str, board_rows.RankingChange],
    *,
    target: str,
    cautions: Sequence[str] = (),
    clustered: Sequence[str] = (),
) -> str:
    """A table for each criterion, what the correction changed, and how to read it; names are escaped."""
    nouns = board_rows.folder_unit(criteria).nouns
    about = {
        "pool": f"Corrected means are of the {nouns.responses} judged here; intervals are about the result of grading "
        "them all.",
        "topics": "Corrected means are of the runs on topics like these; their intervals are over topics.",
    }[target]
    parts = ["# Leaderboard, corrected by gold\n", f"\n{about}\n", *(f"\n{note}.\n" for note in clustered)]
    parts += [f"\n**Warning**: {markdown_cell(printable(caution))}\n" for caution in cautions]
    for criterion in criteria:
        parts.append(f"\n## {markdown_cell(criterion.name)}\n\n{markdown_cell(reading(criterion))}.\n\n")
        board = corrected_board(row for row in rows if row.criterion == criterion.name)
        parts.append(board.body(words={2, 3, len(IN_FILE) - 1}))
        parts.append(f"\n\n{change_text(changes[criterion.name])}\n")
    parts.append(_corrected_notes(nouns))
    flags = board_rows.flag_lines(rows, board_rows.corrected_flag_meanings(nouns))
    parts += [f"\n{line}.\n" for line in flags]
    return "".join(parts)


def change_text(change: board_rows.RankingChange) -> str:
    """How the correction changed the order of the runs, in one sentence."""
    if change.runs < 2:
        return "Fewer than two runs have both means."
    parts = [
        f"{name} {number(value, 2)}"
        for name, value in (("tau-b", change.tau_b), ("tau-AP", change.tau_ap), ("RBO", change.rbo))
    ]
    parts += [f"top {k} {number(share, 2)}" for k, share in change.top.items()]
    pairs = count(change.pairs, "pair")
    return f"Raw against corrected order: {', '.join(parts)}; {change.flips} of {pairs} of runs change places."
