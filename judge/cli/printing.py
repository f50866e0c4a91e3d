"""How commands speak: data on stdout as tables or JSON, messages on stderr, control characters made visible.

A table keeps to the width of the terminal, and emphasis is for where a person watches.
"""

import contextlib
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, TextIO

import msgspec

from judge.io.ids import groups_of
from judge.io.layout import table_lines
from judge.io.plan import OneOf, Options
from judge.io.printout import Printout
from judge.io.steps import ProgressLine, is_live
from judge.io.table import FORMS, Table
from judge.io.text import columns_of, fold, printable
from judge.judges.credentials import scrub
from judge.records import Problem

Style = Literal["heading", "warning", "error"]
_CODES: dict[Style, str] = {"heading": "1", "warning": "1;33", "error": "1;31"}
"""Emphasis by the codes of ECMA-48: bold, with yellow or red; a word always says the same as the color."""
USUAL = 80
"""The width of an output that is no terminal."""
READ = 110
"""The most columns of a sentence: longer lines are hard to read."""
_FEWEST = 40
_MOST = 240
_DIGITS = 9
"""Digits of a width that are read."""


def columns() -> int:
    """The columns of the terminal behind stdout; `COLUMNS`, if it is set; 80 elsewhere."""
    return known_columns() or USUAL


def known_columns() -> int | None:
    """As `columns`, or None for an output without a width, which a file or another program reads line by line."""
    given = os.environ.get("COLUMNS", "")
    # Python refuses to read a number of thousands of digits.
    if given.isdecimal() and (asked := int(given[:_DIGITS])):
        found = asked
    elif sys.stdout.isatty():
        found = shutil.get_terminal_size((USUAL, 24)).columns
    else:
        return None
    return min(max(found, _FEWEST), _MOST)


def styled(text: str, style: Style, stream: TextIO) -> str:
    """The text with emphasis, if the stream shows color."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and shows_color(stream) else text


def marked(line: str, style: Style) -> str:
    """A line for stderr, with emphasis on a first word such as `judge:` or `Warning:`."""
    head = next((head for head in ("judge:", "warning:", "Warning:") if line.startswith(head)), "")
    return styled(head, style, sys.stderr) + line[len(head) :]


def shows_color(stream: TextIO) -> bool:
    """Whether a stream shows color: a terminal does, others by `FORCE_COLOR`, and none where `NO_COLOR` is set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (is_live(stream))


_UNSEEN = re.compile("[^\x00-\x7f]")
SHOWN = 5
"""How many problems of one code are listed for one file, unless all are asked for."""
_FACT = 20
"""Columns of the name of a fact."""
_GOES_ON = " \\"
"""The end of a line after which a command goes on."""
EXAMPLES = 3
"""How many places a line about many problems names."""


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: int | Collection[int] = 1,
    keys: int | None = None,
    below: Sequence[str] = (),
    whole: str = "",
) -> None:
    """Print columns in the width of the terminal, as `table_lines`; `words`: their places, or how many are first."""
    words = range(words) if isinstance(words, int) else words
    first = [printable(cell) for cell in header]
    cells = [[printable(cell) for cell in row] for row in rows]
    remarks = [*map(printable, below)]
    color = shows_color(sys.stdout)
    for line in table_lines(first, cells, columns(), words=words, keys=keys, below=remarks, color=color, whole=whole):
        print(line)


def print_text(text: str, style: Style | None = None) -> None:
    """Print a sentence in lines of the terminal's width, later ones indented; leading spaces stay."""
    text = printable(text)
    start = " " * (len(text) - len(text.lstrip(" ")))
    for line in fold(text, min(columns(), READ) - len(start)) if text.strip() else [""]:
        print(styled(start + line, style, sys.stdout) if style else start + line)


def print_listed(text: str) -> None:
    """Print an entry of a list that people search and tools read: one line, unless the output has a width."""
    if known_columns() is None:
        print(printable(text))
    else:
        print_text(text)


def print_command(line: str) -> None:
    """Print a command that a person copies: in several lines, if it is too long, as a shell reads it."""
    start = " " * 2
    line = printable(line)
    width = columns() - len(start) - len(_GOES_ON)
    # A break inside quotes or a word would be another command.
    unbroken = known_columns() is None or "'" in line or max(map(columns_of, line.split())) > width - len(start)
    lines = [line] if unbroken else fold(line, width, start)
    print(f"{_GOES_ON}\n".join(start + part for part in lines))


def print_fact(name: str, text: str) -> None:
    """Print a name, padded, and what is known of it, in lines of the terminal's width."""
    first, *rest = fold(printable(text), columns() - _FACT, "")
    # Even a long name has a space behind it.
    print("\n".join([f"{name:<{_FACT - 1}} {first}", *(f"{' ' * _FACT}{line}" for line in rest)]))


def progress(what: str) -> ProgressLine:
    """The line on stderr that shows how far a job is, if it takes longer than two seconds."""
    return ProgressLine(sys.stderr, what)


def print_json(value: object) -> None:
    """Print a value as indented JSON, fields in the order of the record, a path as text.

    What `printable` would escape is written as JSON's escapes: it controls a terminal or cannot be seen.
    """
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
    if not text.isascii():
        text = _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1] if not match[0].isprintable() else match[0], text)
    print(text.replace("\x7f", "\\u007f"))


def _plain(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")


def say(text: str) -> None:
    """Say a line on stderr; a terminal, which would break it within words, has it in lines of its width."""
    line = printable(scrub(text))
    # A reader who stopped listening, or a terminal that is gone, is no reason to stop a job with paid calls under way.
    with contextlib.suppress(OSError):
        lines = [line]
        if is_live(sys.stderr) and columns_of(line) > columns():
            start = " " * (len(line) - len(line.lstrip(" ")))
            lines = [start + part for part in fold(line, columns() - len(start))]
        print(marked("\n".join(lines), "warning"), file=sys.stderr, flush=True)


def say_all(texts: Iterable[str], start: str = "") -> None:
    """Say lines on stderr, each with the same start."""
    for text in texts:
        say(f"{start}{text}")


def grouped(problems: Sequence[Problem], few: int = EXAMPLES, *, equal: bool = False) -> list[Problem]:
    """The problems of each file and code together: as they are up to `few`, else one for all, with the first places.

    So no file or code drowns another. `equal`: only those with the same message together.
    """
    groups = groups_of(((row.file, row.code, row.severity, row.message if equal else ""), row) for row in problems)
    lines: list[Problem] = []
    for group in groups.values():
        total = sum(problem.count for problem in group)
        if total <= few or len(group) == 1:
            lines += group
            continue
        places = [problem.where for problem in group if problem.where][:EXAMPLES]
        path = f"{total:,} places, first {', '.join(places)}" if places else f"{total:,} places"
        lines.append(msgspec.structs.replace(group[0], turn_id=None, path=path, count=total))
    return lines


def folded_lines(problems: Sequence[Problem], most: int) -> Iterator[str]:
    """One line per problem, one for several with the same message; else one for each file and code; at most `most`.

    What more than `EXAMPLES` files have in common is one line, which ends with their names.
    """
    told = _in_lines(grouped(problems, equal=True))
    lines = told if len(told) <= most else _in_lines(grouped(problems, 1))
    yield from lines[:most]
    if len(lines) > most:
        yield f"… and {len(lines) - most} more files or codes with problems"


def _in_lines(problems: Sequence[Problem]) -> list[str]:
    files = groups_of(((problem.code, problem.where, problem.message), problem.file) for problem in problems)
    lines: dict[str, None] = {}
    for problem in problems:
        names = list(dict.fromkeys(files[problem.code, problem.where, problem.message]))
        common = len(names) > EXAMPLES
        start = f"{len(names)} files" if common else problem.file
        end = f": {', '.join(names)}" if common else ""
        lines[f"{start}: {problem.code}{' at ' if problem.where else ''}{problem.where}: {problem.message}{end}"] = None
    return list(lines)


def problem_lines(problems: Sequence[Problem], shown: int | None) -> Iterator[str]:
    """One line per problem; after `shown` problems of one code in one file, one line that counts the rest."""
    totals = Counter((problem.file, problem.code) for problem in problems)
    listed: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = (problem.file, problem.code)
        listed[kind] += 1
        if shown is None or listed[kind] <= shown:
            head = f"{problem.file}: {problem.severity} {problem.code}"
            yield f"{head}{' ' if problem.where else ''}{problem.where}: {problem.message}"
        elif listed[kind] == shown + 1:
            rest = totals[kind] - shown
            yield f"{problem.file}: {problem.severity} {problem.code}: {rest} more (--all lists them)"


class TableFormat(Options, section="output"):
    """How tables are printed."""

    format: Annotated[str, OneOf(("table", *FORMS))] = "table"
    """How the tables are printed."""


def print_grids(grids: Sequence[Table[Any]], form: str) -> None:
    """Print tables in a form, with an empty line between two; as JSON, one list of them."""
    if form == "json":
        print_json([grid.to_object() for grid in grids])
        return
    for place, grid in enumerate(grids):
        print("\n" if place else "", end="")
        if form != "table":
            print(FORMS[form][1](grid), end="")
            continue
        print_text(grid.title, "heading")
        _print_grid(grid, "--format tsv")


def _print_grid(grid: Table[Any], whole: str) -> None:
    print_table(grid.names, list(grid.cells()), words=grid.words(), whole=whole)
    for note in grid.notes:
        print_text(note)


def show(printout: Printout, *, as_json: bool = False) -> int:
    """Print what a command has to say, as parts or as JSON, and return its exit code."""
    say_all(printout.warnings)
    if as_json:
        print_json(printout.data)
    else:
        for part in printout.parts:
            match part:
                case Table():
                    _print_grid(part, "--json")
                case str():
                    print_text(part)
                case Mapping():
                    for name, fact in part.items():
                        print_fact(name, str(fact))
                case _:
                    for entry in part:
                        print_listed(entry)
        for file in printout.files:
            print(printable(str(file)))
        say_all(printout.legend)
    say_all(printout.notes)
    return printout.exit
