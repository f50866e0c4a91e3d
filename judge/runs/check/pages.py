"""Reports on runs as Markdown: a page for the team of each run, and an index for the organizers. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from judge.io.ids import natural_key, safe_names
from judge.io.text import digest, name_of, printable_id, prose, shown, table
from judge.records import Problem
from judge.runs.check import CODES
from judge.runs.check import problems as codes
from judge.runs.records import TokenRule

PAGE_EXAMPLES = 20
"""The most examples of one code on a page."""
TEAMS = "teams"
"""The folder of the teams' pages."""
EXCLUSIONS = 50
"""The most exclusions that a page lists."""


def page_names(files: Sequence[codes.FileReport]) -> dict[str, str]:
    """The name of each file's page: its run id if no other file has it, else its file name; never that of the index."""
    names = {file.file: _base(file.file) for file in files}
    taken = [*names.values(), *(file.run_id for file in files if file.run_id)]
    labels = {
        file.file: file.run_id if file.run_id and taken.count(file.run_id) == 1 else names[file.file] for file in files
    }
    safe = safe_names(labels.values())
    pages = {}
    for file, label in labels.items():
        stem = safe[label]
        pages[file] = f"{stem}-{digest(label)[:12]}.md" if stem.lower() == "index" else f"{stem}.md"
    return pages


def team_names(files: Sequence[codes.FileReport]) -> dict[str, str]:
    """The name of each team's page, in a folder of its own, so that no run's page has it."""
    teams = sorted({file.team for file in files if file.format is not None and file.team}, key=natural_key)
    return {team: f"{TEAMS}/{name}.md" for team, name in safe_names(teams).items()}


def team_page(team: str, runs: Sequence[tuple[codes.FileReport, str]]) -> str:
    """All that one team should know: its runs in a table, then the page that stands beside each of them."""
    rows = [
        (
            name_of(printable_id(file.run_id or _base(file.file))),
            str(file.errors),
            str(file.warnings),
            _amount_out(file),
        )
        for file, _ in runs
    ]
    head = f"# Validation of the runs of {name_of(printable_id(team))}"
    # One heading level down, since the team's page has the first.
    pages = (re.sub("^(?=#+ )", "#", page, flags=re.MULTILINE).rstrip("\n") for _, page in runs)
    overview = table(("run", "errors", "warnings", "not judged"), rows, numbers=False)
    return "\n\n".join((head, overview, *pages)) + "\n"


def index_page(
    files: Sequence[codes.FileReport],
    pages: Mapping[str, str],
    teams: Mapping[str, str] | None = None,
    several_years: str | None = None,
) -> str:
    """The page that leads to the others; files without a page are listed with their problems.

    `pages` has a file and the name of its page, `teams` a team and the name of its page. `several_years` says which
    runs are of which year, where that is a problem.
    """
    rows = []
    for file in files:
        name = name_of(_base(file.file))
        link = f"[{name}]({pages[file.file]})" if file.file in pages else name
        run_id = name_of(printable_id(file.run_id)) if file.run_id else "-"
        amounts = (str(file.errors), str(file.warnings), prose(codes.found_codes(file)) or "-")
        rows.append((link, run_id, file.format or "-", *amounts, _amount_out(file)))
    header = ("file", "run", "format", "errors", "warnings", "codes", "not judged")
    parts = ["# Validation", f"{codes.total(files)}.", table(header, rows, numbers=False)]
    if several_years is not None:
        parts.insert(2, f"**error several_years**: {prose(several_years)}.")
    if teams:
        parts.append("Teams: " + ", ".join(f"[{name_of(printable_id(team))}]({page})" for team, page in teams.items()))
    return "\n\n".join(parts) + "\n"


def _amount_out(file: codes.FileReport) -> str:
    """The number of a file's exclusions, or "the run" where all of it is out."""
    if file.format is None:
        return "-"
    if file.eval_response is False:
        return "the run, as it asks (eval_response: false)"
    return "the run" if _is_out(file) else str(len(file.exclusions))


def _is_out(file: codes.FileReport) -> bool:
    return any(exclusion.turn_id == "*" for exclusion in file.exclusions)


def run_page(
    file: codes.FileReport, limit: int, rule: TokenRule, *, strict: bool = False, examples: int | None = None
) -> str:
    """One file's page for its team: the problems, how to fix them, and the exclusions.

    `limit` and `rule` are those of the longest response, `examples` the most of one code. Where checks are `strict`,
    warnings were turned into errors.
    """
    title = name_of(printable_id(file.run_id or _base(file.file)))
    parts = [f"# Validation of {title}", _summary(file, strict), *_codes(file, examples), _judged(file)]
    if file.tokens:
        parts.append(_lengths(file, limit, rule))
    parts.append(_checks(file))
    return "\n\n".join(parts) + "\n"


def _summary(file: codes.FileReport, strict: bool) -> str:
    rows = [("file", name_of(_base(file.file)))]
    if file.format is not None:
        rows += [
            ("run type", prose(printable_id(file.run_type)) if file.run_type else "none"),
            ("team", prose(printable_id(file.team)) if file.team else "not given in the file"),
            ("format", file.format),
            ("turns, responses", f"{file.turns}, {file.responses}"),
            ("SHA-256 of the file", file.digest or "-"),
        ]
    rows.append(("found", codes.amounts_of(file.errors, file.warnings)))
    kinds = "An error keeps a response, a turn or the run from being judged; a warning does not."
    if strict:
        kinds = "Warnings are counted as errors here; what will not be judged is listed below."
    if not file.problems:
        kinds = "Nothing is wrong with this file."
    return f"{table(('', ''), rows, numbers=False)}\n\n{kinds}"


def _codes(file: codes.FileReport, examples: int | None) -> Iterator[str]:
    for severity, code, problems in codes.by_code(file.problems):
        shown_here = problems if examples is None else problems[:examples]
        lines = [f"## {severity}: {code} ({codes.number_of(problems)})", "", f"{prose(codes.meaning(code))}."]
        if code in CODES and CODES[code].advice:
            lines += ["", f"To fix it: {CODES[code].advice}."]
        if code in CODES and CODES[code].cause and len(problems) > codes.EXAMPLES:
            lines += ["", f"Likely cause of so many: {CODES[code].cause}."]
        rows = [
            (name_of(problem.turn_id or "-"), prose(problem.path) or "-", _message(file, problem))
            for problem in shown_here
        ]
        lines += ["", table(("turn", "place", "found"), rows, numbers=False)]
        if len(problems) > len(shown_here):
            lines += ["", _left_out(codes.number_of(problems[len(shown_here) :]))]
        yield "\n".join(lines)


def _message(file: codes.FileReport, problem: Problem) -> str:
    """A problem's message without the folder and without other teams' files and runs."""
    message = problem.message
    row = CODES.get(problem.code)
    if row and row.page:
        message = row.page.format(shown(file.run_id))
    elif row and row.names_file:
        message = message.replace(file.file, _base(file.file))
    return prose(message)


def _base(file: str) -> str:
    """The name of a file without its folder."""
    return PurePath(file).name


def _judged(file: codes.FileReport) -> str:
    head = "## What will not be judged\n\n"
    if file.format is None:
        return head + "Nothing of this file, since it cannot be read as a run."
    if file.eval_response is False:
        asks = "The run asks not to be judged (`eval_response: false`), so its responses are pooled for nothing."
        return head + asks
    if not file.exclusions:
        return head + "Nothing is left out for what was found here."
    if _is_out(file):
        return head + f"Nothing of this run: {name_of(file.exclusions[0].reason)}."
    rows = [
        (name_of(out.turn_id), "all" if out.rank is None else str(out.rank), name_of(out.reason), prose(out.detail))
        for out in sorted(file.exclusions, key=lambda out: natural_key(out.turn_id))
    ]
    more = "" if len(rows) <= EXCLUSIONS else f"\n\n{_left_out(len(rows) - EXCLUSIONS)}"
    return head + table(("turn", "rank", "reason", "detail"), rows[:EXCLUSIONS], numbers=False) + more


def _left_out(n: int) -> str:
    return f"{n} more {'is' if n == 1 else 'are'} not listed here."


def _lengths(file: codes.FileReport, limit: int, rule: TokenRule) -> str:
    labels = dict(codes.TOKEN_RULES)
    rows = [
        (labels[row.rule] + (" (the rule)" if row.rule == rule else ""), *map(str, (row.median, row.longest, row.over)))
        for row in file.tokens
    ]
    header = ("tokens", "median", "longest", f"over {limit}")
    return f"## Length of the responses\n\n{table(header, rows)}"


def _checks(file: codes.FileReport) -> str:
    head = "## What was checked\n\n"
    if file.format is None:
        return head + "That the file can be read as a run."
    made = "The form of the file and the rules of its format: ids, ranks, scores, lengths, passages and statements."
    if not file.unchecked:
        return head + made
    rows = [(name_of(code), prose(codes.meaning(code))) for code in file.unchecked]
    return f"{head}{made} Not checked, for want of topics or of the collection's list of passages:\n\n" + table(
        ("code", "what it would say"), rows, numbers=False
    )
