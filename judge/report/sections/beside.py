"""Several folders side by side: who judged each, the runs' means and ranks, and how far the grades agree. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.io.cells import count
from judge.io.table import Cell, Table
from judge.io.trec import safe_names
from judge.records import Estimate
from judge.report.folders import CalibrationFolder, ReportedFolder, RunFolder
from judge.report.parts import Facts, ReportPart, Section
from judge.report.sections.summary import banner, lead
from judge.report.sections.words import titled
from judge.results.rows import LeaderboardRow


def side_by_side(folders: Sequence[ReportedFolder], between: Mapping[str, Sequence[ReportPart]]) -> Iterator[Section]:
    """A section on all folders, then one for each criterion that two or more of `judge run` share.

    Args:
        folders: The folders.
        between: By criterion, what is said of how far their grades agree.
    """
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
        parts = (_means(having, name), *between.get(name, ()))
        yield Section(f"side-by-side-{slugs[name]}", f"Side by side: {name}", parts)


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
