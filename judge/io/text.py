r"""Texts and numbers as people see them: safe on one line, in a message, in Markdown, in a width; and to store. Pure.

A character is shown as it is if `str.isprintable` says so; control characters, line breaks, zero-width characters,
bidirectional overrides, unusual spaces and lone surrogates become Python's escapes (`\n`, `\x1b`, `\u202e`).
"""

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

from judge.records import Estimate

SHOWN = 60
"""The most characters of a value that a message shows."""
MAX_ID = 200
"""The most characters of a usable id: ids become columns and sort keys."""

_ESCAPED = re.compile(r"""\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\nrt=+@"-]))""")
_SHORT = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"} | {sign: sign for sign in '=+@"-'}
_RUN = re.compile(r'(?![+-]?[0-9.]*$)[=+@"-](?!$)')
"""The start of a cell that a spreadsheet takes for a formula, or for a quotation that may hold one; no number."""


def printable(text: str) -> str:
    r"""The text on one line, without characters that control a terminal or cannot be seen; applied twice, the same.

    >>> print(printable("a\nb\x1b[1m \u202ec"))
    a\nb\x1b[1m \u202ec
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape(text: str) -> str:
    r"""As `printable`, with backslashes doubled, so that different texts stay different and `unescape` can undo it.

    >>> print(escape("a\nb"), escape(r"a\nb"))
    a\nb a\\nb
    """
    return printable(text.replace("\\", "\\\\"))


def escape_cell(text: str) -> str:
    r"""As `escape`, for a cell of a table: a text that a spreadsheet would run as a formula begins with a backslash.

    >>> print(escape_cell("=1+1"), escape_cell("-3.5"), escape_cell("a=b"))
    \=1+1 -3.5 a=b
    """
    text = escape(text)
    return f"\\{text}" if _RUN.match(text) else text


def disarmed(text: str) -> str:
    r"""A text for a cell that people read in a spreadsheet: as it is, except that it is never run as a formula.

    >>> print(disarmed("=1+1"), disarmed("-3.5"), disarmed("a=b"))
    \=1+1 -3.5 a=b
    """
    # Spreadsheets pass over white space before a formula.
    return f"\\{text}" if _RUN.match(text.lstrip()) else text


def unescape(text: str) -> str:
    """The text that `escape` or `escape_cell` was given; anything that is not an escape is kept."""
    return _ESCAPED.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _SHORT[match[4]]
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def shown(value: object) -> str:
    """A value for a message: named as in JSON, on one line, escaped, about `SHOWN` characters long.

    >>> shown("a" * 100) == repr("a" * 60) + "…", shown(None), shown([1, 2])
    (True, 'null', 'a list with 2 entries')
    """
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} entries"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) > 10**20:
        return "an integer of more than 20 digits"
    if isinstance(value, str):
        # Cut before escaping: the text may be of any length.
        return repr(value[:SHOWN]) + ("…" if len(value) > SHOWN else "")
    return repr(value)


def printable_id(text: str) -> str:
    """An id for records and messages: an unprintable or overlong id is escaped and shortened."""
    return text if text.isprintable() and len(text) <= MAX_ID else shown(text)


def has_content(text: str) -> bool:
    r"""Whether a text has anything to read: a letter, mark, number, punctuation or symbol.

    >>> [has_content(text) for text in ("a", "…", " \n", "\u200b\u2060")]
    [True, True, False, False]
    """
    return any(map(str.isalnum, text)) or any(unicodedata.category(c)[0] in "LMNPS" for c in text)


def storable(text: str) -> bool:
    """Whether a text can be sent and stored: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def digest(text: str) -> str:
    """SHA-256 of the text as UTF-8, in hexadecimal; a lone surrogate counts as the three bytes of its number."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` with the known name that is nearest; "" if none is near.

    >>> did_you_mean("groundednes", ["groundedness", "naturalness"]), did_you_mean("xyz", ["groundedness"])
    ('; did you mean groundedness?', '')
    """
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest to a word, upper and lower case alike; None if none is near."""
    # The hyphens of an option tell nothing.
    folded = {name.casefold().lstrip("-"): name for name in known}
    # Long strangers' words take long to compare, and no name of ours is long.
    near = difflib.get_close_matches(word.casefold().lstrip("-")[:80], folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def decimals(number: float | None, places: int) -> str:
    """A number with `places` decimals, never `-0.0`; "" for None."""
    # Adding 0.0 turns -0.0, which rounding may leave, into 0.0.
    return "" if number is None else f"{round(number, places) + 0.0:.{places}f}"


def markdown_cell(text: str) -> str:
    """Text that shows as itself in a Markdown cell: no markup, link, formula or HTML of its own, no cell boundary."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~!#$])", r"\\\1", text)
    # GitHub makes links of bare addresses; those of mail it finds behind any escape, but not across a comment.
    text = re.sub(r"(?=://)|(?<=www)(?=\.)", r"\\", text, flags=re.IGNORECASE)
    text = re.sub(r"(?=@[\w-]+\.)", "<!-- -->", text)
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


def dollars(amount: float) -> str:
    """An amount of money; a small one keeps two digits that say something."""
    if amount == 0:
        return "nothing"
    return f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.2g}"


def lasting(seconds: float) -> str:
    """A duration in the unit that fits.

    >>> lasting(0.25), lasting(75), lasting(7200)
    ('0.2 s', '1.2 min', '2.0 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


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
    """The text in lines of at most `columns` columns, broken at spaces where possible; later lines are indented.

    A word that is wider than a line is broken behind a sign between its parts, if one stands in the line's second half.

    >>> fold("judged/ikat-2025_run_1.jsonl is it", 18, "")
    ['judged/ikat-2025_', 'run_1.jsonl is it']
    """
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
                seam = max(map(head.rfind, "/_-.:")) + 1
                if 2 * seam > len(head):
                    head = head[:seam]
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
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


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


def examples(names: Iterable[str], most: int = 8) -> str:
    """The first names.

    >>> examples("ab", 2), examples("abc", 2)
    ('a, b', 'a, b, …')
    """
    every = list(names)
    return ", ".join(every[:most]) + (", …" if len(every) > most else "")


def tally(times: Mapping[str, int], most: int = 8) -> str:
    """Texts with how often each occurs, the most frequent first.

    >>> tally({"NA": 2, "Unsure": 5, "?": 1}, most=2)
    "'Unsure' (5), 'NA' (2) and 1 other"
    """
    often = sorted(times, key=lambda text: -times[text])
    said = ", ".join(f"{shown(text)} ({times[text]:,})" for text in often[:most])
    return f"{said} and {count(len(often) - most, 'other')}" if len(often) > most else said


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
