"""What became of every judgment: made, unable, or missing and why; and how often a second answer differs. Pure."""

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest

from judge.ask.records import Failure
from judge.calibrate.recheck import RECHECK_SEED, RECHECKED, change_lines, recheck_rows
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.io.safe import printable
from judge.io.table import Cell, Table, records_table
from judge.pool.records import SeenResponses, pool_places
from judge.report.folders import RunFolder
from judge.report.parts import Folded, Noted, Quoted, ReportPart, Said, Section
from judge.report.sections.words import REASONS, capped

_MISSING, _UNABLE = "missing", "unable"
SAMPLES = 3
"""Failures of each reason that are shown."""
_LONGEST = 600
"""Characters of a reply that are shown."""


def statuses(folder: RunFolder) -> Iterator[Section]:
    """How many judgments there are under each criterion, by grade and by what is missing."""
    pool = folder.judged.pool
    places = pool_places(pool)
    prompts = [(criterion.name, criterion.variant) for criterion in folder.judged.criteria]
    counts: dict[tuple[str, str], Counter[int | str]] = {prompt: Counter() for prompt in prompts}
    asked = {prompt: SeenResponses(places) for prompt in prompts}
    for result in folder.judged.results:
        if (prompt := (result.criterion, result.variant)) in counts:
            if isinstance(result, Failure):
                counts[prompt][_MISSING] += 1
            else:
                counts[prompt][_UNABLE if result.unable else result.grade] += 1
            asked[prompt].add(result.response_id)
    lines: list[tuple[Cell, ...]] = []
    for prompt, of in counts.items():
        unable, failed, not_asked = of.pop(_UNABLE, 0), of.pop(_MISSING, 0), len(pool.responses) - len(asked[prompt])
        shown = ", ".join(f"{grade}: {of[grade]}" for grade in sorted(of, key=int, reverse=True))
        lines.append((prompt[0], of.total(), shown or None, unable, failed, not_asked))
    columns = ("criterion", "graded", "how often each grade", "unable to judge", "missing", "not asked")
    reading = (
        "A line for each criterion. Unable to judge: the judge said that nobody could tell. Missing: no grade "
        "came of it, be it that no reply could be used or that the question could not be put. Not asked: left out of a "
        "trial, or not judged at all. None of these is a grade."
    )
    table = Table(lines, columns, "Judgments by criterion", [reading])
    yield Section("judgment-counts", "What became of the judgments", (table,))


def failures(folder: RunFolder) -> Iterator[Section]:
    """Missing judgments by reason, with a few of each; no section where none is missing."""
    by_reason = Counter(failure.reason for failure in _failed(folder))
    if not by_reason:
        return
    order = sorted(by_reason, key=lambda reason: (-by_reason[reason], reason))
    reading = (
        "A missing judgment is never taken for a grade. Those that the provider or the budget caused come back when "
        "the same command is run again."
    )
    lines = ((reason, by_reason[reason], REASONS[reason]) for reason in order)
    table = Table(lines, ("reason", "judgments", "in words"), "Missing judgments by reason", [reading])
    parts: list[ReportPart] = [table]
    for reason in order:
        some = nsmallest(
            SAMPLES,
            (failure for failure in _failed(folder) if failure.reason == reason),
            key=lambda failure: (failure.criterion, natural_key(failure.response_id)),
        )
        inner: list[Said | Quoted] = []
        for failure in some:
            about = f"{failure.response_id} in turn {printable(failure.turn_id)}, {failure.criterion}"
            inner.append(Said(f"{about}: {capped(printable(failure.detail))}"))
            if failure.raw:
                cut = failure.raw[:_LONGEST]
                inner.append(Quoted("The reply", cut + ("…" if len(failure.raw) > len(cut) else "")))
        title = f"{capped(REASONS[reason])[:-1]}: {_some(len(some), by_reason[reason])}"
        parts.append(Folded(title, tuple(inner)))
    yield Section("failures", "Why judgments are missing", tuple(parts))


def _failed(folder: RunFolder) -> Iterator[Failure]:
    return (result for result in folder.judged.results if isinstance(result, Failure))


def _some(shown: int, there: int) -> str:
    return count(there, "judgment") if shown == there else f"{shown} of {count(there, 'judgment')}"


def rechecked(folder: RunFolder) -> Iterator[Section]:
    """The section; none where nothing was asked again."""
    if not folder.rechecked:
        return
    reading = (
        f"{count(len(folder.rechecked), 'question')}, drawn at random with seed {RECHECK_SEED}, went to the judge "
        "a second time, each as a call of its own. Other answer: the share of second answers with another grade, "
        "with its 95 % interval over topics. Distance: how far the two grades are apart on average. Second answers "
        "count in no qrels and in no leaderboard."
    )
    rows = recheck_rows(folder.rechecked)
    parts: list[ReportPart] = [records_table(RECHECKED, rows, "What the second answers say", [reading], 3)]
    changes = change_lines(folder.rechecked, folder.recorded)
    if changes:
        parts.append(Noted("Something else answered the second time", tuple(f"{line}." for line in changes)))
    yield Section("recheck", "The same questions again", tuple(parts))
