"""iKAT 2023: Table 7 (responses judged by GPT-4) and Table 1 (the test collection) from the released files.

The labels of GPT-4 are a file a criterion; what they hold beyond Table 7 is here too.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from judge.errors import refuse
from judge.extra.reproduce.published import (
    PublishedNumber,
    ReleasedFile,
    Reproduction,
    beside_ours,
    counted,
    find_released,
    left_out,
)
from judge.io.files import MAX_PROBLEMS, stopped, text_of
from judge.io.ids import QrelRow, cluster_of, parse_qrels, topic_of
from judge.io.table import Cell, Table, p_cell
from judge.io.tabular import TableRow, read_table
from judge.io.text import count, decimals, printable_id, shown
from judge.records import Estimate, Problem, Record, file_problem
from judge.results.rows import RunDifference
from judge.results.tables import paired, tie_letters
from judge.runs.topics import read_topics
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
    ReleasedFile(each.name, each.file, _ORIGIN, rf"{each.spelling}_judge?ment-gpt4\.(txt|tsv)(\.gz)?", each.needed)
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
    refuse(problems, f"the labels cannot be used: {count(len(problems), 'problem')}")
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
        problems.append(file_problem("missing_column", path, message, "line 1"))
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


def graded(labels: CriterionLabels, criterion: LabeledCriterion, run_id: str) -> Estimate | None:
    """The mean grade of a run with its interval over topics; None without a label of the run."""
    run = labels[criterion.name].get(run_id.lower())
    return None if run is None else _mean(run, criterion)


def beyond(labels: CriterionLabels, names: Mapping[str, str]) -> tuple[Table[Any], ...]:
    """The tables that the publication does not have."""
    ranked = {each.name: _best_first(labels[each.name], each) for each in CRITERIA if each.name in labels}
    pairs: dict[str, list[RunDifference]] = {}
    for name, runs in ranked.items():
        grades = {key: run.grades for key, run in runs.items()}
        pairs[name] = paired(name, grades, "topic", np.random.default_rng(SEED), flips=FLIPS)
    return _means(ranked, names, pairs), _units(ranked["groundedness"], names), _pairs(names, pairs)


def _best_first(runs: Mapping[str, RunLabels], criterion: LabeledCriterion) -> dict[str, RunLabels]:
    means = {key: _mean(run, criterion).value or 0.0 for key, run in runs.items()}
    return {key: runs[key] for key in sorted(runs, key=lambda key: (-means[key], key))}


def _mean(run: RunLabels, criterion: LabeledCriterion, unit: Callable[[str], str] = topic_of) -> Estimate:
    turns = list(run.grades)
    return mean_interval(list(run.grades.values()), list(map(unit, turns)), bounds=criterion.bounds)


def _means(
    ranked: CriterionLabels, names: Mapping[str, str], pairs: Mapping[str, Sequence[RunDifference]]
) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "n: turns with a grade. over_topics: the interval whose unit is the topic (dialogue), which is what was "
        "sampled. over_turns: as if turns were independent. letters: runs that share one are not told apart (max-T)."
    ]
    for criterion in CRITERIA:
        if criterion.name not in ranked:
            continue
        runs, compared = ranked[criterion.name], pairs[criterion.name]
        tested = compared and all(pair.p is not None for pair in compared)
        letters = tie_letters([*runs], compared) if tested else {}
        for key, run in runs.items():
            means = _mean(run, criterion), _mean(run, criterion, str)
            lines.append((criterion.name, names[key], len(run.grades), *means, letters.get(key, "")))
            notes += _degenerate(run, criterion, names[key])
            if run.unable:
                n = len(run.grades) + len(run.unable)
                mean = decimals((sum(run.grades.values()) - len(run.unable)) / n, 4)
                notes.append(
                    f"{names[key]}, {criterion.name}: {count(len(run.unable), 'label')} of -1 (unable to judge) left "
                    f"out; as a grade it would make the mean {mean}"
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


def _units(runs: Mapping[str, RunLabels], names: Mapping[str, str]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for key, run in runs.items():
        grades, criterion = run.grades, CRITERIA[0]
        n, good = len(grades), sum(grades.values())
        if not n:
            continue
        topics = _mean(run, criterion)
        themes = _mean(run, criterion, lambda turn_id: cluster_of(topic_of(turn_id), "theme"))
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


def _pairs(names: Mapping[str, str], pairs: Mapping[str, Sequence[RunDifference]]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = [
        (criterion, names[pair.run_a], names[pair.run_b], pair.difference, p_cell(pair.p), p_cell(pair.p_adjusted))
        for criterion, compared in pairs.items()
        for pair in compared
    ]
    columns = ("criterion", "a", "b", "a_less_b", "p", "p_max_t")
    notes = (
        "p, p_max_t: signs of topics flipped, difference over its standard error; alone, and for all pairs of the "
        "criterion (step-down max-T).",
    )
    return Table(lines, columns, "Pairs", notes)


SOURCE = (
    "M. Aliannejadi, Z. Abbasiantaeb, S. Chatterjee, J. Dalton & L. Azzopardi (2024), TREC iKAT 2023: The Interactive "
    "Knowledge Assistance Track Overview, arXiv:2401.01330"
)
TABLE_7 = (
    ("run-4-GPT-4", "0.89", "65", "8", "4.0"),
    ("georgetown_infosense_ikat_run_3", "0.67", "47", "23", "3.684"),
    ("uot-yahoo_run_llmnoptkb", "0.67", "49", "24", "2.9178"),
    ("run_automatic_dense_monot5", "0.51", "37", "36", "2.808"),
)
"""Run, share of grounded responses, grounded and not grounded, mean naturalness, as printed."""

_SKIPPED = (
    "the paper counts 47 + 23 = 70 turns, the release has 73 of this run, 50 of them grounded; the authors' program "
    "leaves out responses of 10 characters or fewer and those without a passage, which would fit"
)
_SUM = (
    "the 73 released labels sum to {}, the printed mean is that of {}: {}; the release once had a label of 3.5 that "
    "became 3, and more of that would explain it, but cannot be shown"
)
_KNOWN: dict[tuple[str, str], tuple[str, str]] = {
    ("georgetown_infosense_ikat_run_3", "groundedness"): ("0.68", _SKIPPED),
    ("georgetown_infosense_ikat_run_3", "grounded"): ("50", _SKIPPED),
    ("georgetown_infosense_ikat_run_3", "naturalness"): ("3.644", _SUM.format(266, 269, "3 points more")),
    ("uot-yahoo_run_llmnoptkb", "naturalness"): ("2.9041", _SUM.format(212, 213, "1 point more")),
    ("run_automatic_dense_monot5", "naturalness"): ("2.767", _SUM.format(202, 205, "3 points more")),
}
"""Run and measure to what the release gives, rounded as printed, and why that is not what is printed."""
_OTHER = "not known: the release that this command was written for gives {}"

NOTES = (
    "A released groundedness label of 1 says that the response has information that its passages lack, so a response "
    "is grounded where the label is 0.",
    "The paper's scale of naturalness has the levels 0, 1, 2, 3 and 3, its scale of groundedness 0 to 3; the released "
    "labels are 0 to 4, and 0 and 1.",
    "Tables 3 to 6 (passages, PTKB statements) cannot be made again: no run file of 2023 is public. `judge evaluate` "
    "has their measures for runs of your own.",
    "No response text of these runs is public, so the labels can be counted again but the responses not judged again.",
)


def reproduce(folder: Path) -> Reproduction:
    """Make Table 7 and Table 1 again, and say what the labels hold beyond them.

    An InputError if a file is absent or bad; every problem is listed.
    """
    paths = find_released(folder, (*LABEL_FILES, *COLLECTION_FILES))
    labels = read_gpt4_labels({each.name: paths[each.name] for each in CRITERIA if each.name in paths})
    numbers, collection_notes = collection(paths)
    return Reproduction(
        name="ikat2023",
        source=SOURCE,
        numbers=(*_table_7(labels), *numbers),
        beyond=beyond(labels, spelled(labels, [row[0] for row in TABLE_7])),
        notes=(*NOTES, *collection_notes, *left_out(LABEL_FILES, paths)),
    )


def _table_7(labels: Mapping[str, Mapping[str, RunLabels]]) -> list[PublishedNumber]:
    """The cells of Table 7; a share with its two counts is three cells."""
    by_name = {each.name: each for each in CRITERIA}
    numbers: list[PublishedNumber] = []
    for run_id, share, good, bad, mean in TABLE_7:
        grounded = graded(labels, by_name["groundedness"], run_id)
        natural = graded(labels, by_name["naturalness"], run_id)
        yes = no = None
        if grounded is not None and grounded.value is not None:
            grades = labels["groundedness"][run_id.lower()].grades.values()
            yes, no = (
                counted(sum(grade == wanted for grade in grades), len(grades), grounded.topics) for wanted in (1, 0)
            )
        cells = (("groundedness", share, grounded), ("grounded", good, yes), ("not grounded", bad, no))
        for measure, published, ours in (*cells, ("naturalness", mean, natural)):
            numbers.append(
                beside_ours("Table 7", run_id, measure, published, ours, _reason(run_id, measure, published, ours))
            )
    return numbers


def _reason(run_id: str, measure: str, published: str, ours: Estimate | None) -> str:
    if ours is None or ours.value is None:
        return "the folder has no label of this run"
    places = len(published.partition(".")[2])
    released, reason = _KNOWN.get((run_id, measure), (published, ""))
    return reason if decimals(ours.value, places) == released else _OTHER.format(released)


_NIST = "the page trec.nist.gov/data/ikat2023.html"
_REPOSITORY = "the repository irlabamsterdam/iKAT, folder 2023/{}/"
COLLECTION_FILES = (
    ReleasedFile("topics", "2023_test_topics.json", _REPOSITORY.format("data")),
    ReleasedFile("passages", "2023_test_qrels.trec", _NIST, r"2023[_-](test[_-])?qrels\S*\.(trec|txt)(\.gz)?"),
    ReleasedFile("ptkb_nist", "ptkb_rel_nist", _REPOSITORY.format("evaluation"), r"ptkb_rel_nist(\.txt)?"),
    ReleasedFile("ptkb_organizers", "ptkb_rel_org", _REPOSITORY.format("evaluation"), r"ptkb_rel_org(\.txt)?"),
)
TABLE_1 = (
    ("topics", "Topics", "13"), ("topics", "Dialogues", "25"), ("topics", "Turns", "326"),
    ("topics", "Avg. dialogue length", "13.04"), ("topics", "Avg. num. of dialogue per topic", "1.92"),
    ("passages", "Assessed turns", "176"), ("passages", "Passages assessed", "26,159"),
    ("passages", "Num of pruned turns", "43"), ("passages", "Num of turns after pruning", "133"),
    ("passages", "Num of dialogues after pruning", "24"), ("passages", "Fails to meet (0)", "20,458"),
    ("passages", "Slightly meets (1)", "2,787"), ("passages", "Moderately meets (2)", "1,803"),
    ("passages", "Highly meets (3)", "932"), ("passages", "Fully meets (4)", "179"),
    ("ptkb_nist", "PTKB turns assessed by NIST", "98"), ("ptkb_nist", "PTKB assessments by NIST", "1,030"),
    ("ptkb_nist", "Relevant (1) by NIST", "224"), ("ptkb_organizers", "PTKB turns assessed by the organizers", "112"),
    ("ptkb_organizers", "PTKB assessments by the organizers", "1,158"),
    ("ptkb_organizers", "Relevant (1) by the organizers", "182"),
)  # fmt: skip
"""The file that a cell is counted in, the cell, and what is printed."""
RELEASED_TURNS, RELEASED_PASSAGES = 332, 34_183
"""What the release holds that this module was written for."""
_OTHER_RELEASE = "not known: this is not the release that this command was written for"
_TURNS = "not known: the released topics have 332 turns, and the track's validator expects 332"
_PRUNED = (
    "Table 1 counts what is left without 43 pruned turns; the released qrels have all 176, and no list of the 43 is "
    "public"
)
_NO_LIST = "no list of the pruned turns is public"

_Counts = dict[str, tuple[Estimate | None, str]]
"""Cell to what is counted, and why that is not what is printed."""


def collection(paths: Mapping[str, Path]) -> tuple[list[PublishedNumber], tuple[str, ...]]:
    """The cells of Table 1 if any of its files is there, and a note about the files that are not.

    An InputError if a file is bad.
    """
    absent = {file.key: file.name for file in COLLECTION_FILES if file.key not in paths}
    notes = (f"Table 1 needs more files, which are not in the folder: {', '.join(absent.values())}.",) if absent else ()
    if len(absent) == len(COLLECTION_FILES):
        return [], notes
    counts: _Counts = {
        row: (None, _NO_LIST if "prun" in row else f"{absent[key]} is not in the folder")
        for key, row, _ in TABLE_1
        if key in absent or "prun" in row
    }
    if "topics" in paths:
        counts |= _topics(paths["topics"])
    if "passages" in paths:
        counts |= _passages(paths["passages"])
    for key, who in (("ptkb_nist", "NIST"), ("ptkb_organizers", "the organizers")):
        if key in paths:
            counts |= _statements(paths[key], who)
    return [beside_ours("Table 1", row, "count", published, *counts[row]) for _, row, published in TABLE_1], notes


def _topics(path: Path) -> _Counts:
    topics = read_topics(path)
    themes = len({cluster_of(topic.topic_id, "theme") for topic in topics})
    turns = sum(len(topic.turns) for topic in topics)
    ours = (themes, len(topics), turns, turns / len(topics), len(topics) / themes)
    reason = _TURNS if turns == RELEASED_TURNS else _OTHER_RELEASE
    rows = (row for key, row, _ in TABLE_1 if key == "topics")
    return {row: (counted(number, turns, len(topics)), reason) for row, number in zip(rows, ours, strict=True)}


def _passages(path: Path) -> _Counts:
    rows = parse_qrels(text_of(path), str(path), range(5))
    grades = Counter(row.grade for row in rows)
    cells = [row for key, row, _ in TABLE_1 if key == "passages" and row.endswith(")")]
    ours = {"Passages assessed": len(rows)} | {cell: grades[grade] for grade, cell in enumerate(cells)}
    reason = _PRUNED if len(rows) == RELEASED_PASSAGES else _OTHER_RELEASE
    counts: _Counts = {cell: (_among(rows, number), reason) for cell, number in ours.items()}
    return counts | {"Assessed turns": (_among(rows, len({row.turn_id for row in rows})), _OTHER_RELEASE)}


def _statements(path: Path, who: str) -> _Counts:
    rows = parse_qrels(text_of(path), str(path), (0, 1))
    ours = {
        f"PTKB turns assessed by {who}": len({row.turn_id for row in rows}),
        f"PTKB assessments by {who}": len(rows),
        f"Relevant (1) by {who}": sum(row.grade for row in rows),
    }
    return {cell: (_among(rows, number), _OTHER_RELEASE) for cell, number in ours.items()}


def _among(rows: Sequence[QrelRow], number: int) -> Estimate:
    return counted(number, len(rows), len({topic_of(row.turn_id) for row in rows}))
