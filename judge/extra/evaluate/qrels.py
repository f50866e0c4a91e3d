"""Two sets of grades compared: what `judge evaluate qrels` does, for use from Python."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from judge.errors import InputError, UsageError
from judge.extra.evaluate.set_inputs import (
    QrelsPlan,
    check_common,
    check_pools,
    check_runs,
    grade_sets,
    pooled_runs,
    read_given,
    read_ordered,
)
from judge.extra.evaluate.set_rankings import RankedBySets, agreement_grids, ranked_by_sets, ranking_grids
from judge.extra.evaluate.sets import MEAN, GradeSet, SetsAgreement, common_turns, measure_facts, sets_agreement
from judge.io.draw import RankLine, slope_plot
from judge.io.files import published
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import Cluster, clustering, natural_key, topic_of
from judge.io.installed import can_draw, undrawn
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.io.text import count, number, printable_id, shown
from judge.pool.run_choice import DEFAULT_MEASURE
from judge.records import Problem
from judge.runs.topics import read_topics


class QrelsOutcome(msgspec.Struct, frozen=True):
    """How far two sets of grades agree."""

    agreement: SetsAgreement
    rankings: tuple[RankedBySets, ...]
    """A ranking for each measure; empty without runs."""
    warnings: tuple[str, ...]
    """A sentence each."""
    cluster: Cluster
    """What intervals are over."""

    @property
    def grids(self) -> dict[str, Table[Any]]:
        """The tables by the names of their files."""
        tables = agreement_grids(self.agreement, self.cluster)
        return tables | ranking_grids(self.rankings, self.cluster) if self.rankings else tables


def compare_qrels(plan: QrelsPlan, steps: Steps = quiet) -> QrelsOutcome:
    """Compare two sets, and write tables and pictures if the plan names a folder.

    A UsageError if the scales differ, a measure is unknown, or judgments are of several judges; an InputError if the
    sets and runs have nothing in common.
    """
    problems: list[Problem] = []
    given = [read_given(path, plan.criterion, problems) for path in (plan.a, plan.b)]
    runs, responses = read_ordered(plan.runs, problems) if plan.runs else ((), False)
    read = [one for one in given if one is not None]
    if len(read) < 2 or any(problem.severity == "error" for problem in problems):
        raise InputError(f"{plan.a} and {plan.b}: {count(len(problems), 'problem')}", problems)
    a, b, warnings = grade_sets(plan, *read)
    warnings = (*(f"{problem.file}: {problem.message}" for problem in problems), *warnings)
    if plan.topics is not None:
        _check_topics(plan.topics, (a, b))
    check_common(a, b)
    check_pools(*read)
    turns = common_turns(a, b)
    a, b = (msgspec.structs.replace(of, name=published(of.name)) for of in (a, b))
    if not plan.runs and (pool := next((given.pool for given in read if given.pool is not None), None)) is not None:
        runs, responses = pooled_runs(pool), True
    if runs:
        check_runs(runs, turns, a, b)
    usual = MEAN if responses or any(one.criterion is not None for one in read) else DEFAULT_MEASURE
    measures = _measures(plan, usual if runs else None, higher_is_better=a.higher_is_better)

    rankings = tuple(
        ranked_by_sets(runs, a, b, turns, measure, plan.cluster) for measure in stepped("ranking runs", measures, steps)
    )
    steps(Step("comparing grades"))
    warnings = (*warnings, *_ungraded(rankings), *clustering(map(topic_of, turns), plan.cluster))
    warnings += undrawn("pictures of the rankings") if rankings and plan.out is not None else ()
    outcome = QrelsOutcome(sets_agreement(a, b, plan.cluster), rankings, warnings, plan.cluster)
    if plan.out is not None:
        steps(Step("making tables and pictures"))
        _write(plan.out, plan, outcome)
    return outcome


def _measures(plan: QrelsPlan, usual: str | None, *, higher_is_better: bool) -> tuple[str, ...]:
    """The measures that runs are ranked by: those of the plan, else the usual one, which is None without runs."""
    if plan.measures and usual is None:
        raise UsageError("--measure needs runs (--runs), or an output folder of `judge run` as A or B")
    measures = plan.measures or ((usual,) if usual else ())
    if not higher_is_better and any(measure != MEAN for measure in measures):
        raise UsageError(
            f"lower grades are better here, other than for {measures[0]}: use --measure mean or --positive"
        )
    return tuple(dict.fromkeys(measure_facts(name).name for name in measures))


def _check_topics(path: Path, sets: Sequence[GradeSet]) -> None:
    known = {turn.turn_id for topic in read_topics(path) for turn in topic.turns}
    problems = [
        Problem("unknown_turn", "error", of.name, printable_id(turn_id), "", f"the topics of {path} lack this turn")
        for of in sets
        for turn_id in sorted(of.grades.keys() - known, key=natural_key)
    ]
    if problems:
        raise InputError(f"{count(len(problems), 'graded turn')} that the topics lack", problems)


def _ungraded(rankings: Sequence[RankedBySets]) -> Iterator[str]:
    """A sentence for each run whose score says nothing, because no set graded what it ranks."""
    for ranking in rankings:
        for row in ranking.holes:
            if row.items == row.neither:
                items = count(row.items, "item")
                yield f"{shown(row.run_id)}, {ranking.measure}: {items}, none graded by A or B: its score says nothing"


def _write(out: Path, plan: QrelsPlan, outcome: QrelsOutcome) -> None:
    inputs = [plan.a, plan.b, *plan.runs]
    check_apart(out, inputs)
    files = {name: content for key, grid in outcome.grids.items() for name, content in grid.files(key).items()}
    for place, ranking in enumerate(outcome.rankings if can_draw() else (), 1):
        name = "slopes" if len(outcome.rankings) == 1 else f"slopes-{place}"
        files[f"{name}.svg"], files[f"{name}.png"] = _picture(ranking, outcome.agreement)
    replace_folder(out, files, "sets.sha256", inputs=[path for path in inputs if path.is_file()])


def _picture(ranking: RankedBySets, sets: SetsAgreement) -> tuple[bytes, bytes]:
    emphasis = dict.fromkeys((run.run_id for run in ranking.runs), 0)
    for pair in ranking.pairs:
        if pair.swapped:
            for run_id in (pair.run_a, pair.run_b):
                emphasis[run_id] = max(emphasis[run_id], 1 + any(pair.significant))
    lines = []
    for run in ranking.runs:
        if run.rank_a is not None and run.rank_b is not None:
            a, b = (run.rank_a, number(run.a.estimate.value)), (run.rank_b, number(run.b.estimate.value))
            lines.append(RankLine(run.run_id, a, b, emphasis[run.run_id]))
    return slope_plot(
        lines,
        tuple(f"{letter}: {PurePath(of.name).name}" for letter, of in (("A", sets.a), ("B", sets.b))),
        ("in the same order", "swapped with a run", "swapped, and significant by a set"),
        f"Runs by {ranking.measure} under two sets of grades",
    )
