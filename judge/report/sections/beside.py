"""Several folders side by side: who judged each, the runs' means and ranks, and how far the grades agree. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from judge.extra.evaluate.sets.grades import SetsAgreement
from judge.io.cells import count
from judge.io.table import Cell, Mark, Plot, Table
from judge.io.trec import safe_names
from judge.records import Estimate
from judge.report.between import FoldersCompared
from judge.report.folders import CalibrationFolder, ReportedFolder, RunFolder
from judge.report.parts import Facts, ReportPart, Said, Section
from judge.report.sections.agreement import called
from judge.report.sections.summary import banner, lead
from judge.report.sections.words import capped, titled
from judge.results.rows import LeaderboardRow

_STATISTICS = ("percent", "kappa", "wkappa", "bias")
"""What is said of two judges, in this order."""


def side_by_side(folders: Sequence[ReportedFolder], compared: Sequence[FoldersCompared]) -> Iterator[Section]:
    """A section on all folders, then one for each criterion that two or more of `judge run` share."""
    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    banners = list(dict.fromkeys(banner(folder) for folder in runs))
    facts = Facts(tuple((folder.name, about(folder)) for folder in folders))
    yield Section("all-folders", "The folders", (*banners, facts))
    names = list(dict.fromkeys(row.criterion for folder in runs for row in folder.rows))
    slugs = safe_names(names)
    for name in names:
        having = [folder for folder in runs if any(row.criterion == name for row in folder.rows)]
        if len(having) < 2:
            continue
        parts: list[ReportPart] = [_means(having, name)]
        for pair in compared:
            if pair.criterion == name:
                parts += _agreement(pair)
        yield Section(f"side-by-side-{slugs[name]}", f"Side by side: {name}", tuple(parts))


def about(folder: ReportedFolder) -> str:
    """What a folder is about, in one sentence."""
    if isinstance(folder, CalibrationFolder):
        judges = count(len({row.name for row in folder.calibration.agreement if not row.baseline}), "judge")
        return f"{judges} compared with people's grades of the same responses."
    return lead(folder)


def _means(folders: Sequence[RunFolder], criterion: str) -> Table[Any]:
    by_folder = [{row.run_id: row for row in folder.rows if row.criterion == criterion} for folder in folders]
    run_ids = list(dict.fromkeys(run_id for rows in by_folder for run_id in rows))
    columns = ["run"]
    cells: list[list[Cell]] = [[*run_ids]]
    for folder, rows in zip(folders, by_folder, strict=True):
        columns += [f"{folder.name}: mean grade", f"{folder.name}: rank"]
        found = [rows.get(run_id) for run_id in run_ids]
        cells += [list(map(_mean, found)), list(map(_rank, found))]
    reading = (
        f"A line for each run in the order of {folders[0].name}, and its mean grade and rank in each folder. Grades "
        "under two prompts may be on different scales; ranks can be compared all the same."
    )
    return Table(zip(*cells, strict=True), columns, f"{titled(criterion)} side by side", [reading], 2)


def _mean(row: LeaderboardRow | None) -> Estimate | None:
    return None if row is None else row.mean


def _rank(row: LeaderboardRow | None) -> int | None:
    return None if row is None else row.rank


def _agreement(pair: FoldersCompared) -> Iterator[ReportPart]:
    if isinstance(pair.agreement, str):
        yield Said(f"The grades of {pair.first} and {pair.second} are not compared: {capped(pair.agreement)}", "warn")
        return
    found = pair.agreement
    # Of two grades, weighting changes nothing.
    left_out = "wkappa" if len(found.a.scale) == 2 else "kappa"
    names = [name for name in _STATISTICS if name in found.statistics and name != left_out]
    lines = tuple((called(name).replace("judge minus people", "difference"), found.statistics[name]) for name in names)
    marks = tuple(() if name == "bias" else (Mark(found.statistics[name]),) for name in names)
    low = min([0.0, *(value for name in names[1:-1] if (value := found.statistics[name].low) is not None)])
    weighted = "; weighted, so that a grade two off counts four times one off" if "wkappa" in names else ""
    reading = (
        ("The scales differ, so grades count as positive (1) or not (0). " if pair.binary else "")
        + f"Of the {count(found.items, pair.unit)} that both graded. Same grade: the share with equal grades. Kappa: "
        f"agreement beyond chance, 1 is perfect{weighted}. Difference: the mean of {pair.second} less that of "
        f"{pair.first}."
    )
    title = f"{pair.first} and {pair.second}: how far the grades agree"
    yield Table(lines, ("measure", "value"), title, [reading], 2, Plot("drawn", low, 1.0, marks))
    yield _table(pair, found)


def _table(pair: FoldersCompared, found: SetsAgreement) -> Table[Any]:
    totals = [sum(counts) for counts in found.confusion]
    lines: list[tuple[Cell, ...]] = [
        (f"{pair.first}: {grade}", *counts, total)
        for grade, counts, total in zip(found.a.scale, found.confusion, totals, strict=True)
    ]
    shares = tuple(
        (None, *(n / total if total else None for n in counts), None)
        for counts, total in zip(found.confusion, totals, strict=True)
    )
    columns = ("grade", *(f"{pair.second}: {grade}" for grade in found.b.scale), "in all")
    reading = (
        f"A line for each grade of {pair.first}, a column for each of {pair.second}: how many {pair.unit}s have both. "
        "On the diagonal they agree; the list of judgments begins with those on which they do not."
    )
    return Table(lines, columns, f"Grades of {pair.first} beside those of {pair.second}", [reading], shares=shares)
