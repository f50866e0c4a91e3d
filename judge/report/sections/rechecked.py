"""How often the judge answers the same question differently, where a part was asked again. Pure."""

from collections.abc import Iterator

from judge.calibrate.recheck import RECHECK_SEED, RecheckRow, change_lines, recheck_rows
from judge.report.folders import RunFolder
from judge.report.parts import Noted, ReportPart, ReportTable, Section
from judge.text.cells import count
from judge.text.safe import printable
from judge.text.table import Cell, Table

_COLUMNS = ("judge", "prompt", "asked again", "topics", "other answer", "distance", "higher", "lower", "missing")


def rechecked(folder: RunFolder) -> Iterator[Section]:
    """The section; none where nothing was asked again."""
    if not folder.rechecked:
        return
    lines = tuple(_line(row) for row in recheck_rows(folder.rechecked))
    parts: list[ReportPart] = [
        ReportTable(
            Table(lines, _COLUMNS, "What the second answers say", places=3),
            f"{count(len(folder.rechecked), 'question')}, drawn at random with seed {RECHECK_SEED}, went to the judge "
            "a second time, each as a call of its own. Other answer: the share of second answers with another grade, "
            "with its 95 % interval over topics. Distance: how far the two grades are apart on average. Second answers "
            "count in no qrels and in no leaderboard.",
        )
    ]
    changes = change_lines(folder.rechecked, folder.recorded)
    if changes:
        parts.append(Noted("Something else answered the second time", tuple(f"{line}." for line in changes)))
    yield Section("recheck", "The same questions again", tuple(parts))


def _line(row: RecheckRow) -> tuple[Cell, ...]:
    return (
        printable(row.judge),
        printable(row.prompt),
        row.asked,
        row.flipped.topics,
        row.flipped,
        row.change,
        row.higher,
        row.lower,
        row.missing,
    )
