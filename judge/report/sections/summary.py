"""What was judged, by which judge, how far to believe it, and what came out. Pure."""

from collections.abc import Iterator, Sequence

from judge.ask.records import Judgment
from judge.ask.returned import settled_notes
from judge.io.cells import count, number
from judge.io.safe import printable
from judge.records import JudgedUnit
from judge.report.folders import RunFolder
from judge.report.parts import Facts, ReportPart, Said, Section
from judge.report.sections.making import in_all
from judge.report.sections.words import capped, scale_of, titled
from judge.results.differences import told_apart
from judge.results.leaderboard import by_criterion
from judge.results.rows import LeaderboardRow, worded


def summary(folder: RunFolder) -> Iterator[Section]:
    """The first thing that a reader sees."""
    yield Section("summary", "In short", tuple(_parts(folder)))


def lead(folder: RunFolder) -> str:
    """What was judged by whom, in one sentence."""
    pool = folder.judged.pool
    runs = sum(run.selected for run in pool.runs) or len({row.run_id for row in folder.rows})
    topics = count(len({response.topic_id for response in pool.responses}), "topic")
    criteria = " and ".join(criterion.name for criterion in folder.judged.criteria)
    return (
        f"{count(len(pool.responses), pool.unit)} of {count(runs, 'run')} on {topics}, graded for {criteria} by "
        f"{judges_of(folder)}."
    )


def judges_of(folder: RunFolder) -> str:
    """The judges that gave the grades, as text."""
    return (
        ", ".join(sorted({printable(judge) for judges in folder.judged.said_by.values() for judge in judges}))
        or "nobody"
    )


def banner(folder: RunFolder) -> Said:
    """How far to believe the judge."""
    text = folder.judged.banner
    statement = folder.manifest.get("certificate")
    calibrated = isinstance(statement, dict) and statement.get("calibrated") is True
    return Said(text, "good" if calibrated else "warn")


def _parts(folder: RunFolder) -> Iterator[ReportPart]:
    yield banner(folder)
    if folder.compared is not None:
        yield Said("The sections after the leaderboard set people's grades (the gold) beside the judge's.")
    asked = folder.manifest.get("asked")
    if folder.manifest.get("status") == "trial" and isinstance(asked, dict):
        yield Said(
            f"A trial: only {asked.get('judgments')} judgments were asked for, spread over the "
            f"{folder.judged.pool.unit}s. Means and ranks will change when all are judged.",
            "warn",
        )
    for note in settled_notes(folder.judged.results):
        yield Said(note)
    for warning in folder.judged.warnings:
        yield Said(capped(_without_places(warning, folder)), "warn")
    apart = told_apart(folder.pairs)
    criteria = {criterion.name: criterion for criterion in folder.judged.criteria}
    for name, rows in by_criterion(folder.rows):
        placed = [row for row in rows if row.mean.value is not None and row.rank is not None]
        if not placed:
            yield Said(f"{titled(name)}: no run has a grade.")
            continue
        sentence = f"{titled(name)} ({scale_of(criteria[name])}): {order_of(placed, folder.judged.pool.unit)}"
        yield Said(f"{sentence}. {apart.get(name, '').replace('; differences.tsv', '')}".strip())
    yield Facts(tuple(_facts(folder)))


def order_of(placed: Sequence[LeaderboardRow], unit: JudgedUnit = "response") -> str:
    """Who is first and who is last, with the means; a mean over all turns, by which ranks go, where it is another.

    Args:
        placed: The rows with a rank, best first; at least one.
        unit: What is judged.
    """
    first = [row for row in placed if row.rank == placed[0].rank]
    last = [row for row in placed if row.rank == placed[-1].rank]
    if len(placed) == 1:
        return f"{printable(placed[0].run_id)} has {_mean(first, unit)}"
    if len(first) == len(placed):
        return f"the {len(placed)} runs have the same rank with {_mean(first, unit)}"
    verb = "comes" if len(first) == 1 else "come"
    return f"{_named(first)} {verb} first with {_mean(first, unit)}, {_named(last)} last with {_mean(last, unit)}"


def _named(rows: Sequence[LeaderboardRow]) -> str:
    name = printable(rows[0].run_id)
    if len(rows) == 2:
        return f"{name} and {printable(rows[1].run_id)}"
    return name if len(rows) == 1 else f"{name} and {len(rows) - 1} others"


def _mean(rows: Sequence[LeaderboardRow], unit: JudgedUnit) -> str:
    """The mean of runs of one rank."""
    means = {number(row.mean.value, 2) for row in rows}
    bound = number(rows[0].bound, 2)
    if means == {bound}:
        return f"a mean of {bound}"
    # Runs of one rank have one mean over all turns, and may have others over those with a grade.
    over = worded("over all turns", unit)
    return f"a mean of {means.pop()} ({bound} {over})" if len(means) == 1 else f"a mean {over} of {bound}"


def _without_places(warning: str, folder: RunFolder) -> str:
    """A warning as others may read it: with the names of folder and prompts in place of where they are kept."""
    said = warning.replace(str(folder.judged.path), folder.name)
    for criterion in folder.judged.criteria:
        said = said.replace(criterion.file, f"the file of {criterion.prompt_id}")
    return said


def _facts(folder: RunFolder) -> Iterator[tuple[str, str]]:
    pool, results = folder.judged.pool, folder.judged.results
    made = sum(isinstance(result, Judgment) for result in results)
    yield "Judge", judges_of(folder)
    yield "Prompts", ", ".join(criterion.prompt_id for criterion in folder.judged.criteria)
    listed = count(len({response.listed_under for response in pool.responses}), _LISTED[pool.unit])
    yield f"{pool.unit.capitalize()}s", f"{len(pool.responses)} in {listed}"
    yield "Judgments", str(made) if made == len(results) else f"{made} made, {len(results) - made} missing"
    if not isinstance(folder.spending, str):
        yield "Cost", in_all(folder.spending)


_LISTED: dict[JudgedUnit, str] = {"response": "turn", "dialogue": "topic"}
"""What qrels list each unit by."""
