"""What was judged, by which judge, how far to believe it, and what came out. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.ask.records import Judgment
from judge.ask.returned import judge_notes
from judge.io.ids import groups_of, safe_names
from judge.io.table import Cell, Table
from judge.io.text import count, number, printable
from judge.records import JudgedUnit
from judge.report import Facts, ReportPart, Said, Section
from judge.report.folders import CalibrationFolder, ReportedFolder, RunFolder
from judge.report.sections import capped, scale_of, titled
from judge.report.sections.boards import verdicts
from judge.report.sections.making import in_all
from judge.results.citations import headlines_of
from judge.results.rows import Score
from judge.results.tables import is_apart, listed, told_apart
from judge.units import UNITS


def summary(folder: RunFolder) -> Iterator[Section]:
    """The first thing that a reader sees."""
    yield Section("summary", "In short", tuple(_parts(folder)))


def judges_of(folder: RunFolder) -> str:
    """The judges that gave the grades, as text; at least one did."""
    return ", ".join(sorted({printable(judge) for judges in folder.judged.said_by.values() for judge in judges}))


def banner(folder: RunFolder) -> Said:
    """How far to believe the judge."""
    statement = folder.judged.manifest.get("certificate")
    calibrated = isinstance(statement, dict) and statement.get("calibrated") is True
    return Said(folder.judged.banner, "good" if calibrated else "warn")


def _parts(folder: RunFolder) -> Iterator[ReportPart]:
    criteria = {criterion.name: criterion for criterion in headlines_of(folder.judged.criteria)}
    apart = {pair.criterion for pair in folder.tables.differences if is_apart(pair)}
    for name, said in told_apart(folder.tables.differences, criteria.values()).items():
        verdict = said.replace("; differences.tsv", "")
        text = f"{titled(name)}: {verdict}" if len(criteria) > 1 else verdict
        yield Said(text, "good" if name in apart else "plain")
    if not _each_has_a_verdict(folder):
        yield banner(folder)
    yield from verdicts(folder.compared)[: len(folder.compared.verdicts)] if folder.compared else ()
    asked = folder.judged.manifest.get("asked")
    if folder.judged.manifest.get("status") == "trial" and isinstance(asked, dict):
        yield Said(
            f"A trial: only {asked.get('judgments')} judgments were asked for, spread over the "
            f"{UNITS[folder.judged.pool.unit].nouns.responses}. Means and ranks will change when all are judged.",
            "warn",
        )
    for note in judge_notes(folder.judged.results):
        yield Said(note)
    for warning in folder.judged.warnings:
        yield Said(capped(_without_places(warning, folder)), "warn")
    board = ((row.criterion, row) for row in folder.tables.leaderboard if row.criterion in criteria)
    for name, rows in groups_of(board).items():
        placed = [row for row in rows if row.mean.value is not None and row.rank is not None]
        if not placed:
            yield Said(f"{titled(name)}: no run has a grade.")
            continue
        # An order by means is nothing to say of runs that cannot be told apart.
        if name in apart or len(placed) == 1:
            order = order_of(placed, folder.judged.pool.unit)
            yield Said(f"{titled(name)} ({scale_of(criteria[name])}): {order}.")
    yield Facts(tuple(_facts(folder)))


def _each_has_a_verdict(folder: RunFolder) -> bool:
    """Whether the verdicts, which stand there in full, leave the banner nothing to add."""
    if folder.compared is None or isinstance(folder.judged.manifest.get("certificate"), dict):
        return False
    said = {verdict.criterion for verdict in folder.judged.verdicts}
    return said.issuperset(criterion.name for criterion in folder.judged.criteria)


def order_of(placed: Sequence[Score], unit: JudgedUnit = "response") -> str:
    """Who is first and who is last, with the means; a mean over all turns, by which ranks go, where it is another.

    `placed`: the rows with a rank, best first; at least one.
    """
    first = [row for row in placed if row.rank == placed[0].rank]
    last = [row for row in placed if row.rank == placed[-1].rank]
    if len(placed) == 1:
        return f"{printable(placed[0].run_id)} has {_mean(first, unit)}"
    if len(first) == len(placed):
        return f"the {len(placed)} runs have the same rank with {_mean(first, unit)}"
    verb = "comes" if len(first) == 1 else "come"
    best, worst = (listed([row.run_id for row in rows]) for rows in (first, last))
    return f"{best} {verb} first with {_mean(first, unit)}, {worst} last with {_mean(last, unit)}"


def _mean(rows: Sequence[Score], unit: JudgedUnit) -> str:
    """The mean of runs of one rank."""
    means = {number(row.mean.value, 2) for row in rows}
    bound = number(rows[0].bound, 2)
    if means == {bound}:
        return f"a mean of {bound}"
    # Runs of one rank have one mean over all turns, and may have others over those with a grade.
    over = f"over all {UNITS[unit].nouns.turns}"
    return f"a mean of {means.pop()} ({bound} {over})" if len(means) == 1 else f"a mean {over} of {bound}"


def _without_places(warning: str, folder: RunFolder) -> str:
    """A warning as others may read it: with the names of folder and prompts in place of where they are kept."""
    said = warning.replace(str(folder.judged.path), folder.name)
    for criterion in folder.judged.criteria:
        said = said.replace(criterion.file, f"the file of {criterion.prompt_id}")
    return said


def _facts(folder: RunFolder) -> Iterator[tuple[str, str]]:
    pool = folder.judged.pool
    results = folder.judged.results
    made = sum(isinstance(result, Judgment) for result in results)
    yield "Judge", judges_of(folder)
    yield "Prompts", ", ".join(criterion.prompt_id for criterion in folder.judged.criteria)
    listed = count(len({response.listed_under for response in pool.responses}), UNITS[pool.unit].nouns.turn)
    yield UNITS[pool.unit].nouns.responses.capitalize(), f"{len(pool.responses):,} in {listed}"
    yield "Judgments", f"{made:,}" if made == len(results) else f"{made:,} made, {len(results) - made:,} missing"
    if not isinstance(folder.spending, str):
        yield "Cost", in_all(folder.spending)


def side_by_side(folders: Sequence[ReportedFolder], between: Mapping[str, Sequence[ReportPart]]) -> Iterator[Section]:
    """A section on all folders, then one for each criterion that two or more of `judge run` share.

    `between`: by criterion, what is said of how far their grades agree.
    """
    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    banners = list(dict.fromkeys(banner(folder) for folder in runs))
    facts = Facts(tuple((folder.name, about(folder)) for folder in folders))
    yield Section("all-folders", "The folders", (*banners, facts))
    names = list(dict.fromkeys(row.criterion for folder in runs for row in folder.tables.leaderboard))
    slugs = safe_names(names)
    for name in names:
        having = [folder for folder in runs if any(row.criterion == name for row in folder.tables.leaderboard)]
        if len(having) < 2:
            continue
        parts = (_means(having, name), *between.get(name, ()))
        yield Section(f"side-by-side-{slugs[name]}", f"Side by side: {name}", parts)


def about(folder: ReportedFolder) -> str:
    """What a folder is about, in one sentence."""
    if isinstance(folder, CalibrationFolder):
        judges = count(len({row.name for row in folder.calibration.agreement if not row.baseline}), "judge")
        return f"{judges} compared with people's grades of the same responses."
    pool = folder.judged.pool
    runs = sum(run.selected for run in pool.runs) or len({row.run_id for row in folder.tables.leaderboard})
    topics = count(len({response.topic_id for response in pool.responses}), "topic")
    criteria = " and ".join(criterion.name for criterion in folder.judged.criteria)
    judged = f"{count(len(pool.responses), pool.unit)} of {count(runs, 'run')} on {topics}"
    return f"{judged}, graded for {criteria} by {judges_of(folder)}."


def _means(folders: Sequence[RunFolder], criterion: str) -> Table[Any]:
    by_folder = [
        {row.run_id: row for row in folder.tables.leaderboard if row.criterion == criterion} for folder in folders
    ]
    run_ids = list(dict.fromkeys(run_id for rows in by_folder for run_id in rows))
    columns = ["run"]
    cells: list[list[Cell]] = [[*run_ids]]
    for folder, rows in zip(folders, by_folder, strict=True):
        columns += [f"{folder.name}: mean grade", f"{folder.name}: rank"]
        found = [rows.get(run_id) for run_id in run_ids]
        cells += [[row.mean if row else None for row in found], [row.rank if row else None for row in found]]
    reading = (
        f"A line for each run in the order of {folders[0].name}, and its mean grade and rank in each folder. Grades "
        "under two prompts may be on different scales; ranks can be compared all the same."
    )
    return Table(
        rows=zip(*cells, strict=True),
        columns=columns,
        title=f"{titled(criterion)} side by side",
        notes=[reading],
        places=2,
    )
