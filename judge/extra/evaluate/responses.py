"""Runs of responses under anybody's grades: what `judge evaluate responses` does, for use from Python."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from judge.ask.criteria import criterion_names, find_criterion
from judge.calibrate.intake import parse_scale
from judge.errors import InputError, UsageError, refuse
from judge.extra.evaluate import Over
from judge.extra.evaluate import graded as grading
from judge.extra.evaluate.breakdown import TABLES, RunTable, TurnFacts, is_known, turn_facts, unknown_facts
from judge.io.files import input_errors, json_of
from judge.io.folder import FileContent, Pieces, check_apart, replace_folder, text_pieces
from judge.io.ids import QrelRow, natural_key, nested, parse_qrels, parse_run
from judge.io.installed import undrawn
from judge.io.plan import Option
from judge.io.steps import Step, Steps, quiet, stepped
from judge.io.table import Table
from judge.io.tabular import collected, read_text
from judge.io.text import count, examples, shown
from judge.jobs.options import ClusterUnit
from judge.pool.bank import pool_file, read_pool_folder
from judge.records import Problem, Scale, file_problem
from judge.runs.records import Topic
from judge.runs.topics import read_topics, turns_by_id

Polarity = Literal["higher", "lower"]
_RUN_FILES = (".run", ".run.gz")
_QRELS_FILES = (".qrel", ".qrels", ".qrel.gz", ".qrels.gz")


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
    """The runs under each criterion, the facts of the turns of all qrels, and warnings, a sentence each."""

    criteria: tuple[grading.EvaluatedCriterion, ...]
    facts: dict[str, TurnFacts]
    warnings: tuple[str, ...]

    def table(self, table: RunTable) -> Table[Any]:
        """One table of all criteria.

        A UsageError if nothing says the depth of the turns, or which depend on the PTKB.
        """
        if not is_known(self.facts, table):
            raise unknown_facts(table)
        return grading.response_table(self.criteria, self.facts, table)


class _Sidecar(msgspec.Struct):
    """What `FILE.json` beside a qrels file of judge says of it."""

    criterion: str
    scale: Scale
    calibration: str | None = None


def runs_of_folder(folder: Path) -> tuple[grading.ResponseRuns, tuple[Path, ...]]:
    """The runs of a folder of `judge run` or `judge pool`, and the files that were read."""
    path = pool_file(folder)
    if not path.exists():
        raise InputError(
            f"{folder}: no pool.jsonl there: expected an output folder of `judge run` or `judge pool`; response runs "
            "are given by --runs"
        )
    beside = path.with_name("runs.jsonl")
    pool = read_pool_folder(folder, *(("runs.jsonl",) if beside.exists() else ()))
    return grading.runs_of_pool(pool), tuple(file for file in (path, beside) if file.exists())


def runs_of_files(given: Sequence[Path]) -> tuple[grading.ResponseRuns, tuple[Path, ...]]:
    """The runs of run files and folders of them, and the files that were read.

    Of a folder, the files named `.run` are read, or where there is none, all files that are not hidden.
    """
    paths: list[Path] = []
    for entry in given:
        paths += _run_files(entry) if entry.is_dir() else [entry]
    problems: list[Problem] = []
    runs: dict[str, dict[str, str]] = {}
    homes: dict[str, Path] = {}
    for path in dict.fromkeys(paths):
        text = read_text(path, problems)
        if text is None:
            continue
        if text.startswith(("{", "[")):
            message = "JSON: expected lines `turn_id Q0 response_id rank score tag`, as judge writes to response_runs/"
            problems.append(file_problem("not_lines", path, message))
            continue
        with collected(problems, "wrong_run", path):
            run = parse_run(text, str(path))
            if homes.setdefault(run.run_id, path) is not path:
                message = f"tag {shown(run.run_id)} is the tag of {homes[run.run_id]} too"
                problems.append(file_problem("second_run", path, message))
            runs[run.run_id] = grading.first_of_lines(run)
    refuse(problems, f"response runs: {count(len(problems), 'problem')}")
    return runs, tuple(paths)


def _run_files(folder: Path) -> list[Path]:
    with input_errors(folder):
        entries = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    named = [path for path in entries if path.name.endswith(_RUN_FILES)] or entries
    if not named:
        raise InputError(f"{folder}: no file of a run there")
    return sorted(named, key=lambda path: natural_key(path.name))


def qrels_files(folder: Path) -> tuple[Path, ...]:
    """The qrels of a folder of `judge run`."""
    inside = folder / "qrels"
    files = [path for path in inside.iterdir() if path.name.endswith(_QRELS_FILES)] if inside.is_dir() else []
    if not files:
        raise UsageError(f"{folder}: no qrels there, as of a folder of `judge pool`: give them with --qrels")
    return tuple(sorted(files, key=lambda path: natural_key(path.name)))


def read_response_qrels(plan: ResponsesPlan, paths: Sequence[Path]) -> tuple[grading.ResponseQrels, ...]:
    """The grades of each file, whose scale its sidecar says, else the user.

    Of all the qrels of a folder, a stated criterion chooses.
    """
    stated, wanted = _stated(plan)
    problems: list[Problem] = []
    read: list[grading.ResponseQrels] = []
    for path in paths:
        sidecar = _sidecar(path)
        if sidecar is None:
            name = wanted or _stem(path)
            of_file = stated
            remark = None
            if name != _stem(path) in criterion_names():
                remark = f"so says --criterion; by its name {path.name} holds grades of {_stem(path)}."
        elif wanted not in (None, sidecar.criterion):
            if not plan.qrels:
                continue
            raise UsageError(f"{path}: grades of {shown(sidecar.criterion)}, as {path.name}.json says, not of {wanted}")
        else:
            name = sidecar.criterion
            of_file = sidecar.scale
            remark = sidecar.calibration
            if plan.scale is not None or plan.polarity is not None:
                raise UsageError(f"{path}: {path.name}.json says the scale: leave out --scale and --polarity")
        levels = [level.grade for level in of_file.levels] if of_file is not None else [plan.positive]
        if plan.positive is not None and plan.positive not in levels:
            raise UsageError(f"--positive {plan.positive}: {path} has the grades {', '.join(map(str, levels))}")
        grades = _grades(path, of_file, problems)
        read.append(
            grading.ResponseQrels(
                name=name, file=path.name, grades=grades, scale=of_file, threshold=plan.positive, remark=remark
            )
        )
    refuse(problems, f"response qrels: {count(len(problems), 'problem')}")
    if not read:
        raise UsageError(f"no qrels of {wanted} among {', '.join(path.name for path in paths)}")
    return _told_apart(read)


def _stated(plan: ResponsesPlan) -> tuple[Scale | None, str | None]:
    """The scale and the name of the criterion that the user states."""
    criterion = plan.criterion
    if plan.scale is not None:
        return parse_scale(plan.scale, plan.polarity or "higher"), criterion
    if plan.polarity is not None:
        raise UsageError("--polarity says which end of --scale is good: give both")
    if criterion is None:
        return None, None
    names = criterion_names()
    if criterion not in names and not criterion.endswith(".md") and "/" not in criterion:
        raise UsageError(
            f"--criterion {shown(criterion)}: no prompt says its scale (there are {', '.join(names)}): give "
            "--scale LOW-HIGH, or the file of a prompt"
        )
    prompt = find_criterion(criterion)
    return prompt.scale, prompt.name


def _sidecar(path: Path) -> _Sidecar | None:
    beside = path.with_name(f"{path.name}.json")
    if not beside.exists():
        return None
    sidecar = json_of(beside, _Sidecar, "not what judge writes beside qrels")
    if not sidecar.scale.levels:
        raise InputError(f"{beside}: $.scale.levels: no level: expected the grades of the scale")
    return sidecar


def _grades(path: Path, scale: Scale | None, problems: list[Problem]) -> dict[str, dict[str, int]]:
    text = read_text(path, problems)
    rows = list[QrelRow]()
    allowed = None if scale is None else {level.grade for level in scale.levels}
    with collected(problems, "wrong_qrels", path):
        rows += parse_qrels(text or "", str(path), allowed)
    rows.sort(key=lambda row: natural_key(row.turn_id))
    return nested((row.turn_id, row.item_id, row.grade) for row in rows)


def _stem(path: Path) -> str:
    """`relevance` of `response_relevance.qrel`."""
    return path.name.partition(".")[0].removeprefix("response_") or path.name


def _told_apart(read: Sequence[grading.ResponseQrels]) -> tuple[grading.ResponseQrels, ...]:
    """The qrels with names of their own: where two are of one criterion, the file is part of the name."""
    names = Counter(qrels.name for qrels in read)
    named = [
        qrels if names[qrels.name] == 1 else msgspec.structs.replace(qrels, name=f"{qrels.name} ({qrels.file})")
        for qrels in read
    ]
    if len({qrels.name for qrels in named}) < len(named):
        raise UsageError("two qrels files have one name and one criterion: rename one")
    return tuple(named)


def evaluate_responses(plan: ResponsesPlan, steps: Steps = quiet) -> ResponsesOutcome:
    """Evaluate, and write the folder if the plan names one."""
    if (plan.folder is None) == (not plan.runs):
        raise UsageError("expected either an output folder of `judge run` or `judge pool`, or response runs (--runs)")
    if plan.runs and not plan.qrels:
        raise UsageError("response runs need grades: give --qrels")
    runs, inputs = runs_of_folder(plan.folder) if plan.folder else runs_of_files(plan.runs)
    files = plan.qrels or qrels_files(Path(str(plan.folder)))
    all_qrels = read_response_qrels(plan, files)
    for qrels in all_qrels:
        if plan.over is not None and plan.over not in grading.overs(qrels):
            raise UsageError(f"--over {plan.over}: nothing says the worst grade of {qrels.file}: give --scale LOW-HIGH")
    topics = None if plan.topics is None else read_topics(plan.topics)
    facts = turn_facts(chain.from_iterable(qrels.grades for qrels in all_qrels), topics)
    measured = stepped("measuring runs", all_qrels, steps)
    criteria = tuple(grading.evaluated_criterion(runs, qrels, plan.over, plan.cluster) for qrels in measured)
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
        replace_folder(plan.out, _files(outcome, steps), "responses.sha256", inputs=inputs)
    return outcome


def _files(outcome: ResponsesOutcome, steps: Steps) -> dict[str, FileContent]:
    files: dict[str, FileContent] = {}
    for table, name in stepped("making tables", TABLES.items(), steps):
        if is_known(outcome.facts, table):
            files |= outcome.table(table).files(name)
    steps(Step("drawing pictures"))
    files["turns.tsv"] = Pieces(lambda: text_pieces(grading.turn_lines(outcome.criteria, outcome.facts)))
    return files | grading.response_pictures(outcome.criteria, outcome.facts)


def _unusual(criteria: Sequence[grading.EvaluatedCriterion]) -> Iterator[str]:
    """Runs that answer other turns, or with other responses, than those of the qrels."""
    for of in criteria:
        answered = sum(len(run.first) for run in of.runs)
        unjudged = sum(run.unjudged for run in of.runs)
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
            turns = sorted(set(chain.from_iterable(run.outside for run in strangers)), key=natural_key)
            yield (
                f"{of.qrels.file}: has no grade in {count(len(turns), 'turn')} that {count(len(strangers), 'run')} "
                f"answered ({examples(turns, 5)}); they count nowhere"
            )


def _unknown(facts: Mapping[str, TurnFacts], topics: Sequence[Topic] | None) -> Iterator[str]:
    turns = turns_by_id(topics or ())
    unknown = [turn_id for turn_id in facts if turn_id not in turns]
    if topics is not None and len(unknown) == len(facts):
        raise UsageError(f"--topics: has no turn of the qrels, such as {unknown[0]}")
    if topics is not None and unknown:
        yield (
            f"the topics have {len(facts) - len(unknown)} of the {count(len(facts), 'turn')} of the qrels, not "
            f"{examples(unknown, 5)}"
        )


def _below_zero(all_qrels: Sequence[grading.ResponseQrels]) -> Iterator[str]:
    """Grades below 0 of no known scale: some tracks write that nobody could judge in this way."""
    for qrels in all_qrels:
        below = sum(grade < 0 for graded in qrels.grades.values() for grade in graded.values())
        if below and qrels.scale is None:
            yield f"{qrels.file}: {count(below, 'grade')} below 0, which count as they are; --scale refuses such grades"
