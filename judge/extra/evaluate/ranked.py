"""Runs of passages ranked by people's grades and by those of judges: what `judge calibrate --runs` asks for."""

from collections.abc import Sequence
from pathlib import Path

from judge.calibrate.panel import RunsByQrels
from judge.errors import InputError, UsageError
from judge.extra.evaluate.qrels import check_common, check_runs, read_ordered
from judge.extra.evaluate.set_rankings import run_sums
from judge.extra.evaluate.sets import MEAN, Grades, GradeSet, Ranked, common_turns, measure_facts
from judge.io.ids import Cluster, natural_key, passage_turn_id
from judge.io.steps import Steps, quiet, stepped
from judge.io.text import count
from judge.records import Problem


def rank_by_qrels(
    paths: Sequence[Path],
    measure: str,
    people: tuple[str, Grades],
    judges: Sequence[tuple[str, Grades]],
    cluster: Cluster,
    steps: Steps = quiet,
) -> list[RunsByQrels]:
    """The runs in files and folders under a measure by the grades of people and of each judge, which have names.

    Of each judge it is as `judge evaluate qrels` compares both: over the turns of both, with all grades of either. An
    InputError if grades and runs have nothing in common.
    """
    name = measure_facts(measure).name
    if name == MEAN:
        raise UsageError("--measure mean: of responses; runs are ranked by passages here, such as nDCG@5")
    problems: list[Problem] = []
    runs, of_responses = read_ordered(paths, problems)
    if any(problem.severity == "error" for problem in problems):
        raise InputError(f"{count(len(problems), 'problem')} of the runs (--runs)", problems)
    if of_responses:
        raise UsageError("--runs: a pool ranks no passages: give the run files")
    ordered: dict[str, Ranked] = {}
    for run_id in sorted(runs, key=natural_key):
        ordered[run_id] = {passage_turn_id(turn_id): items for turn_id, items in runs[run_id].items()}
    a = _grade_set(*people)
    ranked: list[RunsByQrels] = []
    for judge in stepped("ranking runs", judges, steps):
        b = _grade_set(*judge)
        check_common(a, b)
        turns = common_turns(a, b)
        check_runs(ordered, turns, a, b)
        human_sums, human_counts = run_sums(ordered, a, turns, name, cluster)
        judge_sums, judge_counts = run_sums(ordered, b, turns, name, cluster)
        ranked.append(
            RunsByQrels(
                measure=name,
                human_sums=human_sums,
                human_counts=human_counts,
                judge_sums=judge_sums,
                judge_counts=judge_counts,
            )
        )
    return ranked


def _grade_set(name: str, grades: Grades) -> GradeSet:
    held = {grade for items in grades.values() for grade in items.values()} | {0, 1}
    by_turn = {turn_id: dict(items) for turn_id, items in grades.items()}
    return GradeSet(name=name, grades=by_turn, scale=tuple(sorted(held)))
