"""What became of every judgment: made, unable, or missing and why; and how often a second answer differs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import nsmallest

from judge.ask.records import Failure
from judge.calibrate.recheck import RECHECK_SEED, RECHECKED, change_lines, recheck_rows
from judge.gold.sheets import readable
from judge.io.ids import natural_key, nested
from judge.io.table import Cell, Column, Table, records_table
from judge.io.text import count, printable
from judge.pool.build import lacking_texts
from judge.pool.records import is_new, pool_places
from judge.report import Folded, Noted, Quoted, ReportPart, Said, Section
from judge.report.folders import RunFolder
from judge.report.sections import REASONS, SCREENED, capped, excluded_words, problem_words
from judge.units import UNITS

_MISSING = "missing"
_UNABLE = "unable"
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
    asked = {prompt: bytearray() for prompt in prompts}
    for result in folder.judged.results:
        if (prompt := (result.criterion, result.variant)) in counts:
            if isinstance(result, Failure):
                counts[prompt][_MISSING] += 1
            else:
                counts[prompt][_UNABLE if result.unable else result.grade] += 1
            is_new(result.response_id, asked[prompt], places)
    lines: list[tuple[Cell, ...]] = []
    for prompt, of in counts.items():
        unable = of.pop(_UNABLE, 0)
        failed = of.pop(_MISSING, 0)
        not_asked = len(pool.responses) - sum(asked[prompt])
        grades = {int(grade): of[grade] for grade in sorted(of, key=int)}
        lines.append((prompt[0], of.total(), grades or None, unable, failed, not_asked))
    lacking = "no grade came of it, be it that no reply could be used or that the question could not be put"
    columns = (
        *("criterion", "graded", "grades"),
        Column("unable to judge", about="the judge said that nobody could tell; no grade"),
        Column("missing", about=lacking),
        Column("not asked", about="left out of a trial, or not judged at all"),
    )
    table = Table(lines, columns, "Judgments by criterion", ["A line for each criterion."])
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
                cut = readable(failure.raw[:_LONGEST])
                inner.append(Quoted("The reply", cut + ("…" if len(failure.raw) > _LONGEST else "")))
        there = count(by_reason[reason], "judgment")
        shown = there if len(some) == by_reason[reason] else f"{len(some)} of {there}"
        title = f"{capped(REASONS[reason])[:-1]}: {shown}"
        parts.append(Folded(title, tuple(inner)))
    yield Section("failures", "Why judgments are missing", tuple(parts))


def _failed(folder: RunFolder) -> Iterator[Failure]:
    return (result for result in folder.judged.results if isinstance(result, Failure))


def rechecked(folder: RunFolder) -> Iterator[Section]:
    """The section; none where nothing was asked again."""
    if not folder.rechecked:
        return
    reading = (
        f"{count(len(folder.rechecked), 'question')}, drawn at random with seed {RECHECK_SEED}, went to the judge "
        "a second time, each as a call of its own. Second answers count in no qrels and in no leaderboard."
    )
    rows = recheck_rows(folder.rechecked)
    parts: list[ReportPart] = [records_table(RECHECKED, rows, "What the second answers say", [reading], 3)]
    changes = change_lines(folder.rechecked, folder.recorded)
    if changes:
        parts.append(Noted("Something else answered the second time", tuple(f"{line}." for line in changes)))
    yield Section("recheck", "The same questions again", tuple(parts))


LIMIT = 250
"""The guidelines' limit in tokens, used where no manifest gives one."""
_COUNTED = (("bare", "spaCy's bare tokenizer"), ("english", "spaCy's English rules"), ("whitespace", "white space"))


def submissions(folder: RunFolder) -> Iterator[Section]:
    """The section, where there is anything to say."""
    parts = [*_problems(folder), *_excluded(folder), *_tokens(folder), *_screened(folder), *_missing_texts(folder)]
    if parts:
        yield Section("submissions", "The submissions", tuple(parts))


def _problems(folder: RunFolder) -> Iterator[ReportPart]:
    if not folder.problems:
        return
    counts: Counter[tuple[str, str]] = Counter()
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    for problem in folder.problems:
        key = problem.severity, problem.code
        counts[key] += problem.count
        files[key].add(problem.file)
    lines: list[tuple[Cell, ...]] = [
        (code, severity, counts[severity, code], len(files[severity, code]), problem_words(code))
        for severity, code in sorted(counts)
    ]
    with_errors = UNITS[folder.judged.pool.unit].words.with_errors
    reading = f"A line for each kind of problem. {with_errors} `judge validate` lists each with its place."
    yield Table(lines, ("problem", "kind", "times", "files", "in words"), "Problems of the runs", [reading])


def _excluded(folder: RunFolder) -> Iterator[ReportPart]:
    reasons = Counter(exclusion.reason for exclusion in folder.judged.pool.exclusions)
    if not reasons:
        return
    runs = nested((exclusion.reason, exclusion.run_id, None) for exclusion in folder.judged.pool.exclusions)
    unit = folder.judged.pool.unit
    nouns = UNITS[unit].nouns
    reading = (
        f"{nouns.responses.capitalize()}, {nouns.turns} and runs that were left out before the judge was asked; "
        "excluded.tsv names each of them."
    )
    lines = ((reason, reasons[reason], len(runs[reason]), excluded_words(reason, unit)) for reason in sorted(reasons))
    yield Table(lines, ("reason", "entries", "runs", "in words"), "What was not judged", [reading])


def _tokens(folder: RunFolder) -> Iterator[ReportPart]:
    # The limit is one of single responses, of which a dialogue has many.
    responses = folder.judged.pool.responses if UNITS[folder.judged.pool.unit].whole_response else ()
    limits = _limits(folder)
    lines: list[tuple[Cell, ...]] = []
    for rule, words in _COUNTED:
        over = 0
        longest = 0
        runs: set[str] = set()
        for response in responses:
            length = getattr(response.tokens, rule)
            longest = max(longest, length)
            over_theirs = {entry.run_id for entry in response.runs if length > limits[entry.run_id]}
            over += bool(over_theirs)
            runs |= over_theirs
        lines.append((words, over, len(runs), longest))
    if not any(line[1] for line in lines):
        return
    reading = (
        "Each way of counting finds other lengths; `judge run --token-rule RULE --over-limit exclude` leaves these "
        "responses out."
    )
    columns = ("counted by", "responses over", "of runs", "longest")
    several = sorted(set(limits.values()))
    limit = f"{several[0]} tokens" if len(several) == 1 else "the limit of their run's track"
    yield Table(lines, columns, f"Responses over {limit}", [reading])
    if cut := sum(response.truncated for response in responses):
        yield Said(f"{count(cut, 'response')} was judged in a shortened form, cut at the limit.", "warn")


def _limits(folder: RunFolder) -> dict[str, int]:
    """Run id to the longest response in tokens."""
    manifest = folder.judged.manifest
    configured = _member(_member(manifest, "configuration"), "token_rule")
    by_format = _member(_member(manifest, "limits"), "by_format")
    limits = {}
    for run in folder.judged.pool.runs:
        limit = _member(_member(by_format, run.format), "token_limit") or _member(configured, "limit")
        limits[run.run_id] = limit if isinstance(limit, int) and limit > 0 else LIMIT
    return limits


def _member(value: object, name: str) -> object:
    """A member of a JSON object; None of anything else."""
    return value.get(name) if isinstance(value, dict) else None


def _screened(folder: RunFolder) -> Iterator[ReportPart]:
    if not folder.screen:
        return
    nouns = UNITS[folder.judged.pool.unit].nouns
    runs_of = {response.response_id: response.runs for response in folder.judged.pool.responses}
    codes = Counter(code for code, _ in folder.screen)
    lines: list[tuple[Cell, ...]] = []
    for code in sorted(codes, key=lambda code: (-codes[code], code)):
        flagged = [response_id for of, response_id in folder.screen if of == code]
        runs = Counter(entry.run_id for response_id in flagged for entry in runs_of.get(response_id, ()))
        most = min(runs, key=lambda run_id: (-runs[run_id], natural_key(run_id)), default=None)
        words = SCREENED.get(code, code)  # type: ignore[call-overload]
        lines.append((words, codes[code], len(runs), None if most is None else f"{most} ({runs[most]})"))
    reading = (
        "Signs that can be counted without a judge. A flag is a reason to look, not a verdict; screen.tsv has each."
    )
    columns = (f"a {nouns.response} that", nouns.responses, "of runs", "most of one run")
    yield Table(lines, columns, "What the screen noticed", [reading])


def _missing_texts(folder: RunFolder) -> Iterator[ReportPart]:
    pool = folder.judged.pool
    lacking = sum(bool(lacking_texts(response, pool)) for response in pool.responses)
    if lacking:
        yield Said(
            f"{count(lacking, 'response')} used passages whose text is not known; missing_passages.tsv names them.",
            "warn",
        )
