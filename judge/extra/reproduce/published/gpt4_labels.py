"""The labels that GPT-4 gave the responses of iKAT 2023: a file a criterion, and what Table 7 does not show."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from judge.errors import InputError
from judge.extra.reproduce.published import ReleasedFile
from judge.io.files import MAX_PROBLEMS, stopped
from judge.io.ids import cluster_of, topic_of
from judge.io.table import Cell, Table, p_cell
from judge.io.tabular import TableRow, read_table
from judge.io.text import count, decimals, printable_id, shown
from judge.records import Estimate, Problem, Record
from judge.results.tables import paired, tie_letters
from judge.stats.means import clopper_pearson, mean_interval, wilson

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

    A released groundedness label says whether the response has information that is not in its passages, so the grade is
    1 less the label. An InputError if a file is no table of labels; every problem of every file is listed.
    """
    problems: list[Problem] = []
    labels = {each.name: _read_labels(paths[each.name], each, problems) for each in CRITERIA if each.name in paths}
    if problems:
        raise InputError(f"the labels cannot be used: {count(len(problems), 'problem')}", problems)
    return labels


def _read_labels(path: Path, criterion: LabeledCriterion, problems: list[Problem]) -> dict[str, RunLabels]:
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
        problem = _row_problem(row, name, criterion, runs, lines)
        if problem is not None:
            turn_id = printable_id(row.cells["turn_id"]) or None
            problems.append(Problem(problem[0], "error", str(path), turn_id, row.place, problem[1]))
    return runs


def _row_problem(
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


def spelled(labels: Mapping[str, Mapping[str, RunLabels]], printed: Sequence[str]) -> dict[str, str]:
    """How each run is named, by its id in lower case: as it is printed, else as the first file spells it."""
    names = {run_id.lower(): run_id for run_id in printed}
    for runs in labels.values():
        for key, run in runs.items():
            names.setdefault(key, run.run_id)
    return names


SEED = 2023
"""Of the signs that are drawn, where 2^T ways are too many to take all."""
FLIPS = 100_000
"""How many are drawn: ten times the usual number, since one adjusted p-value of the release is close to ALPHA."""
CriterionLabels = Mapping[str, Mapping[str, RunLabels]]
"""Criterion to run id in lower case to its grades."""


class _Tested:
    """Every pair of runs under one criterion, best mean first."""

    def __init__(self, runs: Mapping[str, RunLabels], criterion: LabeledCriterion) -> None:
        means = {key: _mean(run, criterion).value for key, run in runs.items()}
        self.keys = sorted(runs, key=lambda key: (-(means[key] or 0.0), key))
        grades = {key: runs[key].grades for key in self.keys}
        self.pairs = paired(criterion.name, grades, "topic", np.random.default_rng(SEED), flips=FLIPS)
        tested = bool(self.pairs) and all(pair.p is not None for pair in self.pairs)
        self.letters = tie_letters(self.keys, self.pairs) if tested else dict.fromkeys(self.keys, "")


def graded(labels: CriterionLabels, criterion: LabeledCriterion, run_id: str) -> Estimate | None:
    """The mean grade of a run with its interval over topics; None without a label of the run."""
    run = labels[criterion.name].get(run_id.lower())
    return None if run is None else _mean(run, criterion)


def beyond(labels: CriterionLabels, names: Mapping[str, str]) -> tuple[Table[Any], ...]:
    """The tables that the publication does not have."""
    tests = {each.name: _Tested(labels[each.name], each) for each in CRITERIA if each.name in labels}
    return (
        _means(labels, names, tests),
        _units(labels["groundedness"], names, tests["groundedness"].keys),
        _pairs(names, tests),
    )


def _mean(run: RunLabels, criterion: LabeledCriterion, unit: Callable[[str], str] = topic_of) -> Estimate:
    turns = list(run.grades)
    return mean_interval(list(run.grades.values()), list(map(unit, turns)), bounds=criterion.bounds)


def _means(labels: CriterionLabels, names: Mapping[str, str], tests: Mapping[str, _Tested]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "n: turns with a grade. over_topics: the interval whose unit is the topic (dialogue), which is what was "
        "sampled. over_turns: as if turns were independent. letters: runs that share one are not told apart (max-T)."
    ]
    for criterion in CRITERIA:
        if criterion.name not in tests:
            continue
        runs = labels[criterion.name]
        for key, letters in tests[criterion.name].letters.items():
            run = runs[key]
            over_topics = _mean(run, criterion)
            lines.append(
                (criterion.name, names[key], len(run.grades), over_topics, _mean(run, criterion, str), letters)
            )
            notes += _degenerate(run, criterion, names[key])
            if run.unable:
                notes.append(
                    f"{names[key]}, {criterion.name}: {count(len(run.unable), 'label')} of -1 (unable to judge) left "
                    f"out; as a grade it would make the mean {_with_unable(run)}"
                )
    columns = ("criterion", "run", "n", "over_topics", "over_turns", "letters")
    return Table(lines, columns, "Means", notes)


def _degenerate(run: RunLabels, criterion: LabeledCriterion, name: str) -> list[str]:
    if not run.grades or len(set(run.grades.values())) > 1:
        return []
    n, grade = len(run.grades), next(iter(run.grades.values()))
    low = decimals(clopper_pearson(n, n)[0], 4)
    return [
        f"{name}, {criterion.name}: all {n} grades are {grade}, so their spread says nothing and there is no interval; "
        f"the exact interval of the share of {grade} is [{low}, 1] if turns were independent"
    ]


def _with_unable(run: RunLabels) -> str:
    n = len(run.grades) + len(run.unable)
    return decimals((sum(run.grades.values()) - len(run.unable)) / n, 4)


def _units(runs: Mapping[str, RunLabels], names: Mapping[str, str], keys: Sequence[str]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for key in keys:
        grades, criterion = runs[key].grades, CRITERIA[0]
        n, good = len(grades), sum(grades.values())
        if not n:
            continue
        topics = _mean(runs[key], criterion)
        themes = _mean(runs[key], criterion, lambda turn_id: cluster_of(topic_of(turn_id), "theme"))
        exact = Estimate(good / n, *clopper_pearson(good, n), n, topics.topics)
        score = Estimate(good / n, *wilson(good, n), n, topics.topics)
        lines += [
            (names[key], f"{good}/{n}", "Clopper-Pearson, turns", exact),
            (names[key], f"{good}/{n}", "Wilson, turns", score),
            (names[key], f"{good}/{n}", "t, topics", topics),
            (names[key], f"{good}/{n}", "t, themes", themes),
        ]
    notes = (
        "Clopper-Pearson and Wilson take each turn as independent of the others of its dialogue. Table 7 gives no "
        "interval.",
    )
    return Table(lines, ("run", "grounded", "interval", "share"), "Intervals", notes)


def _pairs(names: Mapping[str, str], tests: Mapping[str, _Tested]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = [
        (criterion, names[pair.run_a], names[pair.run_b], pair.difference, p_cell(pair.p), p_cell(pair.p_adjusted))
        for criterion, tested in tests.items()
        for pair in tested.pairs
    ]
    columns = ("criterion", "a", "b", "a_less_b", "p", "p_max_t")
    notes = (
        "p, p_max_t: signs of topics flipped, difference over its standard error; alone, and for all pairs of the "
        "criterion (step-down max-T).",
    )
    return Table(lines, columns, "Pairs", notes)
