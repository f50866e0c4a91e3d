"""Runs of responses under anybody's grades: what `judge evaluate responses` does, for use from Python."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.errors import UsageError
from judge.extra.evaluate.breakdown import TurnFacts, turn_facts
from judge.extra.evaluate.jobs.response_inputs import (
    Polarity,
    qrels_files,
    read_response_qrels,
    runs_of_files,
    runs_of_folder,
)
from judge.extra.evaluate.paired import TABLES, RunTable, is_known, unknown_facts
from judge.extra.evaluate.responses.graded import ResponseQrels, overs
from judge.extra.evaluate.responses.tables import (
    EvaluatedCriterion,
    evaluated_criterion,
    response_pictures,
    response_table,
    turn_lines,
)
from judge.extra.evaluate.scores import Over
from judge.io.cells import count
from judge.io.content import FileContent, Pieces, text_pieces
from judge.io.draw.drawable import undrawn
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import natural_key
from judge.io.plan import Option
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.jobs.options import ClusterUnit
from judge.runs.records import Topic
from judge.runs.topics import read_topics

RECORD = "responses.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class ResponsesPlan(ClusterUnit):
    """Everything `judge evaluate responses` can be told."""

    folder: Annotated[Path | None, Option(metavar="OUT", place="only")] = None
    """Output folder of `judge run` or `judge pool`."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """In place of OUT: TREC runs over response ids, or folders of them."""
    qrels: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Response qrels (default: those of OUT)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file: depth of turns, and which depend on the PTKB."""
    criterion: Annotated[str | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion of OUT; of qrels that do not say it, the criterion or prompt whose scale they have."""
    scale: Annotated[str | None, Option(metavar="LOW-HIGH")] = None
    """Scale of qrels that do not say it, such as 0-3."""
    polarity: Polarity | None = None
    """Which end of --scale is good (default higher)."""
    positive: Annotated[int | None, Option(metavar="N")] = None
    """Grades of N and better are positive, as with trec_eval -l N (default: as the scale says)."""
    over: Over | None = None
    """The turns behind breakdowns, comparisons and letters: all of the qrels, an unanswered one 0 (qrels), or the worst
    grade (worst), or the answered ones (default qrels, or worst where lower grades are better)."""
    by: RunTable = "run"
    """What the table has a line for."""
    single: Annotated[bool, Option(hidden=True)] = False
    """Whether several criteria are refused, since the lines of other tools do not name one."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for all tables in all forms, pictures, and the values of all turns."""


class ResponsesOutcome(msgspec.Struct, frozen=True):
    """The runs under each criterion."""

    criteria: tuple[EvaluatedCriterion, ...]
    facts: dict[str, TurnFacts]
    """Of the turns of all qrels."""
    warnings: tuple[str, ...]
    """A sentence each."""

    def table(self, table: RunTable) -> Table[Any]:
        """One table of all criteria.

        Raises:
            UsageError: Nothing says the depth of the turns, or which depend on the PTKB.
        """
        if not is_known(self.facts, table):
            raise unknown_facts(table)
        return response_table(self.criteria, self.facts, table)


def evaluate_responses(plan: ResponsesPlan, steps: Steps = quiet) -> ResponsesOutcome:
    """Evaluate, and write the folder if the plan names one.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    if (plan.folder is None) == (not plan.runs):
        raise UsageError("expected either an output folder of `judge run` or `judge pool`, or response runs (--runs)")
    if plan.runs and not plan.qrels:
        raise UsageError("response runs need grades: give --qrels")
    runs, inputs = runs_of_folder(plan.folder) if plan.folder else runs_of_files(plan.runs)
    files = plan.qrels or qrels_files(Path(str(plan.folder)))
    all_qrels = read_response_qrels(files, plan.criterion, plan.scale, plan.polarity, plan.positive, own=not plan.qrels)
    for qrels in all_qrels:
        if plan.over is not None and plan.over not in overs(qrels):
            raise UsageError(f"--over {plan.over}: nothing says the worst grade of {qrels.file}: give --scale LOW-HIGH")
    topics = None if plan.topics is None else read_topics(plan.topics)
    facts = turn_facts({turn_id for qrels in all_qrels for turn_id in qrels.grades}, topics)
    criteria = tuple(
        evaluated_criterion(runs, qrels, plan.over, plan.cluster)
        for qrels in stepped("measuring runs", all_qrels, steps)
    )
    not_drawn = undrawn("pictures of runs, topics and depths") if plan.out is not None else ()
    warnings = (*_below_zero(all_qrels), *_unusual(criteria), *_unknown(facts, topics), *not_drawn)
    outcome = ResponsesOutcome(criteria, facts, warnings)
    steps(Step("making tables"))
    outcome.table(plan.by)
    if plan.single and len(criteria) > 1:
        names = ", ".join(of.qrels.name for of in criteria)
        raise UsageError(f"lines of another tool are of one criterion: choose with --criterion or --qrels ({names})")
    if plan.out is not None:
        inputs = (*inputs, *files, *([plan.topics] if plan.topics is not None else []))
        check_apart(plan.out, inputs)
        replace_folder(plan.out, _files(outcome, steps), RECORD, inputs=inputs)
    return outcome


def _files(outcome: ResponsesOutcome, steps: Steps) -> dict[str, FileContent]:
    """Every table that the turns allow in every form, the values of the turns, and the pictures."""
    files: dict[str, FileContent] = {}
    for table, name in stepped("making tables", TABLES.items(), steps):
        if is_known(outcome.facts, table):
            files |= outcome.table(table).files(name)
    steps(Step("drawing pictures"))
    files["turns.tsv"] = Pieces(lambda: text_pieces(turn_lines(outcome.criteria, outcome.facts)))
    return files | response_pictures(outcome.criteria, outcome.facts)


def _unusual(criteria: Sequence[EvaluatedCriterion]) -> Iterator[str]:
    """Runs that answer other turns, or with other responses, than those of the qrels."""
    for of in criteria:
        answered, unjudged = (sum(getattr(run, name) for run in of.runs) for name in ("answered", "unjudged"))
        if 2 * unjudged > answered:
            graded = f"{answered - unjudged} of the {answered} first responses in its turns"
            yield (
                f"{of.qrels.file}: has a grade of {graded}; "
                "if these are the ids of another pool, the few grades are of other responses"
            )
        for run in of.runs:
            if not run.first:
                yield f"{run.run_id}: answers no turn of {of.qrels.file}, so it counts 0 in each"
        if strangers := [run for run in of.runs if run.outside]:
            turns = sorted({turn_id for run in strangers for turn_id in run.outside}, key=natural_key)
            yield (
                f"{of.qrels.file}: has no grade in {count(len(turns), 'turn')} that {count(len(strangers), 'run')} "
                f"answered ({', '.join(turns[:5])}{', ...' if len(turns) > 5 else ''}); they count nowhere"
            )


def _unknown(facts: Mapping[str, TurnFacts], topics: Sequence[Topic] | None) -> Iterator[str]:
    """Turns of the qrels that the topics do not have."""
    known = {turn.turn_id for topic in topics or () for turn in topic.turns}
    unknown = [turn_id for turn_id in facts if turn_id not in known]
    if topics is not None and len(unknown) == len(facts):
        raise UsageError(f"--topics: has no turn of the qrels, such as {unknown[0]}")
    if topics is not None and unknown:
        yield (
            f"the topics have {len(facts) - len(unknown)} of the {count(len(facts), 'turn')} of the qrels, not "
            f"{', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}"
        )


def _below_zero(all_qrels: Sequence[ResponseQrels]) -> Iterator[str]:
    """Grades below 0 of no known scale: some tracks write that nobody could judge in this way."""
    for qrels in all_qrels:
        below = sum(grade < 0 for graded in qrels.grades.values() for grade in graded.values())
        if below and qrels.scale is None:
            yield f"{qrels.file}: {count(below, 'grade')} below 0, which count as they are; --scale refuses such grades"
