"""What became of every judgment: made, unable, or missing and why; and samples of what is missing. Pure."""

from collections import Counter
from collections.abc import Iterator

from judge.ask.records import Failure, Judgment
from judge.report.folders import RunFolder
from judge.report.parts import Folded, Quoted, ReportPart, ReportTable, Said, Section
from judge.report.sections.words import REASONS, capped
from judge.text.cells import count
from judge.text.grid import Cell, Grid
from judge.text.ids import natural_key
from judge.text.safe import printable

SAMPLES = 3
"""Failures of each reason that are shown."""
_LONGEST = 600
"""Characters of a reply that are shown."""


def statuses(folder: RunFolder) -> Iterator[Section]:
    """How many judgments there are under each criterion, by grade and by what is missing."""
    lines: list[tuple[Cell, ...]] = []
    for criterion in folder.judged.criteria:
        wanted = (criterion.name, criterion.variant)
        results = [r for r in folder.judged.results if (r.criterion, r.variant) == wanted]
        judged = [result for result in results if isinstance(result, Judgment)]
        grades = Counter(result.grade for result in judged if not result.unable)
        unable = sum(result.unable for result in judged)
        failed = len(results) - len(judged)
        not_asked = len(folder.judged.pool.responses) - len({result.response_id for result in results})
        shown = ", ".join(f"{grade}: {grades[grade]}" for grade in sorted(grades, reverse=True))
        lines.append((criterion.name, sum(grades.values()), shown or None, unable, failed, not_asked))
    columns = ("criterion", "graded", "how often each grade", "unable to judge", "missing", "not asked")
    sheet = ReportTable(
        Grid("Judgments by criterion", columns, tuple(lines)),
        "A line for each criterion. Unable to judge: the judge said that nobody could tell. Missing: no grade "
        "came of it, be it that no reply could be used or that the question could not be put. Not asked: left out of a "
        "trial, or not judged at all. None of these is a grade.",
    )
    yield Section("judgment-counts", "What became of the judgments", (sheet,))


def failures(folder: RunFolder) -> Iterator[Section]:
    """Missing judgments by reason, with a few of each; no section where none is missing."""
    failed = [result for result in folder.judged.results if isinstance(result, Failure)]
    if not failed:
        return
    by_reason = Counter(failure.reason for failure in failed)
    order = sorted(by_reason, key=lambda reason: (-by_reason[reason], reason))
    sheet = ReportTable(
        Grid(
            "Missing judgments by reason",
            ("reason", "judgments", "in words"),
            tuple((reason, by_reason[reason], REASONS[reason]) for reason in order),
        ),
        "A missing judgment is never taken for a grade. Those that the provider or the budget caused come back when "
        "the same command is run again.",
    )
    parts: list[ReportPart] = [sheet]
    for reason in order:
        some = sorted(
            (failure for failure in failed if failure.reason == reason),
            key=lambda failure: (failure.criterion, natural_key(failure.response_id)),
        )[:SAMPLES]
        inner: list[Said | Quoted] = []
        for failure in some:
            about = f"{failure.response_id} in turn {printable(failure.turn_id)}, {failure.criterion}"
            if failure.raw:
                cut = failure.raw[:_LONGEST]
                inner.append(Said(f"{about}: {capped(printable(failure.detail))}"))
                inner.append(Quoted("The reply", cut + ("…" if len(failure.raw) > len(cut) else "")))
            else:
                inner.append(Said(f"{about}: {capped(printable(failure.detail))}"))
        title = f"{capped(REASONS[reason])[:-1]}: {_some(len(some), by_reason[reason])}"
        parts.append(Folded(title, tuple(inner)))
    yield Section("failures", "Why judgments are missing", tuple(parts))


def _some(shown: int, there: int) -> str:
    return count(there, "judgment") if shown == there else f"{shown} of {count(there, 'judgment')}"
