"""Runs by the PTKB statements that they name: what `judge evaluate statements` does, for use from Python."""

from collections.abc import Sequence
from pathlib import Path

from judge.errors import InputError, UsageError
from judge.evaluate.rankings import MAIN_OF_STATEMENTS, STATEMENT_MEASURES, Assessment
from judge.evaluate.statements import own_assessment, statement_ranking
from judge.files.paths import StrPath
from judge.harness.evaluation.measured import RankingsOutcome, RankingsPlan, measure_runs, read_assessments
from judge.pool.intake import turns_by_id
from judge.records import Problem
from judge.runs.topics import read_topics
from judge.text.steps import Steps, quiet


class StatementsPlan(RankingsPlan, frozen=True, kw_only=True):
    """Everything `judge evaluate statements` can be told.

    Runs may also be TREC runs of statement numbers. The topics give the number of a statement that a run names by its
    text, and say which statements a turn depends on.
    """

    qrels: Sequence[StrPath] = ()
    """Grades of statements by number, a file for each group of assessors; by default what the topics link."""
    main: str = MAIN_OF_STATEMENTS


def evaluate_statements(plan: StatementsPlan, steps: Steps = quiet) -> RankingsOutcome:
    """Measure the PTKB statements of runs by each assessment, and write the tables if the plan names a folder.

    Raises:
        UsageError: There is no assessment, a measure cannot be computed, or the folder is that of an input.
        InputError: An input is bad, or a run has no turn of an assessment; every problem is listed.
    """
    if not plan.qrels and plan.topics is None:
        raise UsageError("no assessment of statements: expected --qrels FILE, or --topics FILE whose links are one")
    asked = plan.asked(STATEMENT_MEASURES, "statement")
    topics = read_topics(plan.topics) if plan.topics is not None else None
    problems: list[Problem] = []
    assessments = read_assessments(plan.qrels, problems)
    if not plan.qrels and topics is not None:
        grades = own_assessment(topics)
        if not grades:
            raise InputError(f"{plan.topics}: links no PTKB statement to any turn: --qrels FILE is needed")
        assessments = (Assessment(Path(str(plan.topics)).name, grades),)
    rank = statement_ranking(turns_by_id(topics) if topics is not None else None)
    return measure_runs(plan, rank, assessments, asked, topics, problems=problems, qrels=plan.qrels, steps=steps)
