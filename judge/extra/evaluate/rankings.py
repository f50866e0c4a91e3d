"""Runs by their passages and PTKB statements: what `judge evaluate passages` and `statements` do, from Python too."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.errors import InputError, UsageError
from judge.extra.evaluate import breakdown
from judge.extra.evaluate.corrected import CorrectedRuns, Corrector, PeopleGrades, people_of_qrels, people_of_rows
from judge.extra.evaluate.intake import Rank, RankedRun, own_assessment, passage_ranking, ranked_runs, statement_ranking
from judge.extra.evaluate.measured import (
    MAIN_OF_PASSAGES,
    MAIN_OF_STATEMENTS,
    PASSAGE_MEASURES,
    STATEMENT_MEASURES,
    Convention,
    Evaluation,
    Evaluator,
    ask,
    ranking_tables,
    turns_tsv,
)
from judge.gold.seal import GOLD_FILES, read_unsealed
from judge.io.files import read_content
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import natural_key, safe_names
from judge.io.installed import undrawn
from judge.io.plan import Option, Positive, in_folders
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.io.text import count, shown
from judge.jobs.options import ClusterUnit
from judge.pool.lists import read_grades
from judge.records import Problem, file_problem
from judge.runs.formats import find_runs
from judge.runs.formats.trec import looks_like_trec_run
from judge.runs.records import Topic, Turn
from judge.runs.topics import read_topics, turns_by_id
from judge.stats.gold_sample import Target

_Assessments = list[tuple[str, dict[str, dict[str, int]]]]
"""Names with grades by turn id and item id."""
_HIGHEST_GRADE = 10_000
"""The highest grade; trec_eval keeps a place in memory for each up to the highest, for each turn."""


class RankingsPlan(ClusterUnit):
    """What every command about rankings can be told."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")]
    """Folders of run files, and run files, in any format of the tracks or TREC runs of six columns, .gz too."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file: depths, PTKB, a check of turn ids."""
    measures: Annotated[tuple[str, ...], Option("measure", metavar="NAME")] = ()
    """More measures, in the names of ir-measures."""
    relevant: Annotated[Positive, Option("rel", metavar="N")] = 1
    """Lowest relevant grade, trec_eval's -l."""
    over: Convention = "qrels"
    """What means are over: every turn of the qrels (trec_eval -c), or those that the run answered."""
    by: breakdown.RunTable = "run"
    """What the table has a line for."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder to write: tables in every form, the value of every turn, pictures."""


class PassagesPlan(RankingsPlan):
    """Everything `judge evaluate passages` can be told.

    The topics say the depth of turns in CAsT's trees, and which turns depend on the PTKB. A turn that they lack is an
    error.
    """

    qrels: Annotated[Path, Option(metavar="FILE")]
    """Grades of passages."""
    gold: Annotated[Path | None, Option(metavar="FILE")] = None
    """People's grades of a part of these passages, which correct the measures: gold (JSONL) with probabilities, or
    qrels, of which turns graded wholly count."""
    target: Target = "topics"
    """With --gold, corrected measures of the runs on topics like these, or of these turns alone."""
    main: Annotated[str, Option(metavar="NAME")] = MAIN_OF_PASSAGES
    """The measure by which runs are ordered, compared and taken apart."""


class StatementsPlan(RankingsPlan):
    """Everything `judge evaluate statements` can be told.

    Runs may also be TREC runs of statement numbers. The topics give the number of a statement that a run names by its
    text, and say which statements a turn depends on.
    """

    qrels: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Grades of statements by number, a file for each group of assessors (default: the links of --topics)."""
    main: Annotated[str, Option(metavar="NAME")] = MAIN_OF_STATEMENTS
    """The measure by which runs are ordered, compared and taken apart."""


class RankingsOutcome(msgspec.Struct, frozen=True):
    """Runs under every measure, by each assessment; what was passed over or not drawn is said, a sentence each."""

    evaluations: tuple[Evaluation, ...]
    facts: dict[str, breakdown.TurnFacts]
    warnings: tuple[str, ...]
    corrected: CorrectedRuns | None = None
    """The same corrected by people's grades, if there are any."""

    def tables(self, by: breakdown.RunTable) -> tuple[Table[Any], ...]:
        """The tables with a line for each run, pair, topic and so on; of corrected runs those under the main measure.

        A UsageError if nothing says the depth of the turns, or which depend on the PTKB.
        """
        if self.corrected is not None and by == "run":
            return (self.corrected.table([self.evaluations[0].asked.main]),)
        grids = ranking_tables(self.evaluations, self.facts, by)
        if not grids:
            raise breakdown.unknown_facts(by)
        return grids


def evaluate_passages(plan: PassagesPlan, steps: Steps = quiet) -> RankingsOutcome:
    """Measure the passages of runs by grades, and write the tables if the plan names a folder.

    An InputError if a run has no turn of the grades, or people's grades are no sample of what they grade.
    """
    if plan.gold is None:
        plan.refuse_unused(["target"], "it needs --gold")
    elif plan.by != "run":
        plan.refuse_unused(["gold"], f"--by {plan.by} is by the grades of --qrels alone")
    plan = in_folders(plan, gold=GOLD_FILES)
    problems: list[Problem] = []
    notes: list[str] = []
    topics = read_topics(plan.topics) if plan.topics is not None else None
    known: Collection[str] = turns_by_id(topics) if topics is not None else _turns_of_first(plan)
    assessments = _read_assessments([plan.qrels], problems, known, notes)
    people = _people(plan, assessments[0][1], notes) if assessments else None
    outcome = _measure_runs(plan, passage_ranking, assessments, topics, problems, steps, people)
    return msgspec.structs.replace(outcome, warnings=(*notes, *outcome.warnings))


def _people(plan: PassagesPlan, judged: Mapping[str, Mapping[str, int]], notes: list[str]) -> PeopleGrades | None:
    """People's grades of passages that the qrels grade; `notes` are as for `read_grades`."""
    if plan.gold is None:
        return None
    name = str(plan.gold)
    if read_content(plan.gold).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        rows = read_unsealed([plan.gold], "no measure of passages opens them; give the dev part")
        people = people_of_rows(rows, judged, name)
    else:
        people = people_of_qrels(read_grades(plan.gold, judged.keys(), notes), judged, plan.target, name)
    highest = max(grade for items in people.grades.values() for grade in items.values())
    if highest > _HIGHEST_GRADE:
        raise InputError(f"{name}: grade {highest}: expected at most {_HIGHEST_GRADE}")
    return people


def _turns_of_first(plan: PassagesPlan) -> Collection[str]:
    """The turns of the first run that can be read."""
    first = next(iter(ranked_runs(plan.runs, passage_ranking, [], quiet)), None)
    return first.ranking.keys() if first is not None else ()


def evaluate_statements(plan: StatementsPlan, steps: Steps = quiet) -> RankingsOutcome:
    """Measure the PTKB statements of runs by each assessment, and write the tables if the plan names a folder.

    A UsageError if there is no assessment, an InputError if a run has no turn of one.
    """
    if not plan.qrels and plan.topics is None:
        raise UsageError("no assessment of statements: expected --qrels FILE, or --topics FILE whose links are one")
    topics = read_topics(plan.topics) if plan.topics is not None else None
    problems: list[Problem] = []
    assessments = _read_assessments(plan.qrels, problems)
    if not plan.qrels and topics is not None:
        grades = own_assessment(topics)
        if not grades:
            raise InputError(f"{plan.topics}: links no PTKB statement to any turn: --qrels FILE is needed")
        assessments = [(Path(str(plan.topics)).name, grades)]
    rank = partial(statement_ranking, turns=turns_by_id(topics) if topics is not None else None)
    return _measure_runs(plan, rank, assessments, topics, problems, steps)


def _read_assessments(
    files: Sequence[Path],
    problems: list[Problem],
    known: Collection[str] | None = None,
    notes: list[str] | None = None,
) -> _Assessments:
    """The grades of qrels files, each named by its file; what cannot be read is added to the problems.

    `known` and `notes` are as for `read_grades`.
    """
    names = [path.name for path in files]
    assessments: _Assessments = []
    for path in files:
        try:
            grades = read_grades(path, known, notes)
            highest = max((grade for items in grades.values() for grade in items.values()), default=None)
            if highest is None or highest > _HIGHEST_GRADE:
                said = "grades nothing" if highest is None else f"grade {highest}: expected at most {_HIGHEST_GRADE}"
                raise InputError(said)
            assessments.append((path.name if names.count(path.name) == 1 else str(path), grades))
        except InputError as error:
            message = str(error).removeprefix(f"{path}: ")
            problems += error.problems or (file_problem("unreadable_qrels", path, message),)
    return assessments


def _measure_runs(
    plan: PassagesPlan | StatementsPlan,
    rank: Rank,
    assessments: _Assessments,
    topics: Sequence[Topic] | None,
    problems: list[Problem],
    steps: Steps,
    people: PeopleGrades | None = None,
) -> RankingsOutcome:
    """Read and measure runs one at a time, compare them, and write the tables if the plan names a folder.

    An interactive run without a graded turn is left out, where another run is measured.
    """
    measures, item, qrels = (
        (PASSAGE_MEASURES, "passage", (plan.qrels,))
        if isinstance(plan, PassagesPlan)
        else (STATEMENT_MEASURES, "statement", plan.qrels)
    )
    asked = ask((*measures, *plan.measures), plan.main, plan.relevant, over=plan.over, cluster=plan.cluster, item=item)
    if plan.out is not None:
        check_apart(plan.out, plan.runs, plan.runs)
    turns = turns_by_id(topics) if topics is not None else None
    for name, grades in assessments:
        problems += _unknown(grades, name, turns)
        highest = max(grade for rows in grades.values() for grade in rows.values())
        if highest < plan.relevant:
            # Every measure would be 0.
            raise UsageError(f"{name}: no {item} has grade {plan.relevant} or more; the highest is {highest}")
    graded = set(itertools.chain.from_iterable(grades for _, grades in assessments))
    evaluators = [Evaluator(name, grades, asked) for name, grades in assessments]
    corrector = None
    if people is not None and isinstance(plan, PassagesPlan):
        corrector = Corrector(people, assessments[0][1], asked, plan.target)
    warnings = _add_runs(evaluators, ranked_runs(plan.runs, rank, problems, steps), graded, turns, problems, corrector)
    steps(Step("comparing runs"))
    evaluations = tuple(evaluator.result() for evaluator in evaluators)
    corrected = None
    if corrector is not None:
        corrected = corrector.result(evaluations[0])
        warnings += corrector.cautions
    facts = breakdown.turn_facts(graded, topics)
    warnings += undrawn("pictures of runs, topics and depths") if plan.out is not None else ()
    outcome = RankingsOutcome(evaluations, facts, tuple(warnings), corrected)
    outcome.tables(plan.by)
    if plan.out is not None:
        gold = plan.gold if isinstance(plan, PassagesPlan) else None
        inputs = [file for file in (*qrels, plan.topics, gold) if file is not None]
        inputs += find_runs(plan.runs, also=lambda _, head: looks_like_trec_run(head))[0]
        replace_folder(plan.out, _files(outcome, steps), f"{item}s.sha256", inputs=inputs)
    return outcome


def _add_runs(
    evaluators: Sequence[Evaluator],
    runs: Iterable[RankedRun],
    graded: Collection[str],
    turns: Mapping[str, Turn] | None,
    problems: list[Problem],
    corrector: Corrector | None,
) -> list[str]:
    """Measure each run, unless runs or grades have problems; a warning for each thing that was passed over."""
    warnings: list[str] = []
    ungraded: dict[str, list[Problem]] = {}
    measured = False
    for run in runs:
        if not run.own_turns:
            problems += _unknown(run.ranking, run.file, turns)
        elif run.ranking.keys().isdisjoint(graded):
            ungraded[run.run_id] = [problem for each in evaluators if (problem := each.problem(run))]
            continue
        measured = True
        warnings += [f"{run.file}: {remark}" for remark in run.remarks]
        for evaluator in evaluators:
            problem = evaluator.problem(run)
            if problem is not None:
                problems.append(problem)
            elif not any(earlier.severity == "error" for earlier in problems):
                evaluator.add(run)
                if corrector is not None:
                    corrector.add(run)
    if not measured:
        problems += itertools.chain.from_iterable(ungraded.values())
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InputError(f"runs and grades that cannot be used together: {count(len(errors), 'problem')}", errors)
    warnings += [f"{problem.file}: {problem.message}" for problem in problems]
    if ungraded:
        names = ", ".join(map(shown, sorted(ungraded, key=natural_key)))
        warnings.append(f"left out, because no grade is of a turn of their conversations: {names} (interactive)")
    return warnings


def _unknown(turn_ids: Mapping[str, object], file: str, turns: Mapping[str, Turn] | None) -> list[Problem]:
    message = "no topic of the topics file has this turn"
    unknown = () if turns is None else (turn_id for turn_id in turn_ids if turn_id not in turns)
    return [file_problem("unknown_turn", file, message, turn_id=turn_id) for turn_id in unknown]


def _files(outcome: RankingsOutcome, steps: Steps) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    evaluations = outcome.evaluations
    facts = outcome.facts
    several = len(evaluations) > 1
    names = [evaluation.assessment for evaluation in evaluations]
    for table, name in stepped("making tables", breakdown.TABLES.items(), steps):
        grids = ranking_tables(evaluations, facts, table)
        if table == "run" and several:
            files |= grids[-1].files("side_by_side")
            title = f"{evaluations[0].asked.items} by {', '.join(names)}"
            grids = (breakdown.stacked(title, grids[:-1], names, "qrels"),)
        files |= grids[0].files(name) if grids else {}
    if outcome.corrected is not None:
        files |= outcome.corrected.table(list(outcome.corrected.changes)).files("corrected")
    files["turns.tsv"] = turns_tsv(evaluations).encode()
    stems = safe_names(names)
    for evaluation in stepped("drawing pictures", evaluations, steps):
        heading = evaluation.asked.items + (f", {evaluation.assessment}" if several else "")
        pictures = breakdown.breakdown_pictures(evaluation.main, facts, heading, evaluation.compared.reading)
        prefix = f"{stems[evaluation.assessment]}_" if several else ""
        files |= {f"{prefix}{name}": picture for name, picture in pictures.items()}
    return files
