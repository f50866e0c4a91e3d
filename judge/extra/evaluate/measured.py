"""Runs by their passages and PTKB statements: what `judge evaluate passages` and `statements` do, from Python too."""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from judge.errors import InputError, UsageError
from judge.extra.evaluate import breakdown, measured_run
from judge.extra.evaluate.intake import Rank, RankedRun, own_assessment, passage_ranking, ranked_runs, statement_ranking
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import Cluster, natural_key, nested, safe_names
from judge.io.installed import undrawn
from judge.io.plan import Option, Positive
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Cell, Column, Table, records_table, tsv
from judge.io.text import count, examples, shown
from judge.jobs.options import ClusterUnit
from judge.pool.lists import read_grades
from judge.records import Problem, Record, file_problem
from judge.results.rows import Score
from judge.runs.formats import find_runs
from judge.runs.measures import Measures, measure_name
from judge.runs.profiles import possible_years
from judge.runs.ranking import looks_like_trec_run
from judge.runs.records import Topic, Turn
from judge.runs.topics import read_topics, turns_by_id

PASSAGE_MEASURES = "nDCG@3 nDCG@5 nDCG P@10 P@20 R@10 R@20 R@1000 AP RR Judged@5 Judged@20".split()
"""Of section 3 and tables 3 and 4 of the overview of iKAT 2023; 1,000 passages of a turn are looked at."""
MAIN_OF_PASSAGES = "nDCG@5"
STATEMENT_MEASURES = ("nDCG@3", "P@3", "R@3", "R@5", "RR", "SetP", "SetR", "SetF", "AP")
"""Of section 3 and tables 5 and 6 of the overview of iKAT 2023; then those of statements as a set (iKAT 2024)."""
MAIN_OF_STATEMENTS = "nDCG@3"
Convention = Literal["qrels", "answered"]
"""What a mean of a measure of rankings may be over."""
_OTHER: dict[Convention, Convention] = {"qrels": "answered", "answered": "qrels"}
"""The convention beside the one that means are over."""
_SEED = 0


class MeasureChoice(Record, frozen=True):
    """Which measures are computed, and how."""

    measures: tuple[str, ...]
    """As ir_measures names them."""
    main: str
    """The measure that runs are ordered, compared and taken apart by."""
    relevant: int = 1
    """The lowest relevant grade (trec_eval's `-l`)."""
    over: Convention = "qrels"
    cluster: Cluster = "topic"
    item: str = "passage"
    """What is ranked, in the singular."""

    @property
    def items(self) -> str:
        """What is ranked, at the beginning of a title."""
        return f"{self.item.capitalize()}s"


def ask(measures: Sequence[str], main: str, relevant: int = 1, **more: Any) -> MeasureChoice:
    """Which measures are computed, each once, in the spelling of ir_measures; `more` are other fields of the choice.

    A UsageError if a measure cannot be computed.
    """
    main = measure_name(main, relevant)
    names = dict.fromkeys([*(measure_name(name, relevant) for name in measures), main])
    return MeasureChoice(tuple(names), main, relevant, **more)


class Evaluation(Record, frozen=True):
    """Runs under the measures by one assessment."""

    assessment: str
    asked: MeasureChoice
    turns: int
    barren: int
    """Turns of the grades without a relevant item."""
    scores: tuple[Score, ...]
    """Every run under every measure, best run first by the main measure; those of a run share the counts of COUNTS."""
    others: dict[str, float | None]
    """Run to its mean under the main measure by the other convention."""
    compared: breakdown.PairedRuns

    @property
    def main(self) -> tuple[Score, ...]:
        """The runs under the main measure."""
        return tuple(score for score in self.scores if score.criterion == self.asked.main)

    @property
    def by_run(self) -> dict[str, dict[str, Score]]:
        """Run to measure to its score."""
        return nested((score.run_id, score.criterion, score) for score in self.scores)


COUNTS = {
    "answered": "turns of the {turns} for which the run names a {item}.",
    "outside": "statements that are not in the topic's PTKB; they keep their places and match nothing.",
}
"""What is counted of each run, and what the table says of it; what no run counts has no column."""


class Evaluator:
    """The measures over one assessment; runs are added one at a time, so that their rankings need not be kept.

    An assessment is grades by one group of assessors, by turn id and item id; its name is that of its file.
    """

    def __init__(self, assessment: str, grades: Mapping[str, Mapping[str, int]], asked: MeasureChoice) -> None:
        self._assessment = assessment
        self._grades = grades
        self._measures = Measures(asked.measures, grades)
        self._asked = asked
        self._scores: dict[str, dict[str, Score]] = {}
        self._others: dict[str, float | None] = {}
        self._years = possible_years(grades)

    def problem(self, run: RankedRun) -> Problem | None:
        """Why the run cannot be measured: it has no turn of the grades, or is of another year."""
        grades = self._grades
        item = self._asked.item
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        if not answered:
            message = f"names no {item} for any turn"
        elif answered.isdisjoint(grades):
            message = f"answers none of the {count(len(grades), 'turn')} of {self._assessment}: it has "
            theirs, ours = (examples(sorted(turn_ids, key=natural_key), 3) for turn_ids in (answered, grades))
            message += f"{theirs}, the qrels {ours}"
        elif run.years and self._years and run.years.isdisjoint(self._years):
            ours, theirs = (" or ".join(map(str, sorted(years))) for years in (run.years, self._years))
            message = f"has turns of {ours}, {self._assessment} those of {theirs}; equal turn ids are other turns"
        else:
            return None
        return file_problem("other_turns", run.file, message)

    def add(self, run: RankedRun) -> None:
        """Measure a run."""
        grades = self._grades
        asked = self._asked
        values = self._measures.values(run.ranking)
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        counts = {"answered": len(answered & grades.keys()), "beside": len(answered - grades.keys())}
        if run.outside is not None:
            counts["outside"] = run.outside

        def measured(name: str, over: Convention) -> Score:
            bounds = self._measures.bounds(name)
            score = measured_run(run.run_id, name, values[name], grades, over, cluster=asked.cluster, bounds=bounds)
            return msgspec.structs.replace(score, counts=counts)

        self._scores[run.run_id] = {name: measured(name, asked.over) for name in asked.measures}
        self._others[run.run_id] = measured(asked.main, _OTHER[asked.over]).mean.value

    def result(self) -> Evaluation:
        """The runs that were added, compared."""
        asked = self._asked
        reading = breakdown.Reading(bounds=self._measures.bounds(asked.main), cluster=asked.cluster, over=asked.over)
        main = [scores[asked.main] for scores in self._scores.values()]
        ordered: list[Score] = []
        for score in breakdown.best_first(main, reading):
            ordered += self._scores[score.run_id].values()
        return Evaluation(
            assessment=self._assessment,
            asked=asked,
            turns=len(self._grades),
            barren=sum(max(rows.values()) < asked.relevant for rows in self._grades.values()),
            scores=tuple(ordered),
            others=self._others,
            compared=breakdown.comparison(main, np.random.default_rng(_SEED), reading),
        )


def means(evaluation: Evaluation) -> Table[Any]:
    """A line for each run, best first by the main measure, which has its interval and the letters of tied runs."""
    asked = evaluation.asked
    counted = _counted(evaluation)
    by_run = evaluation.by_run
    columns: dict[Column | str, Callable[[Any], object]] = {"run": lambda score: score.run_id}
    for name in counted:
        columns[name] = partial(_count, name=name)
    columns[asked.main] = lambda score: score.mean
    columns["letters"] = lambda score: evaluation.compared.letters.get(score.run_id)
    columns[f"over_{_OTHER[asked.over]}"] = lambda score: evaluation.others[score.run_id]
    for name in asked.measures:
        if name != asked.main:
            columns[name] = partial(_mean_under, name=name, by_run=by_run)
    turns = count(evaluation.turns, "turn")
    title = f"{asked.items} by {evaluation.assessment}: {turns}, {breakdown.OVER[asked.over]}"
    return records_table(columns, evaluation.main, title, _notes(evaluation))


def _counted(evaluation: Evaluation) -> list[str]:
    """What is counted of any run, in the order of COUNTS."""
    names: list[str] = []
    for name in COUNTS:
        if any(name in score.counts for score in evaluation.main):
            names.append(name)
    return names


def _count(score: Score, name: str) -> int | None:
    return score.counts.get(name)


def _mean_under(score: Score, name: str, by_run: Mapping[str, Mapping[str, Score]]) -> float | None:
    return by_run[score.run_id][name].mean.value


def side_by_side(evaluations: Sequence[Evaluation]) -> Table[Any]:
    """A line for each run with its main measure by every assessment, best first by the first of them."""
    asked = evaluations[0].asked
    lines: dict[str, list[Cell]] = {score.run_id: [score.run_id] for score in evaluations[0].main}
    for evaluation in evaluations:
        for score in evaluation.main:
            lines[score.run_id].append(score.mean)
    return Table(
        lines.values(),
        ("run", *(evaluation.assessment for evaluation in evaluations)),
        f"{asked.main} by each assessment",
        (breakdown.INTERVALS[asked.cluster],),
    )


def ranking_tables(
    evaluations: Sequence[Evaluation], facts: Mapping[str, breakdown.TurnFacts], table: breakdown.RunTable
) -> tuple[Table[Any], ...]:
    """One kind of table; means are apart for each assessment, and of several there is one that has them side by side.

    There is none where nothing says how turns are grouped.
    """
    if table == "run":
        return (*map(means, evaluations), *((side_by_side(evaluations),) if len(evaluations) > 1 else ()))
    if not breakdown.is_known(facts, table):
        return ()
    grids = [breakdown.breakdown(table, evaluation.compared, evaluation.main, facts) for evaluation in evaluations]
    names = [evaluation.assessment for evaluation in evaluations]
    title = f"{evaluations[0].asked.items} by {', '.join(names)}: {grids[0].title[0].lower()}{grids[0].title[1:]}"
    return (breakdown.stacked(title, grids, names if len(names) > 1 else None, "qrels"),)


def turns_tsv(evaluations: Sequence[Evaluation]) -> str:
    """The value of every turn: a line for each assessment, run and turn, a column for each measure."""
    names = evaluations[0].asked.measures
    lines: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        for run_id, scores in evaluation.by_run.items():
            for turn_id in next(iter(scores.values())).values:
                values = (score.values[turn_id] for score in scores.values())
                lines.append((evaluation.assessment, run_id, turn_id, *values))
    return tsv(("qrels", "run", "turn", *names), lines)


def tool_scores(evaluations: Sequence[Evaluation], *, trec_eval: bool) -> list[Score]:
    """Every run under every measure, in the names of trec_eval if wanted; of several assessments `assessment/run`."""
    scores: list[Score] = []
    for evaluation in evaluations:
        before = f"{evaluation.assessment}/" if len(evaluations) > 1 else ""
        for score in evaluation.scores:
            name = _trec_eval_name(score.criterion, evaluation.asked.relevant) if trec_eval else score.criterion
            scores.append(msgspec.structs.replace(score, run_id=f"{before}{score.run_id}", criterion=name))
    return scores


def _notes(evaluation: Evaluation) -> Iterator[str]:
    asked = evaluation.asked
    for name in _counted(evaluation):
        yield f"{name}: {COUNTS[name].format(turns=evaluation.turns, item=asked.item)}"
    other = _OTHER[asked.over]
    yield f"over_{other}: {asked.main} {breakdown.OVER[other]}."
    yield breakdown.INTERVALS[asked.cluster]
    yield evaluation.compared.sentence
    if asked.relevant != 1:
        yield f"Relevant is a grade of {asked.relevant} or more; nDCG takes the grades as they are."
    if evaluation.barren:
        yield (
            f"{count(evaluation.barren, 'turn of the qrels has', 'turns of the qrels have')} no relevant {asked.item}: "
            "what counts relevant ones is 0 there, as in trec_eval."
        )
    beside = [score.counts["beside"] for score in evaluation.main if score.counts["beside"]]
    if beside:
        turns = str(min(beside)) if min(beside) == max(beside) else f"{min(beside)} to {max(beside)}"
        each = " each" if len(beside) > 1 and min(beside) == max(beside) else ""
        yield f"Turns that the qrels lack count nowhere: {count(len(beside), 'run has', 'runs have')} {turns}{each}."


def _trec_eval_name(measure: str, relevant: int) -> str:
    """The name that trec_eval prints; where it has none, the measure's own."""
    match = _MEASURE.fullmatch(measure)
    # nDCG knows no relevant grade; other names leave out a 1.
    if match is None or (match["name"] != "nDCG" and int(match["rel"] or 1) != relevant):
        return measure
    plain, at = _TREC_EVAL.get(match["name"], (None, None))
    if match["at"] is None:
        return plain or measure
    return f"{at}_{match['at']}" if at else measure


_MEASURE = re.compile(r"(?P<name>\w+)(\(rel=(?P<rel>[0-9]+)\))?(@(?P<at>[0-9]+))?")
_TREC_EVAL: dict[str, tuple[str | None, str | None]] = {
    "nDCG": ("ndcg", "ndcg_cut"),
    "P": (None, "P"),
    "R": (None, "recall"),
    "AP": ("map", "map_cut"),
    "RR": ("recip_rank", None),
    "Rprec": ("Rprec", None),
    "Bpref": ("bpref", None),
    "SetP": ("set_P", None),
    "SetR": ("set_recall", None),
    "SetF": ("set_F", None),
    "SetAP": ("set_map", None),
    "Success": (None, "success"),
    "infAP": ("infAP", None),
}
"""Measure to its name in trec_eval, without and with a cutoff."""


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

    def tables(self, by: breakdown.RunTable) -> tuple[Table[Any], ...]:
        """The tables with a line for each run, pair, topic and so on.

        A UsageError if nothing says the depth of the turns, or which depend on the PTKB.
        """
        grids = ranking_tables(self.evaluations, self.facts, by)
        if not grids:
            raise breakdown.unknown_facts(by)
        return grids


def evaluate_passages(plan: PassagesPlan, steps: Steps = quiet) -> RankingsOutcome:
    """Measure the passages of runs by grades, and write the tables if the plan names a folder.

    An InputError if a run has no turn of the grades.
    """
    problems: list[Problem] = []
    topics = read_topics(plan.topics) if plan.topics is not None else None
    return _measure_runs(plan, passage_ranking, _read_assessments([plan.qrels], problems), topics, problems, steps)


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


def _read_assessments(files: Sequence[Path], problems: list[Problem]) -> _Assessments:
    """The grades of qrels files, each named by its file; what cannot be read is added to the problems."""
    names = [path.name for path in files]
    assessments: _Assessments = []
    for path in files:
        try:
            grades = read_grades(path)
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
    warnings = _add_runs(evaluators, ranked_runs(plan.runs, rank, problems, steps), graded, turns, problems)
    steps(Step("comparing runs"))
    evaluations = tuple(evaluator.result() for evaluator in evaluators)
    facts = breakdown.turn_facts(graded, topics)
    warnings += undrawn("pictures of runs, topics and depths") if plan.out is not None else ()
    outcome = RankingsOutcome(evaluations, facts, tuple(warnings))
    outcome.tables(plan.by)
    if plan.out is not None:
        inputs = [file for file in (*qrels, plan.topics) if file is not None]
        inputs += find_runs(plan.runs, also=lambda _, head: looks_like_trec_run(head))[0]
        replace_folder(plan.out, _files(outcome, steps), f"{item}s.sha256", inputs=inputs)
    return outcome


def _add_runs(
    evaluators: Sequence[Evaluator],
    runs: Iterable[RankedRun],
    graded: Collection[str],
    turns: Mapping[str, Turn] | None,
    problems: list[Problem],
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
    files["turns.tsv"] = turns_tsv(evaluations).encode()
    stems = safe_names(names)
    for evaluation in stepped("drawing pictures", evaluations, steps):
        heading = evaluation.asked.items + (f", {evaluation.assessment}" if several else "")
        pictures = breakdown.breakdown_pictures(evaluation.main, facts, heading, evaluation.compared.reading)
        prefix = f"{stems[evaluation.assessment]}_" if several else ""
        files |= {f"{prefix}{name}": picture for name, picture in pictures.items()}
    return files
