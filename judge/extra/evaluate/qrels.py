"""Two sets of grades read, checked for what they have in common, and compared: what `judge evaluate qrels` does."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any

import msgspec
from pydantic import Field

from judge.ask.criteria import find_criterion
from judge.ask.results import JUDGMENTS, OFF_SCALE, Labels, on_scale, read_labels
from judge.calibrate.intake import OffScale, parse_scale, remedy
from judge.errors import InputError, UsageError, refuse
from judge.extra.evaluate.intake import passage_ranking, ranked_runs
from judge.extra.evaluate.responses import Polarity
from judge.extra.evaluate.set_rankings import RankedBySets, agreement_grids, ranked_by_sets, ranking_grids
from judge.extra.evaluate.sets import (
    MEAN,
    GradeSet,
    Ranked,
    SetsAgreement,
    binary,
    common_turns,
    measure_facts,
    sets_agreement,
)
from judge.gold.rows import response_digest
from judge.io.draw import RankLine, slope_plot
from judge.io.files import StrPath, file_in, published
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import Cluster, clustering, column, natural_key, nested, own_turn_id, topic_of
from judge.io.installed import has_extra, undrawn
from judge.io.plan import Option
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.io.tabular import collected
from judge.io.text import count, number, printable_id, shown
from judge.jobs.options import ClusterUnit
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool, PooledResponse
from judge.pool.run_choice import DEFAULT_MEASURE
from judge.records import Criterion, Problem, Scale, file_problem
from judge.results.citations import refuse_measured
from judge.runs.profiles import possible_years, year_of
from judge.runs.topics import read_topics, turns_by_id

_MOST_GRADES = 101
"""Grades of the longest scale that is taken from what a file holds."""


class QrelsPlan(ClusterUnit):
    """Everything `judge evaluate qrels` can be told."""

    a: Annotated[Path, Option(metavar="A", place="only")]
    """Qrels, labels of four columns, judgments.jsonl, or an output folder of `judge run`."""
    b: Annotated[Path, Option(metavar="B", place="only")]
    """Others of the same items."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Run files and folders of them, TREC runs too, .gz too, or an output folder (default: the pool beside A or B)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file; graded turns that it lacks are refused."""
    criterion: Annotated[str | None, Option(metavar="NAME|PATH")] = None
    """Criterion of the judgments, or their prompt file."""
    scale: Annotated[str | None, Option(metavar="LOW-HIGH")] = None
    """Scale of grades in columns (default: as they are given)."""
    polarity: Polarity = "higher"
    """Which end of the scale of columns is good."""
    off_scale: OffScale = "error"
    """A grade off its scale stops the comparison, or counts as missing."""
    positive: Annotated[tuple[int, ...] | None, Field(max_length=2), Option(metavar="N")] = None
    """Compare positive or not: grade N or better; two numbers are for A and for B."""
    measures: Annotated[tuple[str, ...], Option("measure", metavar="NAME")] = ()
    """Mean, the mean grade of first responses, or as ir-measures writes it (default: mean where A, B or the runs are of
    an output folder, else nDCG@5)."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Also write every table in all forms, and a picture of the rankings."""


class GivenSet(msgspec.Struct, frozen=True):
    """A set of grades as it was read, before the scale of both sets is known."""

    path: Path
    labels: Labels
    criterion: Criterion | None
    """The prompt of judgments; None for columns, which do not say what they are of."""
    pool: Pool | None
    """The pool beside judgments."""


def read_given(
    given: StrPath, criterion: str | None, problems: list[Problem], *, lenient: bool = False
) -> GivenSet | None:
    """Read one set; None, and its problems, where it cannot be used. `lenient` is as for `read_labels`."""
    every: list[Labels] | None = None
    with collected(problems, "unreadable_file", given):
        path = file_in(given, JUDGMENTS)
        every = [*read_labels(path, grades_only=True, lenient=lenient)]
    if every is None:
        return None
    labels, prompt = _one(path, every, criterion)
    kept = tuple(label for label in labels.labels if label.sample == 0)
    first: set[tuple[str, str]] = set()
    for label in kept:
        # `9-1-3` and `9-1_3` are one turn.
        key = own_turn_id(label.turn_id), label.response_id
        if key in first:
            message = f"{printable_id(label.response_id)} is graded twice"
            problems.append(file_problem("duplicate_row", path, message, turn_id=printable_id(label.turn_id)))
        first.add(key)
    beside = path.with_name("pool.jsonl")
    pooled = prompt is not None and path.name == JUDGMENTS and beside.exists()
    pool = read_pool_folder(beside, "runs.jsonl", "excluded.tsv") if pooled else None
    return GivenSet(path, msgspec.structs.replace(labels, labels=kept), prompt, pool)


def _one(path: Path, every: Sequence[Labels], wanted: str | None) -> tuple[Labels, Criterion | None]:
    """The labels of one judge under one prompt."""
    if len(every) == 1 and every[0].prompt is None:
        return every[0], None
    names = {labels.prompt.partition("/")[0] for labels in every if labels.prompt}
    prompt = find_criterion(wanted) if wanted is not None and wanted not in names else None
    chosen = [
        labels
        for labels in every
        if labels.prompt is not None
        and (
            wanted is None
            or labels.prompt.partition("/")[0] == wanted
            or (prompt is not None and prompt.prompt_id == labels.prompt)
        )
    ]
    held = ", ".join(f"{labels.judge} under {labels.prompt}" for labels in every) or "nothing"
    if not chosen:
        raise UsageError(f"{path}: no judgment under {wanted}: it holds {held}")
    if len(chosen) > 1:
        raise UsageError(f"{path}: expected one judge under one prompt (--criterion NAME): it holds {held}")
    try:
        return chosen[0], find_criterion(str(chosen[0].prompt), {prompt.prompt_id: prompt} if prompt else None)
    except UsageError as error:
        raise UsageError(f"{path}: {error}; give the prompt of your own with --criterion PATH") from error


def grade_sets(plan: QrelsPlan, a: GivenSet, b: GivenSet) -> tuple[GradeSet, GradeSet, tuple[str, ...]]:
    """Both sets on their scales, or as positive or not, and a warning for each with grades that are left out.

    Columns are on the declared scale, else on that of the other set's prompt, else on that of the grades they hold.
    """
    declared = parse_scale(plan.scale, plan.polarity) if plan.scale else None
    shared = declared or next((given.criterion.scale for given in (a, b) if given.criterion), None)
    warnings: list[str] = []
    problems: list[Problem] = []
    sets = [
        _set(plan, given, given.criterion.scale if given.criterion else shared, problems, warnings) for given in (a, b)
    ]
    refuse(problems, f"{a.path} and {b.path}: {count(len(problems), 'problem')}{remedy(problems, plan.off_scale)}")
    if plan.positive:
        positive = plan.positive[0], plan.positive[-1]
        for letter, of, grade in zip("AB", sets, positive, strict=True):
            if grade not in of.scale or grade == of.worst:
                raise UsageError(
                    f"--positive {grade}: {letter} has the grades {_words(of)}: expected a better one than the worst"
                )
        sets = [binary(of, grade) for of, grade in zip(sets, positive, strict=True)]
    first, second = sets
    if (first.scale, first.higher_is_better) != (second.scale, second.higher_is_better):
        raise UsageError(
            f"A has the grades {_words(first)} ({a.path}), B {_words(second)} ({b.path}): agreement needs one scale. "
            "--scale LOW-HIGH says that columns are on one scale although some grades are never given; --positive N M "
            "compares positive or not: grade N or better in A, M or better in B"
        )
    return first, second, tuple(warnings)


def _words(of: GradeSet) -> str:
    return f"{of.scale[0]} to {of.scale[-1]}{'' if of.higher_is_better else ', lower is better'}"


def _set(
    plan: QrelsPlan, given: GivenSet, scale: Scale | None, problems: list[Problem], warnings: list[str]
) -> GradeSet:
    """A set on its scale; without one, on that of the grades it holds."""
    allowed = [] if scale is None else sorted(level.grade for level in scale.levels)
    labels = given.labels
    if scale is not None and plan.off_scale == "missing":
        labels = on_scale(labels, allowed)
    # A log has them without a scale too.
    if lost := sum(label.reason == OFF_SCALE for label in labels.labels):
        total = count(len(labels.labels), "grade")
        warnings.append(f"{given.path}: {lost} of {total} off the scale, which count as missing")
    if scale is None:
        return GradeSet(str(given.path), _by_turn(given, labels), _held(given), plan.polarity != "lower")
    problems += [
        file_problem(
            "off_scale",
            given.path,
            f"grade {label.grade}: expected one of {', '.join(map(str, allowed))}",
            printable_id(label.response_id),
            turn_id=printable_id(label.turn_id),
        )
        for label in labels.labels
        if label.grade is not None and label.grade not in allowed
    ]
    return GradeSet(str(given.path), _by_turn(given, labels), tuple(allowed), scale.polarity == "higher")


def _by_turn(given: GivenSet, labels: Labels) -> dict[str, dict[str, int]]:
    # Judgments hold ids as they are, files of columns as columns.
    as_column = column if given.criterion else str
    return nested(
        (own_turn_id(as_column(label.turn_id)), as_column(label.response_id), label.grade)
        for label in labels.labels
        if label.grade is not None
    )


def _held(given: GivenSet) -> tuple[int, ...]:
    """The scale that the grades of a file show: from the lowest, or 0, to the highest."""
    grades = [label.grade for label in given.labels.labels if label.grade is not None]
    low = min(0, *grades)
    high = max(1, *grades)
    if high - low >= _MOST_GRADES:
        expected = f"expected a scale of at most {_MOST_GRADES} grades"
        raise InputError(f"{given.path}: grades from {low} to {high}: {expected}")
    return tuple(range(low, high + 1))


def check_common(a: GradeSet, b: GradeSet) -> None:
    """Refuse two sets that graded nothing in common."""
    for given in (a, b):
        if not given.grades:
            raise InputError(f"{given.name}: no item has a grade")
    examples = [f"{shown(min(of.grades, key=natural_key))} in {of.name}" for of in (a, b)]
    common = a.grades.keys() & b.grades.keys()
    if not common:
        raise InputError(f"no turn that both graded: {' and '.join(examples)}, for example")
    years = year_of(a.grades.keys()), year_of(b.grades.keys())
    if None not in years and years[0] != years[1]:
        raise InputError(
            f"{a.name} has turns of {years[0]}, {b.name} those of {years[1]}: equal turn ids are other turns"
        )
    if not any(a.grades[turn_id].keys() & b.grades[turn_id].keys() for turn_id in common):
        turn_id = min(common, key=natural_key)
        items = [f"{shown(min(of.grades[turn_id], key=natural_key))} in {of.name}" for of in (a, b)]
        raise InputError(
            f"no item that both graded, on {count(len(common), 'common turn')}: in turn {shown(turn_id)} for example "
            f"{' and '.join(items)}; are these the ids of another pool or collection?"
        )


def check_pools(a: GivenSet, b: GivenSet) -> None:
    """Refuse judgments of two pools that give one id to different responses."""
    if a.pool is None or b.pool is None:
        return
    first, second = (str(given.path.with_name("pool.jsonl")) for given in (a, b))
    message = f"another response than in {first}: its turn, text or passages differ"
    own = {response.response_id: _content(response) for response in a.pool.responses}
    problems: list[Problem] = []
    for response in b.pool.responses:
        response_id = response.response_id
        content = _content(response)
        if own.get(response_id, content) != content:
            problems.append(file_problem("other_response", second, message, response_id, turn_id=response.turn_id))
    told = f"{count(len(problems), 'id')} of different responses; judge one pool twice"
    refuse(problems, f"{first} and {second}: {told}")


def _content(response: PooledResponse) -> tuple[str, str, tuple[str, ...]]:
    """What tells a response from others: its turn, text and passages."""
    return response.turn_id, response_digest(response), response.passages


def read_ordered(given: Sequence[StrPath], problems: list[Problem]) -> tuple[dict[str, Ranked], bool]:
    """What each run of files and folders ranks, and whether all are responses of a pool."""
    pools = [path for path in given if (Path(path) / "pool.jsonl").is_file() or Path(path).name == "pool.jsonl"]
    files = [path for path in given if path not in pools]
    rankings: list[tuple[str, Ranked]] = []
    for path in pools:
        rankings.extend(pooled_runs(read_pool_folder(Path(path), "runs.jsonl", "excluded.tsv")).items())
    for ranked in ranked_runs(files, passage_ranking, problems) if files else ():
        # Runs rank much the same items, so that their ids are kept once.
        ids: dict[str, tuple[str, ...]] = {}
        for turn, items in ranked.ranking.items():
            ids[turn] = tuple(sys.intern(item_id) for item_id, _ in items)
        rankings.append((ranked.run_id, {turn: items for turn, items in ids.items() if items}))
    runs: dict[str, Ranked] = {}
    for run_id, turns in rankings:
        if run_id in runs:
            message = f"the run {shown(run_id)} is given twice"
            problems.append(file_problem("duplicate_run_id", ", ".join(map(str, given)), message))
        runs[run_id] = turns
    return runs, not files


def pooled_runs(pool: Pool) -> dict[str, Ranked]:
    """The responses of each run of a pool by rank, as in its `response_runs/`."""
    refuse_measured(pool)
    ranked: dict[str, dict[str, list[str]]] = {run.run_id: {} for run in pool.runs if run.selected}
    entries = ((entry, response) for response in pool.responses for entry in response.runs)
    for entry, response in sorted(entries, key=lambda pair: (pair[0].rank, natural_key(pair[1].response_id))):
        turns = ranked.setdefault(entry.run_id, {})
        turns.setdefault(own_turn_id(column(response.turn_id)), []).append(response.response_id)
    runs: dict[str, Ranked] = {}
    for run_id in sorted(ranked, key=natural_key):
        runs[run_id] = {turn: tuple(dict.fromkeys(names)) for turn, names in ranked[run_id].items()}
    return runs


def _ranks_graded(run: Ranked, turns: Sequence[str], a: GradeSet, b: GradeSet) -> bool:
    """Whether a run ranks an item in these turns that one of the sets graded."""
    for turn_id in turns:
        graded = a.grades[turn_id].keys() | b.grades[turn_id].keys()
        if not graded.isdisjoint(run.get(turn_id, ())):
            return True
    return False


def check_runs(runs: Mapping[str, Ranked], turns: Sequence[str], a: GradeSet, b: GradeSet) -> None:
    """Refuse runs that say nothing about the turns of both sets."""
    problems = []
    year = year_of(a.grades.keys())
    for run_id, run in runs.items():
        if run.keys().isdisjoint(turns):
            example = f", but {shown(min(run, key=natural_key))}, for example" if run else ""
            message = f"answers none of the {count(len(turns), 'turn')} that both sets graded{example}"
        elif year is not None and (years := possible_years(run.keys())) and year not in years:
            message = f"has turns of {' or '.join(map(str, sorted(years)))}, the qrels those of {year}"
        else:
            continue
        problems.append(file_problem("other_turns", shown(run_id), message))
    refuse(problems, f"{count(len(problems), 'run')} that the grades are not of")
    if runs and not any(_ranks_graded(run, turns, a, b) for run in runs.values()):
        raise InputError(
            "no run ranks an item that A or B graded: qrels of responses go with an output folder of `judge run` or "
            "its response_runs/, qrels of passages with the runs"
        )


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
    lenient = plan.off_scale == "missing"
    given = [read_given(path, plan.criterion, problems, lenient=lenient) for path in (plan.a, plan.b)]
    runs, responses = read_ordered(plan.runs, problems) if plan.runs else ({}, False)
    read = [one for one in given if one is not None]
    if len(read) < 2 or any(problem.severity == "error" for problem in problems):
        told = f"{plan.a} and {plan.b}: {count(len(problems), 'problem')}{remedy(problems, plan.off_scale)}"
        raise InputError(told, problems)
    a, b, warnings = grade_sets(plan, *read)
    warnings = (*(f"{problem.file}: {problem.message}" for problem in problems), *warnings)
    if plan.topics is not None:
        _check_topics(plan.topics, (a, b))
    check_common(a, b)
    check_pools(*read)
    turns = common_turns(a, b)
    a, b = (msgspec.structs.replace(of, name=published(of.name)) for of in (a, b))
    if not plan.runs and (pool := next((given.pool for given in read if given.pool is not None), None)) is not None:
        runs = pooled_runs(pool)
        responses = True
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
    turns = turns_by_id(read_topics(path))
    message = f"the topics of {path} lack this turn"
    problems: list[Problem] = []
    for side in sets:
        for turn_id in sorted(side.grades.keys() - turns.keys(), key=natural_key):
            problems.append(file_problem("unknown_turn", side.name, message, turn_id=printable_id(turn_id)))
    refuse(problems, f"{count(len(problems), 'graded turn')} that the topics lack")


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
    files: dict[str, bytes] = {}
    for stem, grid in outcome.grids.items():
        files.update(grid.files(stem))
    for place, ranking in enumerate(outcome.rankings if has_extra("pictures") else (), 1):
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
            a = (run.rank_a, number(run.a.mean.value))
            b = (run.rank_b, number(run.b.mean.value))
            lines.append(RankLine(run.run_id, a, b, emphasis[run.run_id]))
    return slope_plot(
        lines,
        tuple(f"{letter}: {PurePath(of.name).name}" for letter, of in (("A", sets.a), ("B", sets.b))),
        ("in the same order", "swapped with a run", "swapped, and significant by a set"),
        f"Runs by {ranking.measure} under two sets of grades",
    )
