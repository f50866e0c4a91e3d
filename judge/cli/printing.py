"""How commands speak: data on stdout as tables or JSON, messages on stderr, control characters made visible."""

import contextlib
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from judge.cli.look import READ, Style, columns, known_columns, marked, styled
from judge.draw.drawable import undrawn
from judge.files.progress import ProgressLine
from judge.models.secrets import scrub
from judge.records import Problem, Severity
from judge.text.cells import fold
from judge.text.layout import table_lines
from judge.text.safe import printable

_UNSEEN = re.compile("[^\x00-\x7f]")
SHOWN = 5
"""How many problems of one code are listed for one file, unless all are asked for."""
_FACT = 20
"""Columns of the name of a fact."""
EXAMPLES = 3
"""How many places a line about many problems names."""


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: int | Collection[int] = 1,
    keys: int | None = None,
    joined: Collection[int] = (),
    below: Sequence[str] = (),
) -> None:
    """Print columns in the width of the terminal: those with words to the left, the others, with numbers, to the right.

    Args:
        header: The names of the columns.
        rows: The cells of each row.
        words: Which columns hold words: so many at the beginning, or those at these places.
        keys: How many columns at the beginning name a row; by default, as many as tell the rows apart.
        joined: The columns that mean nothing without the one before them.
        below: A line for under each row, or an empty one.
    """
    words = range(words) if isinstance(words, int) else words
    first, *cells = ([printable(cell) for cell in row] for row in (header, *rows))
    lines = table_lines(first, cells, columns(), words=words, keys=keys, joined=joined, below=[*map(printable, below)])
    for line in lines:
        print(styled(line.text, "heading", sys.stdout) if line.heading else line.text)


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


def print_fact(name: str, text: str) -> None:
    """Print a name, padded, and what is known of it, in lines of the terminal's width."""
    first, *rest = fold(printable(text), columns() - _FACT, "")
    print("\n".join([f"{name:<{_FACT}}{first}", *(f"{' ' * _FACT}{line}" for line in rest)]))


def progress(what: str) -> ProgressLine:
    """The line on stderr that shows how far a job is, if it takes longer than two seconds."""
    return ProgressLine(sys.stderr, what)


def print_json(value: object) -> None:
    """Print a value as indented JSON, fields in the order of the record, a path as text, any mapping as an object.

    What `printable` would escape is written as JSON's escapes: it controls a terminal or cannot be seen.
    """
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
    if not text.isascii():
        text = _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1] if not match[0].isprintable() else match[0], text)
    print(text.replace("\x7f", "\\u007f"))


def _plain(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")


def say(text: str) -> None:
    """Say a line on stderr."""
    # A reader who stopped listening, or a terminal that is gone, is no reason to stop a job with paid calls under way.
    with contextlib.suppress(OSError):
        print(marked(printable(scrub(text)), "warning"), file=sys.stderr, flush=True)


def say_undrawn(pictures: str) -> None:
    """Say that pictures are missing among the files of a job, if matplotlib is not installed."""
    for line in undrawn(pictures):
        say(line)


def grouped(problems: Sequence[Problem], few: int = EXAMPLES) -> list[Problem]:
    """The problems of each file and code together: as they are up to `few`, else one for all, with the first places.

    So no file or code drowns another.
    """
    groups: dict[tuple[str, str, Severity], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.file, problem.code, problem.severity), []).append(problem)
    lines: list[Problem] = []
    for group in groups.values():
        total = sum(problem.count for problem in group)
        if total <= few or len(group) == 1:
            lines += group
            continue
        places = [where for problem in group if (where := _where(problem))][:EXAMPLES]
        path = f"{total:,} places, first {', '.join(places)}" if places else f"{total:,} places"
        lines.append(msgspec.structs.replace(group[0], turn_id=None, path=path, count=total))
    return lines


def folded_lines(problems: Sequence[Problem], most: int) -> Iterator[str]:
    """One line per problem; where these are more than `most`, one line for each file and code, and at most `most`."""
    if len(problems) > most:
        problems = grouped(problems, 1)
    for problem in problems[:most]:
        where = _where(problem)
        yield f"{problem.file}: {problem.code}{f' at {where}' if where else ''}: {problem.message}"
    if len(problems) > most:
        yield f"… and {len(problems) - most} more files or codes with problems"


def _where(problem: Problem) -> str:
    return " ".join(part for part in (problem.turn_id, problem.path) if part)


def problem_lines(problems: Sequence[Problem], shown: int | None) -> Iterator[str]:
    """One line per problem; after `shown` problems of one code in one file, one line that counts the rest."""
    totals = Counter((problem.file, problem.code) for problem in problems)
    listed: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = (problem.file, problem.code)
        listed[kind] += 1
        if shown is None or listed[kind] <= shown:
            where = _where(problem)
            head = f"{problem.file}: {problem.severity} {problem.code}"
            yield f"{head}{' ' if where else ''}{where}: {problem.message}"
        elif listed[kind] == shown + 1:
            rest = totals[kind] - shown
            yield f"{problem.file}: {problem.severity} {problem.code}: {rest} more (--all lists them)"
