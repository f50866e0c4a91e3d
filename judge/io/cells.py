"""Cells of reports: numbers as text, names that fit a width, texts of strangers in Markdown. Pure."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from judge.io.safe import escape, printable
from judge.records import Estimate


def decimals(number: float | None, places: int) -> str:
    """A number with `places` decimals, never `-0.0`; "" for None."""
    # Adding 0.0 turns -0.0, which rounding may leave, into 0.0.
    return "" if number is None else f"{round(number, places) + 0.0:.{places}f}"


def markdown_cell(text: str) -> str:
    """Text that shows as itself in a Markdown cell: no markup, no link, no HTML, no formula, no cell boundary."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~!#$])", r"\\\1", text)
    # GitHub makes links of bare addresses.
    text = re.sub(r"(?=://)|(?<=\bwww)(?=\.)", r"\\", text, flags=re.IGNORECASE)
    # An interval is no link.
    text = re.sub(r"\\\[([-+]?[0-9.]+, [-+]?[0-9.]+)\\\](?![\[(:])", r"[\1]", text)
    # Underscores inside a word are no markup, and common in run ids.
    return re.sub(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\_", text)


def number(value: float | None, places: int = 3, *, signed: bool = False) -> str:
    """A number for people; a dash for None.

    >>> number(-0.0001), number(0.5, 2, signed=True), number(None)
    ('0.000', '+0.50', '-')
    """
    text = decimals(value, places) or "-"
    return f"+{text}" if signed and value is not None and round(value, places) > 0 else text


def interval(estimate: Estimate | None, places: int = 3, *, signed: bool = False) -> str:
    """A value with its interval, `0.610 [0.480, 0.710]`; without an interval the value alone, or a dash."""
    if estimate is None or estimate.value is None:
        return "-"
    value = number(estimate.value, places, signed=signed)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = (number(end, places, signed=signed) for end in (estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def p_value(p: float | None) -> str:
    """A p-value with four decimals; a smaller one is `< 0.0001`, never zero."""
    return "< 0.0001" if p is not None and p < 0.0001 else number(p, 4)


def count(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> count(1, "judge"), count(2, "judge")
    ('1 judge', '2 judges')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def columns_of(text: str) -> int:
    """Terminal columns of a printable text: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def shorten(text: str, columns: int) -> str:
    """The text in at most `columns` columns; a longer one loses its middle, since both ends tell names apart.

    >>> shorten("local/qwen3-4b-instruct graded", 19)
    'local/qwe…ct graded'
    """
    if columns_of(text) <= columns:
        return text
    tail = fitting(text[::-1], (columns - 1) // 2)[::-1]
    return f"{fitting(text, columns - 1 - columns_of(tail))}…{tail}"


def fitting(text: str, columns: int) -> str:
    """The longest start of the text that takes at most `columns` columns."""
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:place]
    return text


def pad(text: str, columns: int) -> str:
    """The text with spaces after it up to `columns` columns."""
    return text + " " * (columns - columns_of(text))


def fold(text: str, columns: int, indent: str = "  ") -> list[str]:
    """The text in lines of at most `columns` columns, broken at spaces where possible; later lines are indented."""
    lines = [""]
    for word in text.split():
        while word:
            line = lines[-1]
            start = f"{line} " if line.strip() else line
            if columns_of(start + word) <= columns:
                lines[-1], word = start + word, ""
            elif line.strip():
                lines.append(indent)
            else:
                # A character wider than the line has a line of its own.
                head = fitting(word, columns - columns_of(line)) or word[0]
                lines[-1], word = line + head, word[len(head) :]
    return lines


_CODE = "\ue000"
"""What stands before and after code."""
_MARKER = re.compile(r"([0-9]{0,9})([-+=.)])")
"""What makes a list or a heading of a line that begins with it; the other signs of markup are escaped anywhere."""


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True, words: Collection[int] = (0,)
) -> str:
    """A table of Markdown cells; with `numbers`, all columns but those of `words` are aligned to the right."""
    rule = ["---:" if numbers and place not in words else "---" for place in range(len(header))]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def prose(text: str) -> str:
    """A text on one line, without markup."""
    return markdown_cell(printable(text))


def name_of(text: str) -> str:
    """An id without markup, escaped so that different ids look different."""
    return markdown_cell(escape(text))


def code(text: str) -> str:
    """What `told` shows as code, in words of judge's own."""
    return f"{_CODE}{text}{_CODE}"


def plain(text: str) -> str:
    """Words for `told` as a text without markup."""
    return text.replace(_CODE, "")


def told(text: str) -> str:
    r"""Words of judge's own with names in them, where code shows as such.

    >>> told(f"{code('a*')} of b*: 0.5 [0.4, 0.6] and [x](y)")
    '`a*` of b\\*: 0.5 [0.4, 0.6] and \\[x\\](y)'
    """
    # An even part stands outside of code; no name holds the mark, which nobody can see.
    parts = text.split(_CODE)
    return "".join(f"`{part}`" if place % 2 else prose(part) for place, part in enumerate(parts))


def listed(texts: Iterable[str]) -> str:
    """Texts without markup, with semicolons between them."""
    return "; ".join(map(prose, texts))


def quotation(text: str) -> str:
    r"""A text of several lines as a block quotation without markup, its lines kept.

    >>> quotation("The <b>6:10</b>:\n\n- on time")
    '> The &lt;b&gt;6:10&lt;/b&gt;:\n>\n> \\- on time'
    """
    lines = [_line(line) for line in text.splitlines()] or [""]
    # Two spaces at its end keep a line apart from the next one.
    breaks = ["  " * bool(line and after) for line, after in zip(lines, [*lines[1:], ""], strict=True)]
    return "\n".join((f"> {line}" if line else ">") + after for line, after in zip(lines, breaks, strict=True))


def _line(text: str) -> str:
    text = prose(text.strip())
    marker = _MARKER.match(text)
    return f"{marker[1]}\\{text[marker.end(1) :]}" if marker else text
