"""Everything that is wrong with runs, pages for their teams, fixed copies: what `judge validate` does, from Python."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec

from judge.errors import UsageError
from judge.io.folder import check_apart, recorded, replace_folder, same_place
from judge.io.ids import groups_of, natural_key
from judge.io.plan import Option
from judge.io.printout import Printout
from judge.io.processes import mapped, processes_for
from judge.io.steps import Step, Steps, counted, quiet, stepped
from judge.io.text import count, examples, shown
from judge.jobs.options import NamedRuns, ResponseLimits
from judge.jobs.pooling import topics_of
from judge.pool.lists import read_teams
from judge.runs.check import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.pages import PAGE_EXAMPLES, TEAMS, index_page, page_names, run_page, team_names, team_page
from judge.runs.check.problems import (
    EXAMPLES,
    FileReport,
    file_report,
    remaining,
    run_table,
    text_lines,
    total,
    with_problems,
)
from judge.runs.check.responses import CollectionHashes
from judge.runs.check.validate import Checked, FileCheck, validate_together
from judge.runs.check.year import mixed_years
from judge.runs.document import file_name
from judge.runs.fix import LOG as FIXES
from judge.runs.fix import FixedCopy, FixFolder, fixed_copy
from judge.runs.profiles import Limits, described
from judge.runs.records import Turn
from judge.runs.tokens import TokenCounter
from judge.runs.topics import read_topics, turns_by_id

SCHEMA = 1
"""Version of what --json prints."""
RECORD = "pages.sha256"
"""The list of the pages, for `sha256sum -c`."""


class ValidationPlan(NamedRuns, ResponseLimits):
    """Everything `judge validate` can be told."""

    passage_hashes: Annotated[Path | None, Option(metavar="FILE")] = None
    """The collection's list of `doc_id passage_number MD5`, or its index, to check passage ids and texts."""
    strict: bool = False
    """Count warnings as errors."""
    lengths: Annotated[bool, Option(hidden=True)] = False
    """Count the tokens of every response in every way; pages need it and have it always."""
    report_dir: Annotated[Path | None, Option(metavar="DIR")] = None
    """Write one Markdown page per run and one per team, to send to the team; outside the runs' folder."""
    page_examples: Annotated[int | None, Option(hidden=True)] = PAGE_EXAMPLES
    """Problems of a code on a page; None for all."""
    fixed_dir: Annotated[Path | None, Option(hidden=True)] = None
    """Folder for fixed copies, outside the folder of runs."""
    teams: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run, tab, team, where the runs do not name their team."""


class FixedRuns(msgspec.Struct, frozen=True):
    """The fixed copies of a folder of runs."""

    folder: str
    fixes: int
    files: tuple[FileReport, ...]
    """The copies, with what is still wrong with them."""
    without_copy: tuple[FileReport, ...]
    """What has no copy, with all that is wrong with it."""


def validate_runs(plan: ValidationPlan, steps: Steps = quiet) -> Printout:
    """Check the runs one after the other, and write pages and fixed copies where the plan names a folder.

    The exit code is 1 if an error is left, in the copies and in what has none, or in the files where nothing was fixed;
    2 if a file cannot be read as a run at all.
    """
    of_file = None if plan.topics is None else read_topics(plan.topics)
    sources = plan.sources()
    topics = topics_of(plan.topics, of_file, sources)
    turns = None if topics is None else turns_by_id(topics)
    limits = plan.limits(turns)
    check = _check(plan, turns, limits)
    runs = [place for place in plan.runs if isinstance(place, Path)]
    files_of_runs = sources.files
    if plan.report_dir is not None:
        check_apart(plan.report_dir, (*runs, *files_of_runs), runs)
        if plan.fixed_dir is not None and same_place(plan.report_dir, plan.fixed_dir):
            raise UsageError("the pages and the fixed copies need different folders")
    folder = FixFolder(plan.fixed_dir, runs, files_of_runs) if plan.fixed_dir is not None else None
    # An open list of hashes belongs to this process.
    processes = processes_for(files_of_runs) if plan.passage_hashes is None else 1
    with closing(mapped(check, files_of_runs, processes)) as done:
        results = counted("checking runs", done, len(files_of_runs), steps)
        checked = dict(zip(files_of_runs, results, strict=True))
    of_tables = [] if sources.tables is None else [check(read) for read in sources.tables.runs]
    unread: list[Checked] = [(file_report(problem.file, None, [problem]), None, None) for problem in sources.problems]
    every = [*checked.values(), *of_tables]
    files = _together([*unread, *every], strict=plan.strict)
    several_years = mixed_years([trace for _, _, trace in every if trace is not None])
    if plan.report_dir is not None:
        steps(Step("writing pages"))
        _write_pages(plan, limits, plan.report_dir, files, files_of_runs, several_years)
    unreadable = any(run is None for _, run, _ in every) or any(file.errors for file, *_ in unread)
    fixed: FixedRuns | None = None
    refused: tuple[tuple[str, str], ...] = ()
    if folder is not None:
        fixed, refused = _fix(folder, check, stepped("fixing runs", checked.items(), steps), unread, plan.strict)
    left = files if fixed is None else (*fixed.files, *fixed.without_copy)
    errors = several_years is not None or any(file.errors for file in left)
    most = None if plan.page_examples is None else EXAMPLES
    return Printout(
        data={
            "schema": SCHEMA,
            "errors": sum(file.errors for file in files),
            "warnings": sum(file.warnings for file in files),
            "limits": limits.recorded(),
            "several_years": several_years,
            "files": files,
            "fixed": fixed,
        },
        parts=(run_table(files), "", tuple(_lines(files, several_years, fixed, most))),
        warnings=tuple(f"{name}: {reason}; no copy was written" for name, reason in refused),
        notes=(*sources.notes, *_unchecked(files), *_limits_in_words(limits, files)),
        exit=2 if unreadable else int(errors),
    )


def _lines(
    files: Sequence[FileReport], several_years: str | None, fixed: FixedRuns | None, most: int | None
) -> Iterator[str]:
    """What is wrong with the files, and with their copies."""
    if several_years is not None:
        yield f"error several_years: {several_years}"
    yield from text_lines(files, most)
    if fixed is None:
        return
    yield ""
    yield f"fixed copies in {fixed.folder}: {count(fixed.fixes, 'fix', 'fixes')}, listed in {FIXES}; what remains:"
    for file in fixed.files:
        yield f"  {remaining(file)}"
    if fixed.without_copy:
        yield "without a copy:"
    for file in fixed.without_copy:
        yield f"  {remaining(file)}"
    yield total((*fixed.files, *fixed.without_copy))


def _limits_in_words(limits: Limits, files: Sequence[FileReport]) -> Iterator[str]:
    """The limits, once for each profile that the formats of the files have."""
    of_formats = dict.fromkeys(limits.of_format(file.format) for file in files if file.format is not None)
    for held in of_formats or (limits,):
        yield f"limits: {described(held)}"


def _unchecked(files: Sequence[FileReport]) -> Iterator[str]:
    """Which checks were not made, because topics or hashes were not given."""
    unchecked: set[str] = set()
    for file in files:
        unchecked.update(file.unchecked)
    for option, needing in (("--topics", NEEDS_TOPICS), ("--passage-hashes", NEEDS_HASHES)):
        codes = sorted(unchecked & set(needing))
        if codes:
            yield f"not checked without {option}: {', '.join(codes)}"


def _check(plan: ValidationPlan, turns: Mapping[str, Turn] | None, limits: Limits) -> FileCheck:
    """What checks the files, with everything in hand that the plan names."""
    tokens = TokenCounter(rule=limits.token_rule, limit=limits.token_limit)
    teams = read_teams(plan.teams) if plan.teams is not None else {}
    hashes: CollectionHashes | None = None
    if plan.passage_hashes is not None:
        from judge.passages import same_text
        from judge.passages.hashes import open_hashes

        hashes = CollectionHashes(open_hashes(plan.passage_hashes).find, same_text)
    # The terminal has no room for lengths, and they need all counts of every text.
    lengths = plan.lengths or plan.report_dir is not None
    return FileCheck(
        format=plan.format, turns=turns, tokens=tokens, limits=limits, hashes=hashes, lengths=lengths, teams=teams
    )


def _together(checked: Sequence[Checked], *, strict: bool) -> tuple[FileReport, ...]:
    """The files in natural order, with what is wrong between runs."""
    together = validate_together([run for _, run, _ in checked if run is not None])
    between = groups_of((problem.file, problem) for problem in together)
    reports: list[FileReport] = []
    for file in sorted((file for file, *_ in checked), key=lambda file: natural_key(file.file)):
        reports.append(with_problems(file, between.get(file.file, ()), strict=strict))
    return tuple(reports)


def _fix(
    folder: FixFolder, check: FileCheck, checked: Iterable[tuple[Path, Checked]], rest: Sequence[Checked], strict: bool
) -> tuple[FixedRuns, tuple[tuple[str, str], ...]]:
    """Write the fixed copies and check them, together with what has no copy; and why it has none."""
    fixes = 0
    copies: list[Checked] = []
    others = list(rest)
    refused: list[tuple[str, str]] = []
    with folder:
        for path, (file, run, trace) in checked:
            if run is None:
                fixed = FixedCopy(None, refused="not fixed: it cannot be read as a run")
            else:
                fixed = fixed_copy(path, run, check.tokens, check.format)
            copy = folder.write(path, fixed)
            if copy is None:
                refused.append((file_name(path), str(fixed.refused)))
                others.append((file, run, trace))
                continue
            fixes += len(fixed.fixes)
            copies.append(check(copy))
    names = {file.file for file, *_ in copies}
    left = _together([*copies, *others], strict=strict)
    with_copy = tuple(file for file in left if file.file in names)
    without_copy = tuple(file for file in left if file.file not in names)
    return FixedRuns(file_name(folder.folder), fixes, with_copy, without_copy), tuple(refused)


def _write_pages(
    plan: ValidationPlan,
    limits: Limits,
    folder: Path,
    files: Sequence[FileReport],
    runs: Sequence[Path],
    several_years: str | None,
) -> None:
    """One page per run, or per file that should be one, one per team, and the index."""
    names = page_names([file for file in files if file.format or file.errors])
    by_file = {
        file.file: run_page(
            file,
            limits.of_format(file.format or "").token_limit,
            limits.of_format(file.format or "").token_rule,
            strict=plan.strict,
            examples=plan.page_examples,
        )
        for file in files
        if file.file in names
    }
    pages = {names[file]: page for file, page in by_file.items()}
    teams = team_names(files)
    for team, name in teams.items():
        pages[name] = team_page(team, [(file, by_file[file.file]) for file in files if file.team == team])
    pages["index.md"] = index_page(files, names, teams, several_years)
    own = {name for name, _ in recorded(folder, RECORD)}
    present = sorted(str(path.relative_to(folder)) for path in (*folder.glob("*.md"), *(folder / TEAMS).glob("*.md")))
    # A page of somebody else's would be sent with the others.
    if strange := [name for name in present if name not in pages and name not in own]:
        some = examples(map(shown, strange), EXAMPLES)
        message = f"holds pages that this call does not write: {some}; remove them or choose another folder"
        raise UsageError(f"{folder}: {message}")
    contents = {name: page.encode("utf-8", "backslashreplace") for name, page in pages.items()}
    inputs = [*runs, *(path for path in (plan.topics, plan.passage_hashes, plan.teams) if path is not None)]
    replace_folder(folder, contents, RECORD, inputs=inputs)
