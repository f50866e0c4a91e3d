"""The labels that GPT-4 gave the responses of iKAT 2023, as they were released: one file for each criterion."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.errors import InputError
from judge.extra.reproduce.published.released import ReleasedFile
from judge.io.cells import count
from judge.io.limits import MAX_PROBLEMS, stopped
from judge.io.safe import printable_id, shown
from judge.io.tabular import TableRow, read_table
from judge.records import Problem, Record

UNABLE = -1
"""The label of a response that GPT-4 was unable to judge."""
MOST_RUNS = 100
"""The most runs of a file, since every two are compared; the release has 5."""
_ORIGIN = "the repository irlabamsterdam/iKAT, folder 2023/evaluation/automatic_eval_results/"


class LabeledCriterion(NamedTuple):
    """A criterion of the release."""

    name: str
    file: str
    spelling: str
    """The start of its file's name as a regular expression."""
    grades: tuple[int, ...]
    unable: bool
    """Whether UNABLE is a label."""
    needed: bool
    inverted: bool = False
    """Whether label 1 is the bad end, as in the released groundedness labels."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest grade."""
        return float(self.grades[0]), float(self.grades[-1])


CRITERIA = (
    LabeledCriterion("groundedness", "groundedness_judgement-gpt4.txt", "groundedness", (0, 1), False, True, True),
    LabeledCriterion("naturalness", "naturallness_judgement-gpt4.txt", "naturall?ness", (0, 1, 2, 3, 4), False, True),
    LabeledCriterion("relevance", "relevance_judgement-gpt4.txt", "relevance", (0, 1, 2, 3), True, False),
    LabeledCriterion("completeness", "completeness_judgement-gpt4.txt", "completeness", (0, 1, 2, 3), True, False),
)
"""The released name of the naturalness file has its double l."""

LABEL_FILES = tuple(
    ReleasedFile(each.name, each.file, rf"{each.spelling}_judge?ment-gpt4\.(txt|tsv)(\.gz)?", _ORIGIN, each.needed)
    for each in CRITERIA
)


class RunLabels(Record, frozen=True):
    """The grades of one run under one criterion; higher is better."""

    run_id: str
    """As the file spells it."""
    grades: dict[str, int]
    """Turn to grade, in the order of the file."""
    unable: tuple[str, ...]
    """Turns that GPT-4 was unable to judge."""


def read_gpt4_labels(paths: Mapping[str, Path]) -> dict[str, dict[str, RunLabels]]:
    """The grades of every run, by criterion and by run id in lower case, since the files spell run ids differently.

    A released groundedness label says whether the response has information that is not in its passages, so the grade
    is 1 less the label.

    Args:
        paths: The files, by criterion.

    Raises:
        InputError: A file is no table of labels; every problem of every file is listed.
    """
    problems: list[Problem] = []
    labels = {each.name: _read(paths[each.name], each, problems) for each in CRITERIA if each.name in paths}
    if problems:
        raise InputError(f"the labels cannot be used: {count(len(problems), 'problem')}", problems)
    return labels


def _read(path: Path, criterion: LabeledCriterion, problems: list[Problem]) -> dict[str, RunLabels]:
    before = len(problems)
    header, rows = read_table(path, problems, needed=("turn_id", "run_id"), quoted=False)
    if len(problems) > before:
        return {}
    name = next((name for name in ("gpt4-label", "gpt4-score") if name in header), None)
    if name is None:
        columns = ", ".join(map(shown, header[:20]))
        message = f"no column gpt4-label or gpt4-score; found {columns}"
        problems.append(Problem("missing_column", "error", str(path), None, "line 1", message))
        return {}
    runs: dict[str, RunLabels] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in rows:
        if len(problems) - before == MAX_PROBLEMS:
            problems.append(stopped(str(path), row.line))
            break
        problem = _problem(row, name, criterion, runs, lines)
        if problem is not None:
            turn_id = printable_id(row.cells["turn_id"]) or None
            problems.append(Problem(problem[0], "error", str(path), turn_id, row.place, problem[1]))
    return runs


def _problem(
    row: TableRow,
    column: str,
    criterion: LabeledCriterion,
    runs: dict[str, RunLabels],
    lines: dict[tuple[str, str], int],
) -> tuple[str, str] | None:
    """Add a row to its run; code and message of what keeps it out."""
    turn_id, run_id, text = (row.cells[name] for name in ("turn_id", "run_id", column))
    if not turn_id or not run_id:
        return "missing_id", f"no {'turn_id' if not turn_id else 'run_id'}"
    key = run_id.lower()
    if key not in runs and len(runs) == MOST_RUNS:
        return "too_many_runs", f"run {shown(run_id)}: expected at most {MOST_RUNS} runs"
    run = runs.setdefault(key, RunLabels(run_id, {}, ()))
    if run.run_id != run_id:
        return "ambiguous_run", f"run {shown(run_id)} is {shown(run.run_id)} above: expected one spelling in a file"
    first = lines.setdefault((key, turn_id), row.line)
    if first != row.line:
        return "duplicate_row", f"run {shown(run_id)} already has a label for this turn on {row.unit} {first}"
    allowed = {str(grade): grade for grade in (*criterion.grades, *(UNABLE,) * criterion.unable)}
    if text not in allowed:
        return "off_scale", f"label {shown(text)}: expected one of {', '.join(allowed)}"
    grade = allowed[text]
    if grade == UNABLE:
        runs[key] = RunLabels(run_id, run.grades, (*run.unable, turn_id))
    else:
        run.grades[turn_id] = criterion.grades[-1] - grade if criterion.inverted else grade
    return None


def label_of(grade: int, criterion: LabeledCriterion) -> int:
    """The label that was released for a grade."""
    return criterion.grades[-1] - grade if criterion.inverted else grade


def spelled(labels: Mapping[str, Mapping[str, RunLabels]], printed: Sequence[str]) -> dict[str, str]:
    """How each run is named, by its id in lower case: as it is printed, else as the first file spells it."""
    names = {run_id.lower(): run_id for run_id in printed}
    for runs in labels.values():
        for key, run in runs.items():
            names.setdefault(key, run.run_id)
    return names
