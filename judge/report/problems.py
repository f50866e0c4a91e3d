"""What validation found, for people: grouped text for a terminal, a Markdown page for a team. Pure.

Both group by file and code, errors before warnings, codes in the order of the table of codes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median_low

import msgspec

from judge.ids import natural_key
from judge.records import Exclusion, Problem, Run, TokenCount, TokenRule
from judge.report.cells import count
from judge.report.markup import name_of, prose
from judge.report.mending import MENDING
from judge.text import digest, printable, printable_id, shown, storable
from judge.tokens import MAX_CHARS
from judge.trec import safe_names
from judge.validate import CODES

EXAMPLES = 3
"""Examples of one code and file in the text."""
PAGE_EXAMPLES = 20
"""Examples of one code on a page."""
EXCLUSIONS = 50
"""Responses and turns that will not be judged, of which a page names this many."""

_NAME_FILES = ("damaged_gzip", "duplicate_run_id", "similar_run_ids", "unreadable_file")
_RULES: tuple[tuple[str, str], ...] = (("bare", "bare"), ("english", "English"), ("whitespace", "white space"))


class Tokens(msgspec.Struct, frozen=True):
    """Lengths of a run's responses under one way of counting."""

    rule: str
    median: int
    longest: int
    over: int
    """Responses with more tokens than the limit."""


class Checked(msgspec.Struct, frozen=True):
    """One file and all that was found in it; what only a run has is None where none could be read."""

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
    """What will not be judged."""
    unchecked: tuple[str, ...] = ()
    """Codes of the checks that were not made."""
    tokens: tuple[Tokens, ...] = ()


def checked(
    file: str,
    run: Run | None,
    problems: Sequence[Problem],
    exclusions: Sequence[Exclusion] = (),
    unchecked: Sequence[str] = (),
    tokens: Sequence[Tokens] = (),
) -> Checked:
    """The findings on one file; `run` as it was read, with its turns."""
    errors = sum(problem.severity == "error" for problem in problems)
    return Checked(
        file=file,
        run_id=run.run_id if run else None,
        team=run.team if run else None,
        run_type=run.run_type if run else None,
        format=run.format if run else None,
        digest=run.digest if run else None,
        turns=len(run.turns) if run else 0,
        responses=sum(len(turn.responses) for turn in run.turns) if run else 0,
        errors=errors,
        warnings=len(problems) - errors,
        problems=tuple(problems),
        exclusions=tuple(exclusions),
        unchecked=tuple(unchecked),
        tokens=tuple(tokens),
    )


def with_problems(file: Checked, between: Sequence[Problem], *, strict: bool = False) -> Checked:
    """The findings with those between runs, which keep the whole run out; `strict` turns warnings into errors."""
    problems = (*file.problems, *between)
    out = [Exclusion(printable_id(file.run_id or ""), "*", None, one.code, one.message) for one in between]
    if strict:
        problems = tuple(msgspec.structs.replace(problem, severity="error") for problem in problems)
    errors = sum(problem.severity == "error" for problem in problems)
    return msgspec.structs.replace(
        file,
        problems=problems,
        errors=errors,
        warnings=len(problems) - errors,
        exclusions=tuple(out[:1]) or file.exclusions,
    )


def token_summary(run: Run, count_tokens: Callable[[str], TokenCount], limit: int) -> tuple[Tokens, ...]:
    """How long the responses of a run are, under every way of counting; nothing if none has a text to count."""
    texts = [response.text for turn in run.turns for response in turn.responses]
    counts = [count_tokens(text) for text in texts if text.strip() and len(text) <= MAX_CHARS and storable(text)]
    if not (counts and run.eval_response):
        return ()
    lengths = {rule: [getattr(one, rule) for one in counts] for rule, _ in _RULES}
    return tuple(
        Tokens(rule, median_low(found), max(found), sum(length > limit for length in found))
        for rule, found in lengths.items()
    )


def by_code(problems: Iterable[Problem]) -> list[tuple[str, str, list[Problem]]]:
    """(severity, code, its problems in their own order), errors first, then by the table of codes."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.severity, problem.code), []).append(problem)
    order = {code: place for place, code in enumerate(CODES)}
    kinds = sorted(groups, key=lambda kind: (kind[0] != "error", order.get(kind[1], len(order)), kind[1]))
    return [(severity, code, groups[severity, code]) for severity, code in kinds]


def text_lines(files: Sequence[Checked], examples: int | None = EXAMPLES) -> Iterator[str]:
    """The findings as lines that are safe to print; of each code and file `examples`, or all."""
    for file in files:
        yield printable(_head(file))
        for severity, code, problems in by_code(file.problems):
            yield printable(f"  {severity} {code} ({len(problems)}): {meaning(code)}")
            for problem in problems[:examples]:
                where = " ".join(part for part in (problem.turn_id, problem.path) if part)
                yield printable(f"    {where}{': ' if where else ''}{problem.message}")
            if examples is not None and len(problems) > examples:
                yield f"    … and {len(problems) - examples} more (--all lists them)"
    yield total(files)


def total(files: Sequence[Checked]) -> str:
    """One line about all files."""
    readable = sum(file.format is not None for file in files)
    errors, warnings = sum(file.errors for file in files), sum(file.warnings for file in files)
    return f"{count(len(files), 'file')}, {readable} readable as runs: {_amounts(errors, warnings)}"


def remaining(file: Checked) -> str:
    """One line about what is left in a repaired copy."""
    codes = ", ".join(f"{code} ({len(problems)})" for _, code, problems in by_code(file.problems))
    return printable(f"{file.file}: {_amounts(file.errors, file.warnings)}{': ' if codes else ''}{codes}")


def meaning(code: str) -> str:
    """What a code says."""
    return CODES[code][1] if code in CODES else "no description"


def _head(file: Checked) -> str:
    amounts = _amounts(file.errors, file.warnings)
    if file.format is None:
        return f"{file.file}: not read as a run: {amounts}"
    kind = f"{file.format}, {shown(file.run_type) if file.run_type else 'no run type'}"
    return f"{file.file}: run {shown(file.run_id)}, {kind}, {count(file.turns, 'turn')}: {amounts}"


def _amounts(errors: int, warnings: int) -> str:
    return f"{count(errors, 'error')}, {count(warnings, 'warning')}"


def page_names(files: Sequence[Checked]) -> dict[str, str]:
    """File to the name of its page: by run id where that is no other file's, else by file name.

    No page is named as the index is.
    """
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


def index_page(files: Sequence[Checked], pages: Mapping[str, str]) -> str:
    """The page that leads to the others; files without a page are listed with what was found."""
    rows = []
    for file in files:
        name = name_of(_base(file.file))
        link = f"[{name}]({pages[file.file]})" if file.file in pages else name
        run_id = name_of(file.run_id) if file.run_id else "-"
        out = str(len(file.exclusions)) if file.format else "-"
        rows.append((link, run_id, file.format or "-", str(file.errors), str(file.warnings), out))
    header = ("file", "run", "format", "errors", "warnings", "not judged")
    return f"# Validation\n\n{total(files)}.\n\n{_table(header, rows)}\n"


def run_page(file: Checked, limit: int, rule: TokenRule, *, strict: bool = False, examples: int | None = None) -> str:
    """One file's page, to be sent to its team: what is wrong, how to mend it, what will not be judged."""
    title = name_of(file.run_id or _base(file.file))
    parts = [f"# Validation of {title}", _summary(file, strict), *_codes(file, examples), _judged(file)]
    if file.tokens:
        parts.append(_lengths(file, limit, rule))
    parts.append(_checks(file))
    return "\n\n".join(parts) + "\n"


def _summary(file: Checked, strict: bool) -> str:
    rows = [("file", name_of(_base(file.file)))]
    if file.format is not None:
        rows += [
            ("run type", prose(file.run_type) if file.run_type else "none"),
            ("team", prose(file.team) if file.team else "not given in the file"),
            ("format", file.format),
            ("turns, responses", f"{file.turns}, {file.responses}"),
            ("SHA-256 of the file", file.digest or "-"),
        ]
    rows.append(("found", _amounts(file.errors, file.warnings)))
    kinds = "An error keeps a response, a turn or the run from being judged; a warning does not."
    if strict:
        kinds = "Warnings are counted as errors here; what will not be judged is listed below."
    if not file.problems:
        kinds = "Nothing is wrong with this file."
    return f"{_table(('', ''), rows)}\n\n{kinds}"


def _codes(file: Checked, examples: int | None) -> Iterator[str]:
    for severity, code, problems in by_code(file.problems):
        shown_here = problems if examples is None else problems[:examples]
        lines = [f"## {severity}: {code} ({len(problems)})", "", f"{prose(meaning(code))}."]
        if code in MENDING:
            lines += ["", f"To mend it: {MENDING[code]}."]
        rows = [(name_of(one.turn_id or "-"), prose(one.path) or "-", _message(file, one)) for one in shown_here]
        lines += ["", _table(("turn", "place", "found"), rows)]
        if len(problems) > len(shown_here):
            lines += ["", _left_out(len(problems) - len(shown_here))]
        yield "\n".join(lines)


def _message(file: Checked, problem: Problem) -> str:
    """A problem's message; where it names files, without the folder, which is no concern of a team."""
    message = problem.message
    folder = file.file.removesuffix(_base(file.file))
    return prose(message.replace(folder, "") if folder and problem.code in _NAME_FILES else message)


def _base(file: str) -> str:
    """The name of a file without its folder."""
    return file.replace("\\", "/").rpartition("/")[2]


def _judged(file: Checked) -> str:
    head = "## What will not be judged\n\n"
    if file.format is None:
        return head + "Nothing of this file, since it cannot be read as a run."
    if not file.exclusions:
        return head + "Nothing is left out for what was found here."
    if file.exclusions[0].turn_id == "*":
        return head + f"Nothing of this run: {name_of(file.exclusions[0].reason)}."
    rows = [
        (name_of(one.turn_id), "all" if one.rank is None else str(one.rank), name_of(one.reason), prose(one.detail))
        for one in sorted(file.exclusions, key=lambda one: natural_key(one.turn_id))
    ]
    more = "" if len(rows) <= EXCLUSIONS else f"\n\n{_left_out(len(rows) - EXCLUSIONS)}"
    return head + _table(("turn", "rank", "reason", "detail"), rows[:EXCLUSIONS]) + more


def _left_out(n: int) -> str:
    return f"{n} more {'is' if n == 1 else 'are'} not listed here."


def _lengths(file: Checked, limit: int, rule: TokenRule) -> str:
    labels = dict(_RULES)
    rows = [
        (labels[one.rule] + (" (the rule)" if one.rule == rule else ""), *map(str, (one.median, one.longest, one.over)))
        for one in file.tokens
    ]
    return f"## Length of the responses\n\n{_table(('tokens', 'median', 'longest', f'over {limit}'), rows)}"


def _checks(file: Checked) -> str:
    head = "## What was checked\n\n"
    if file.format is None:
        return head + "That the file can be read as a run."
    made = "The form of the file and the rules of its format: ids, ranks, scores, lengths, passages and statements."
    if not file.unchecked:
        return head + made
    rows = [(name_of(code), prose(meaning(code))) for code in file.unchecked]
    return f"{head}{made} Not checked, for want of topics or of the collection's list of passages:\n\n" + _table(
        ("code", "what it would say"), rows
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, all to the left."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
