"""What a terminal can show: its width, and emphasis where a person watches."""

import os
import shutil
import sys
from typing import Literal, TextIO

from judge.files.progress import is_live

Style = Literal["heading", "warning", "error"]
_CODES: dict[Style, str] = {"heading": "1", "warning": "1;33", "error": "1;31"}
"""Emphasis by the codes of ECMA-48: bold, with yellow or red; a word always says the same as the color."""
USUAL = 80
"""The width of an output that is no terminal."""
READ = 110
"""The most columns of a sentence: longer lines are hard to read."""
_FEWEST, _MOST = 40, 240
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
