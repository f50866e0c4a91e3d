"""Runs by measures of their passages: what `judge evaluate passages` does, for use from Python."""

from judge.evaluate.intake import passage_ranking
from judge.evaluate.rankings import MAIN_OF_PASSAGES, PASSAGE_MEASURES
from judge.files.paths import StrPath
from judge.harness.evaluation.measured import RankingsOutcome, RankingsPlan, measure_runs, read_assessments
from judge.records import Problem
from judge.runs.topics import read_topics
from judge.text.steps import Steps, quiet


class PassagesPlan(RankingsPlan, frozen=True, kw_only=True):
    """Everything `judge evaluate passages` can be told.

    The topics say the depth of turns in CAsT's trees, and which turns depend on the PTKB. A turn that they lack is an
    error.
    """

    qrels: StrPath
    """Grades of passages."""
    main: str = MAIN_OF_PASSAGES


def evaluate_passages(plan: PassagesPlan, steps: Steps = quiet) -> RankingsOutcome:
    """Measure the passages of runs by grades, and write the tables if the plan names a folder.

    Raises:
        UsageError: A measure cannot be computed, or the folder is that of an input.
        InputError: An input is bad, or a run has no turn of the grades; every problem is listed.
    """
    asked = plan.asked(PASSAGE_MEASURES)
    topics = read_topics(plan.topics) if plan.topics is not None else None
    problems: list[Problem] = []
    assessments = read_assessments([plan.qrels], problems)
    return measure_runs(
        plan, passage_ranking, assessments, asked, topics, problems=problems, qrels=[plan.qrels], steps=steps
    )
