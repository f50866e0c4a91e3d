"""Reads grades as others publish them: one function for each source, listed in the table at the foot."""

import contextlib
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError, UsageError
from judge.gold.draft import Draft, ImportOptions, SourceContent, complete, read_bank
from judge.gold.plan import PlanRow
from judge.gold.rag2024 import labels_as_gold
from judge.gold.rows import ADJUDICATED, GoldRow, text_digest
from judge.io.files import numbered
from judge.io.ids import groups_of, natural_key, parse_qrels
from judge.io.tabular import TableRow, read_table, read_text
from judge.io.text import count, disarmed, shown, storable
from judge.pool.build import Candidate, LengthRule, build_pool, evidence_of
from judge.pool.records import Pool
from judge.records import Problem, file_problem
from judge.runs.document import open_document
from judge.runs.records import Provenance
from judge.runs.tokens import TokenCounter

STORE_SCHEMA = "judge-labels/1"
"""What a store says of itself."""
ADJUDICATED_SCHEMA = "judge-labels/2"
"""What one says that has adjudications too: whoever does not know them must not take its labels for all."""
STORE_SCHEMAS = (STORE_SCHEMA, ADJUDICATED_SCHEMA)
_STORED = ("turn_id", "topic_id", "criterion", "grade", "assessor", "response_id", "text_sha256", "run_id", "made",
           "inclusion_probability", "stratum", "comment")  # fmt: skip
_SELECT = "SELECT item, {} FROM {} ORDER BY item, criterion, assessor"
_TASKS = (
    "SELECT task.item, task.criterion, assessor.name FROM task JOIN assessor USING (assessor) ORDER BY assessor, place"
)

_Task = tuple[int, str, str]
"""Item, criterion and assessor."""


class StoredLabels(NamedTuple):
    """What the store of a desk holds: labels with their items and comments."""

    labels: list[dict[str, Any]]
    """Those that count."""
    tasks: list[_Task]
    adjudications: list[dict[str, Any]]
    """Those that count."""
    disputes: int
    """How many labels were dealt for adjudication."""


def desk_content(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The store of a desk: the last label of each assessor for each response and criterion.

    Each assessor labels in a random order of their own. So what somebody has labeled before the work is finished is a
    random sample of what they were dealt, and its inclusion probability is known. An adjudication is one more row of
    its response, with the same probability.

    A label "unable to judge" is no grade, and is left out. Where labels are still to be given, the probability of the
    plan is multiplied by that with which the response has come up so far.
    """
    if options.plan is not None or "inclusion_probability" in options.constants:
        raise UsageError(
            "--plan and --inclusion: without effect here: the desk's file knows how its responses were drawn"
        )
    content = SourceContent()
    for path in paths:
        if (stored := stored_labels(path, content.problems)) is not None:
            _add_labels(str(path), stored, content)
    return content


def stored_labels(path: Path, problems: list[Problem]) -> StoredLabels | None:
    """What the store of a desk holds; None, and a problem, if the file is no such store."""
    # SQLite would make a file that is not there.
    if not path.is_file():
        problems.append(file_problem("unreadable", path, "no such store of labels"))
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
            schema = store.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
            if schema is None or schema[0] not in STORE_SCHEMAS:
                expected = " or ".join(STORE_SCHEMAS)
                message = f"a store of {shown(schema and schema[0])}, this version of judge reads {expected}"
                problems.append(file_problem("wrong_schema", path, message))
                return None
            rows = store.execute(_SELECT.format(", ".join(_STORED), "labels")).fetchall()
            tasks: list[_Task] = store.execute(_TASKS).fetchall()
            rulings: list[tuple[Any, ...]] = []
            disputes = 0
            if schema == (ADJUDICATED_SCHEMA,):
                rulings = store.execute(_SELECT.format(", ".join(_STORED), "adjudications")).fetchall()
                (disputes,) = store.execute("SELECT count(*) FROM dispute").fetchone()
    # A ValueError is of a text that is no UTF-8, be it of a message.
    except (sqlite3.Error, ValueError) as error:
        message = f"not a store of labels as `judge serve assess` writes it: {error}"
        problems.append(file_problem("unreadable", path, message))
        return None
    names = ("item", *_STORED)
    return StoredLabels(
        labels=[dict(zip(names, row, strict=True)) for row in rows],
        tasks=tasks,
        adjudications=[dict(zip(names, row, strict=True)) for row in rulings],
        disputes=disputes,
    )


def _add_labels(file: str, stored: StoredLabels, content: SourceContent) -> None:
    given = {(label["item"], label["criterion"]) for label in stored.labels}
    # Labels may have been taken back since, and then nothing says how the item came up.
    rulings = [
        {**label, "made": ADJUDICATED} for label in stored.adjudications if (label["item"], label["criterion"]) in given
    ]
    labels = [*stored.labels, *rulings]
    tasks = stored.tasks
    labeled = {(label["item"], label["criterion"], label["assessor"]) for label in stored.labels}
    reached = come_up(tasks, labeled)
    unable = 0
    for label in labels:
        if label["grade"] is None:
            unable += 1
            continue
        item = label["item"]
        fields = {name: label[name] for name in _STORED}
        # Without a comment the store has an empty one.
        fields["comment"] = fields["comment"] or None
        # What is no number in a damaged store is reported as any other field of a gold row.
        if isinstance(probability := fields["inclusion_probability"], float):
            fields["inclusion_probability"] = probability * reached.get((item, fields["criterion"]), 1.0)
        content.drafts.append(Draft(file, f"item {item}, {fields['criterion']}, {fields['assessor']}", fields))
    if unable:
        content.notes.append(f'{file}: {count(unable, "label")} "unable to judge" left out: no grade')
    if comments := sum(bool(label["comment"]) for label in labels if label["grade"] is None):
        content.notes.append(f"{file}: {count(comments, 'comment')} on labels that are no grade: only the store has it")
    if stored.disputes:
        content.notes.append(_adjudicated(file, stored))
    if alone := len(stored.adjudications) - len(rulings):
        content.notes.append(f"{file}: {count(alone, 'adjudication')} left out: all labels of the response taken back")
    if left := len(tasks) - len(labeled):
        content.notes.append(
            f"{file}: {count(left, 'task')} without a label: each inclusion probability is the plan's times the share "
            "of labels given so far, which holds if nobody stopped because of what they were shown"
        )
    if passed := _passed_over(tasks, labeled):
        content.notes.append(
            f"{file}: {count(passed, 'task')} left for later before others that have a label: that choice is not "
            "random, and no probability makes up for it"
        )


def _adjudicated(file: str, stored: StoredLabels) -> str:
    """How many of the responses on which assessors differ have an adjudicated grade, in words."""
    graded = sum(label["grade"] is not None for label in stored.adjudications)
    dealt = count(stored.disputes, "label")
    rest = "" if graded == stored.disputes else ", and the others keep what the assessors gave"
    return f"{file}: of {dealt} on which assessors differ and that were dealt anew, {graded} adjudicated{rest}"


def come_up(tasks: Sequence[_Task], labeled: Collection[_Task]) -> Mapping[tuple[int, str], float]:
    """The probability with which an item has come up under a criterion: that some assessor it was dealt to labeled it.

    Orders are random and do not depend on each other. An assessor who has labeled k of m has labeled each of the m with
    probability k / m. Of two assessors, the item has come up with probability 1 - (1 - k / m)(1 - l / n).
    """
    dealt = Counter((assessor, criterion) for _, criterion, assessor in tasks)
    done = Counter((assessor, criterion) for _, criterion, assessor in labeled)
    shares = {key: done[key] / n for key, n in dealt.items()}
    misses = groups_of(((item, criterion), 1 - shares[assessor, criterion]) for item, criterion, assessor in tasks)
    return {named: 1 - math.prod(chances) for named, chances in misses.items()}


def _passed_over(tasks: Sequence[_Task], labeled: Collection[_Task]) -> int:
    """How many tasks have no label though a later one of their assessor has one."""
    passed = 0
    later: set[str] = set()
    for task in reversed(tasks):
        if task in labeled:
            later.add(task[2])
        else:
            passed += task[2] in later
    return passed


FIELDS = (*GoldRow.__struct_fields__, "text")
"""What a column of a table may hold: a field of a gold row, or the response's text, of which the digest is kept."""
_NUMBERS = ("grade", "inclusion_probability")
CAST_CRITERIA = ("relevance", "naturalness", "conciseness")
BEGIN_GRADES = {"Fully attributable": 1, "Not fully attributable": 0, "Generic": None}
"""BEGIN's labels as levels of `prompts/groundedness/yes_no.md`; a generic response makes no claim to ground."""
_BEGIN_COLUMNS = ("model_name", "data_source", "knowledge", "response", "begin_label")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


class Imported(msgspec.Struct, frozen=True):
    """Gold that was imported from a source."""

    rows: tuple[GoldRow, ...]
    pool: Pool | None
    notes: tuple[str, ...]


def import_gold(
    source: str,
    paths: Sequence[Path],
    options: ImportOptions,
    *,
    with_pool: bool = False,
    read: "GoldSource | None" = None,
) -> Imported:
    """Read the files of a source into gold; a pool of the responses needs a tokenizer.

    `source` is a key of SOURCES, or the name of what `read` reads. An InputError if files, rows or ids have problems;
    every problem is listed. A UsageError if the source has no texts to pool, or an option does not fit it.
    """
    content = (read or SOURCES[source])(paths, options)
    rows = complete(content, options)
    if content.problems:
        problems = sorted(content.problems, key=lambda problem: (natural_key(problem.file), natural_key(problem.path)))
        raise InputError(f"not usable as {source}: {count(len(problems), 'problem')}", problems)
    if not rows:
        raise InputError(f"{', '.join(map(str, paths))}: no grade to import; {'; '.join(content.notes) or 'no row'}")
    if content.unstated and any(draft.values.get("made") is None for draft in content.drafts):
        content.notes.append("taken as given blind; --made says otherwise")
    if options.plan is not None and (lacking := _lacking(rows, options.plan)):
        content.notes.append(lacking)
    pool = None
    if with_pool:
        if not content.candidates:
            raise UsageError(f"{source} has no texts to make a pool of")
        pool = build_pool(content.candidates, evidence_of(), LengthRule(TokenCounter()))
    return Imported(rows, pool, tuple(content.notes))


def _lacking(rows: Sequence[GoldRow], plan: Mapping[tuple[str, str], PlanRow]) -> str | None:
    """What to know of a plan that is not finished; None where every planned response has its grades."""
    names = {row.criterion for row in rows}
    # A response under two criteria counts as two.
    planned: set[tuple[str, str | None, str]] = set()
    for (turn_id, response_id), row in plan.items():
        planned.update((turn_id, response_id, name) for name in row.criteria if name in names)
    lacking = len(planned - {(row.turn_id, row.response_id, row.criterion) for row in rows})
    if not lacking:
        return None
    return (
        f"{lacking} of {count(len(planned), 'planned response')} without a grade: inclusion probabilities are those "
        "of the finished plan, so means are right only if it is chance which ones lack one"
    )


def _qrels(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """TREC qrels of responses: `turn_id 0 response_id grade`."""
    content = SourceContent(defaults={"assessor": "qrels"}, unstated=True)
    for path in paths:
        text = read_text(path, content.problems)
        if text is None:
            continue
        try:
            rows = parse_qrels(text, str(path))
        except InputError as error:
            content.problems += error.problems
            continue
        lines = (number for number, line in numbered(text, str(path)) if line.strip(" \t\r"))
        content.drafts += (
            Draft(str(path), f"line {line}", {"turn_id": row.turn_id, "response_id": row.item_id, "grade": row.grade})
            for line, row in zip(lines, rows, strict=True)
        )
    return content


def _cast_regin(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The folder `response_evaluation` of CAsT-ReGIn: crowd grades, one for each response and criterion.

    A response's text is taken from the bank, as in the pool; the judgments hold a different copy of seven texts.
    """
    wanted = options.constants.get("criterion")
    if wanted not in (None, *CAST_CRITERIA):
        raise UsageError(f"CAsT-ReGIn has no grades of {shown(wanted)}, only of {', '.join(CAST_CRITERIA)}")
    content = SourceContent(defaults={"assessor": "crowd"})
    for folder in paths:
        beside = (folder / "qrels/response_judgments.json", folder / "response_judgments.json")
        path = folder if folder.is_file() else next((file for file in beside if file.is_file()), beside[0])
        document = open_document(path)
        errors = [problem for problem in document.problems if problem.severity == "error"]
        if not errors and not isinstance(document.value, dict):
            errors.append(file_problem("wrong_type", path, "expected an object of turns", "$"))
        try:
            bank = options.bank if options.bank is not None else _bank_near(path)
        except InputError as error:
            errors += error.problems
        content.problems += errors
        if not errors:
            for turn_id, turn in document.value.items():
                _cast_turn(content, str(path), turn_id, turn, bank, [wanted] if wanted else CAST_CRITERIA)
    return content


def _bank_near(judgments: Path) -> Mapping[str, str]:
    near = (judgments.parent.parent / "response_bank.json", judgments.parent / "response_bank.json")
    return read_bank(next((path for path in near if path.is_file()), near[0]))


def _cast_turn(
    content: SourceContent, file: str, turn_id: str, turn: Any, bank: Mapping[str, str], criteria: Sequence[str]
) -> None:
    responses = turn.get("Responses") if isinstance(turn, dict) else None
    if not isinstance(responses, list):
        message = "expected an object with a list `Responses`"
        content.problems.append(file_problem("wrong_type", file, message, f"$[{shown(turn_id)}]"))
        return
    for place, response in enumerate(responses):
        draft = Draft(file, f"$[{shown(turn_id)}].Responses[{place}]", {"turn_id": turn_id})
        # Label keys come in six orders: taken by name, never by place.
        item_id = response.get("Response ID") if isinstance(response, dict) else None
        if not isinstance(item_id, str) or not storable(turn_id):
            content.problems.append(draft.problem("wrong_type", "", "expected an object with a `Response ID`"))
        elif item_id not in bank:
            content.problems.append(draft.problem("not_in_bank", "", f"{shown(item_id)} has no text in the bank"))
        else:
            text = bank[item_id]
            content.candidates.append(
                Candidate(
                    run_id="cast-regin", turn_id=turn_id, rank=place + 1, text=text, used=(), provenance_rule="used"
                )
            )
            fields = {"turn_id": turn_id, "response_id": item_id, "text": text}
            content.drafts += (
                Draft(file, draft.place, {**fields, "criterion": name, "grade": response.get(name.title())})
                for name in criteria
            )


def _csv(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """A table with a header: columns are named after the fields of a gold row, or mapped to them."""
    unknown = [field for field in options.columns if field not in FIELDS]
    if unknown:
        raise UsageError(f"{', '.join(map(shown, unknown))} is no field: expected one of {', '.join(FIELDS)}")
    content = SourceContent(gaps=True, unstated=True)
    for path in paths:
        needed = tuple(options.columns.values())
        header, rows = read_table(path, content.problems, needed=needed, only_once=FIELDS)
        columns = {field: field for field in FIELDS if field in header} | dict(options.columns)
        if rows and (message := _lacking_columns({*columns, *options.constants}, header)):
            content.problems.append(file_problem("missing_column", path, message))
            continue
        if ignored := [name for name in header if name not in columns.values()]:
            content.notes.append(f"{path}: columns not used: {', '.join(map(shown, ignored))}")
        # An empty cell in the column of grades is a response that was not labeled, unless the user gives the grade.
        grades = None if "grade" in options.constants else columns.get("grade")
        labeled = [row for row in rows if grades is None or row.cells[grades]]
        if len(labeled) < len(rows):
            content.notes.append(f"{path}: {count(len(rows) - len(labeled), 'row')} without a grade: not labeled")
        for row in labeled:
            cells = {
                field: row.number(name) if field in _NUMBERS else row.cells[name] for field, name in columns.items()
            }
            if comment := cells.get("comment"):
                cells["comment"] = _as_written(comment)
            content.drafts.append(Draft(str(path), row.place, typed(cells)))
    return content


def _as_written(cell: str) -> str:
    """A comment without the sign by which a sheet keeps it from being a formula."""
    return cell[1:].strip() if cell[:1] == "\\" and disarmed(cell[1:]) == cell else cell


def _lacking_columns(fields: Collection[str], header: Sequence[str]) -> str:
    """Which fields neither a column nor a constant gives, and what reads such a table; empty where none is lacking."""
    lacking = [field for field in ("turn_id", "criterion", "grade", "assessor") if field not in fields]
    lacking += [] if {"response_id", "text_sha256", "text"} & {*fields} else ["response_id"]
    if not lacking:
        return ""
    message = f"no column of {', '.join(lacking)}; found {', '.join(map(shown, header[:20]))}"
    if len(header) == 1 and len(header[0].split()) == 4:
        return f"{message}: `judge gold import qrels` reads qrels"
    alike = {name.casefold(): name for name in header}
    if named := [f"--column {field}={alike[field]}" for field in lacking if field in alike]:
        return f"{message}: names are told apart by case, so give {' '.join(named)}"
    return (
        f"{message}: --column FIELD=COLUMN names a column, --constant FIELD=VALUE a value; tables of workers' labels "
        "and exports of their platforms are read by `judge gold import crowd` and `judge crowd`"
    )


def _begin(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """BEGIN (Dziri et al. 2022): is a response attributable to its knowledge? Rows with one knowledge share a topic."""
    content = SourceContent(defaults={"criterion": "groundedness", "assessor": "begin"})
    topics: dict[tuple[str, str], str] = {}
    turns: dict[str, int] = {}
    generic = 0
    for path in paths:
        for row in read_table(path, content.problems, needed=_BEGIN_COLUMNS, quoted=False)[1]:
            problems = list(_begin_problems(row))
            if problems:
                content.problems += (file_problem(code, path, m, row.place) for code, m in problems)
                continue
            model, source, knowledge, response, label = (row.cells[name] for name in _BEGIN_COLUMNS)
            group = source, text_digest(knowledge)
            if group not in topics:
                topics[group] = f"{source}-{1 + sum(earlier == source for earlier, _ in topics):04d}"
            topic = topics[group]
            # Numbered before rows are left out, so that no option changes an id.
            turns[topic] = turns.get(topic, 0) + 1
            grade = BEGIN_GRADES[label]
            generic += grade is None
            if grade is None and not options.generic_as_zero:
                continue
            turn_id = f"{topic}_{turns[topic]}"
            evidence = (Provenance(topic, None, True, knowledge),)
            content.candidates.append(
                Candidate(run_id=model, turn_id=turn_id, rank=1, text=response, used=evidence, provenance_rule="used")
            )
            values = {"turn_id": turn_id, "run_id": model, "text": response, "grade": grade or 0}
            content.drafts.append(Draft(str(path), row.place, values))
    if generic:
        treatment = "taken as grade 0" if options.generic_as_zero else "left out"
        content.notes.append(f"{generic} generic responses are {treatment}")
    return content


def _begin_problems(row: TableRow) -> Iterator[tuple[str, str]]:
    for name in _BEGIN_COLUMNS:
        if not row.cells[name]:
            yield "empty_cell", f"{name} is empty"
        elif not storable(row.cells[name]):
            yield "wrong_value", f"{name} holds a NUL"
    label = row.cells["begin_label"]
    if label and label not in BEGIN_GRADES:
        yield "wrong_value", f"begin_label {shown(label)}: expected one of {', '.join(BEGIN_GRADES)}"


def typed(cells: Mapping[str, str]) -> dict[str, Any]:
    """Convert cells to values of a gold row; a cell that is no number stays text, which the check of rows reports."""
    values: dict[str, Any] = {field: cell for field, cell in cells.items() if cell}
    if _INTEGER.fullmatch(grade := values.get("grade", "")):
        values["grade"] = int(grade)
    if (probability := values.get("inclusion_probability")) is not None:
        with contextlib.suppress(ValueError):
            values["inclusion_probability"] = float(probability)
    return values


GoldSource = Callable[[Sequence[Path], ImportOptions], SourceContent]

SOURCES: dict[str, GoldSource] = {
    "begin": _begin,
    "cast-regin": _cast_regin,
    "csv": _csv,
    "desk": desk_content,
    "qrels": _qrels,
    "rag2024": labels_as_gold,
}
