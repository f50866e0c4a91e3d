"""The problems of each file as a report, and as text for a terminal. Pure.

Problems are grouped by file and code, errors before warnings, codes in the order of the table of codes. Totals
include problems that are only counted, not listed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from judge.io.ids import groups_of
from judge.io.table import Cell, Column, Table
from judge.io.text import count, printable, printable_id, shown
from judge.records import Problem
from judge.runs.check import CODES, as_error
from judge.runs.records import Exclusion, Run, TokenCount
from judge.runs.tokens import countable

EXAMPLES = 3
"""Examples of one code and file in the text."""
TOKEN_RULES: tuple[tuple[str, str], ...] = (("bare", "bare"), ("english", "English"), ("whitespace", "white space"))
"""Ways of counting tokens, each with its name on a page."""


class Tokens(msgspec.Struct, frozen=True):
    """Lengths of a run's responses under one way of counting."""

    rule: str
    median: int
    longest: int
    over: int
    """Responses with more tokens than the limit."""


class FileReport(msgspec.Struct, frozen=True):
    """One file with its problems; the fields of a run are None where no run could be read."""

    file: str
    run_id: str | None
    team: str | None
    run_type: str | None
    format: str | None
    digest: str | None
    turns: int
    responses: int
    errors: int
    warnings: int
    problems: tuple[Problem, ...]
    exclusions: tuple[Exclusion, ...] = ()
    """The runs, turns and responses that will not be judged."""
    unchecked: tuple[str, ...] = ()
    """Codes of the checks that were not made."""
    tokens: tuple[Tokens, ...] = ()
    eval_response: bool | None = None
    """False if the run asks not to be judged."""
    year: int | None = None
    """The year of the topics that the run is for; None for no known year."""


def file_report(
    file: str,
    run: Run | None,
    problems: Sequence[Problem],
    exclusions: Sequence[Exclusion] = (),
    unchecked: Sequence[str] = (),
    tokens: Sequence[Tokens] = (),
    year: int | None = None,
) -> FileReport:
    """The report on one file; `run` is the run as read, with all its turns."""
    errors, warnings = _numbers(problems)
    return FileReport(
        file=file,
        run_id=run.run_id if run else None,
        team=run.team if run else None,
        run_type=run.run_type if run else None,
        format=run.format if run else None,
        digest=run.digest if run else None,
        turns=len(run.turns) if run else 0,
        responses=sum(len(turn.responses) for turn in run.turns) if run else 0,
        errors=errors,
        warnings=warnings,
        problems=tuple(problems),
        exclusions=tuple(exclusions),
        unchecked=tuple(unchecked),
        tokens=tuple(tokens),
        eval_response=run.eval_response if run else None,
        year=year,
    )


def _numbers(problems: Iterable[Problem]) -> tuple[int, int]:
    """The numbers of errors and of warnings, including those that are only counted."""
    counts = {"error": 0, "warning": 0}
    for problem in problems:
        counts[problem.severity] += problem.count
    return counts["error"], counts["warning"]


def number_of(problems: Iterable[Problem]) -> int:
    """The number of problems, including those that are only counted."""
    return sum(problem.count for problem in problems)


def with_problems(file: FileReport, between: Sequence[Problem], *, strict: bool = False) -> FileReport:
    """The report with the problems `between` runs, which take the run out; `strict` turns warnings into errors."""
    problems = (*file.problems, *between)
    run_id = printable_id(file.run_id or "")
    out = [
        Exclusion(run_id=run_id, turn_id="*", rank=None, reason=problem.code, detail=problem.message)
        for problem in between
    ]
    if strict:
        problems = tuple(map(as_error, problems))
    errors, warnings = _numbers(problems)
    return msgspec.structs.replace(
        file, problems=problems, errors=errors, warnings=warnings, exclusions=tuple(out[:1]) or file.exclusions
    )


def token_summary(run: Run, count_tokens: Callable[[str], TokenCount], limit: int) -> tuple[Tokens, ...]:
    """Lengths of a run's responses under every way of counting; empty if no response has a text to count."""
    texts = [response.text for turn in run.turns for response in turn.responses]
    counts = [count_tokens(text) for text in texts if countable(text)]
    if not (counts and run.eval_response):
        return ()
    lengths = {rule: sorted(getattr(tokens, rule) for tokens in counts) for rule, _ in TOKEN_RULES}
    return tuple(
        Tokens(rule, by_rule[(len(by_rule) - 1) // 2], by_rule[-1], sum(length > limit for length in by_rule))
        for rule, by_rule in lengths.items()
    )


def by_code(problems: Iterable[Problem]) -> list[tuple[str, str, list[Problem]]]:
    """(severity, code, its problems in their own order), errors first, then by the table of codes."""
    groups = groups_of(((problem.severity, problem.code), problem) for problem in problems)
    order = {code: place for place, code in enumerate(CODES)}
    kinds = sorted(groups, key=lambda kind: (kind[0] != "error", order.get(kind[1], len(order)), kind[1]))
    return [(severity, code, groups[severity, code]) for severity, code in kinds]


RUN_COLUMNS = ("file", "run", "errors", "warnings", "format", "turns", "responses", "type", "team", "year")


def run_table(files: Sequence[FileReport]) -> Table[Any]:
    """A line for each file; a dash where no run could be read, or where it does not say."""
    lines: list[tuple[Cell, ...]] = []
    for file in files:
        asks = ", asks not to be judged" if file.eval_response is False else ""
        texts = (file.run_id, file.format, f"{file.run_type or '-'}{asks}", file.team)
        run_id, form, kind, team = (printable_id(text) if text else "-" for text in texts)
        year = str(file.year) if file.year is not None else "-"
        sizes = (file.turns, file.responses) if file.format is not None else (None, None)
        name = printable(PurePath(_file_of(file)).name)
        lines.append((name, run_id, file.errors, file.warnings, form, *sizes, kind, team, year))
    return Table(rows=lines, columns=[Column(name, safe=True) for name in RUN_COLUMNS])


def text_lines(files: Sequence[FileReport], examples: int | None = EXAMPLES) -> Iterator[str]:
    """The files with problems as lines that are safe to print, and a total.

    Up to `examples` problems of a code and file have a line each, more are one line; None: a line each.
    """
    for file in files:
        if file.problems:
            yield printable(_head(file))
            yield from code_lines(file.problems, examples)
    yield total(files)


def code_lines(problems: Iterable[Problem], examples: int | None = EXAMPLES) -> Iterator[str]:
    """The problems of one file as lines that are safe to print, by code, as in `text_lines`."""
    for severity, code, group in by_code(problems):
        head = f"  {severity} {code} ({number_of(group)}){f': {CODES[code].meaning}' if code in CODES else ''}"
        if examples is not None and len(group) > examples:
            yield printable(head + _together(code, group, examples))
            continue
        yield printable(head)
        for problem in group:
            yield printable(f"    {problem.where}{': ' if problem.where else ''}{problem.message}")


def _together(code: str, problems: Sequence[Problem], examples: int) -> str:
    """Many problems of one code in words: the first places, the first message, the likely cause."""
    places = ", ".join(problem.where for problem in problems[:examples])
    cause = f"; likely cause: {CODES[code].cause}" if code in CODES and CODES[code].cause else ""
    listed = sum(problem.count == 1 and not problem.path.endswith("[*]") for problem in problems)
    return f". First at {places}: {problems[0].message}{cause} (`judge validate --all` lists {listed})"


def total(files: Sequence[FileReport]) -> str:
    """One line about all files."""
    names = {_file_of(file) for file in files}
    readable = {_file_of(file) for file in files if file.format is not None}
    errors = sum(file.errors for file in files)
    warnings = sum(file.warnings for file in files)
    runs = f" with {count(len(files), 'run')}" if len(names) < len(files) else ""
    return f"{count(len(names), 'file')}{runs}, {len(readable)} readable: {amounts_of(errors, warnings)}"


def _file_of(file: FileReport) -> str:
    """The file alone: a file with several runs is reported run by run, each with its name behind that of the file."""
    return file.file.removesuffix(f" ({file.run_id})")


def remaining(file: FileReport) -> str:
    """One line with the codes of a file's problems."""
    codes = found_codes(file)
    return printable(f"{file.file}: {amounts_of(file.errors, file.warnings)}{': ' if codes else ''}{codes}")


def found_codes(file: FileReport) -> str:
    """The codes of a file's problems, each with its number."""
    return ", ".join(f"{code} ({number_of(problems)})" for _, code, problems in by_code(file.problems))


def meaning(code: str) -> str:
    """The meaning of a code."""
    return CODES[code].meaning if code in CODES else "no description"


def _head(file: FileReport) -> str:
    amounts = amounts_of(file.errors, file.warnings)
    if file.format is None:
        return f"{file.file}: not read as a run: {amounts}"
    kind = f"{file.format}, {shown(file.run_type) if file.run_type else 'no run type'}"
    asks = ", asks not to be judged" if file.eval_response is False else ""
    return f"{_file_of(file)}: run {shown(file.run_id)}, {kind}, {count(file.turns, 'turn')}{asks}: {amounts}"


def amounts_of(errors: int, warnings: int) -> str:
    """Errors and warnings in words."""
    return f"{count(errors, 'error')}, {count(warnings, 'warning')}"
