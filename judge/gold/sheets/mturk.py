"""A sheet for Amazon Mechanical Turk: the table of a batch, and the HTML of its form. Pure.

MTurk puts a row's values into the form as they are, for each `${column}`. So every text is HTML already, on one line,
in which nothing looks like a placeholder, and without the characters of four bytes that MTurk refuses in a table.
"""

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from judge.errors import InputError
from judge.gold.sheets.items import SheetItem
from judge.gold.sheets.table import table_bytes
from judge.io.cells import count
from judge.io.safe import shown
from judge.records import Problem

LARGEST = 65_535
"""The most bytes of a question that MTurk takes, the texts included."""
WRAPPING = 400
"""Bytes of the XML that MTurk puts around a form."""
_ID = re.compile(r"[\w.:/#@+~,;=()\[\]|-]+", re.ASCII)
_COLUMNS = ("turn_id", "response_id", "conversation", "response", "passages")
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def batch_and_form(items: Sequence[SheetItem], per_task: int, form: str) -> dict[str, bytes]:
    """The two files of a batch.

    Args:
        items: What is labeled, in the order of the tasks.
        per_task: How many items a worker sees on one page.
        form: The page, whose fields are numbered from 1 to `per_task`.

    Raises:
        InputError: An id cannot stand in a page, or a page is too long; each is listed.
    """
    problems = [
        Problem("wrong_id", "error", "pool", None, "", f"{shown(name)}: MTurk's page cannot hold this id")
        for item in items
        for name in (item.turn_id, item.response_id)
        if not _ID.fullmatch(name)
    ]
    rows: list[list[str]] = []
    for start in range(0, len(items), per_task):
        page = [_cells(item) for item in items[start : start + per_task]]
        rows.append([cell for cells in page for cell in cells] + [""] * len(_COLUMNS) * (per_task - len(page)))
    header = [f"{name}_{slot}" for slot in range(1, per_task + 1) for name in _COLUMNS]
    for number, row in enumerate(rows, 1):
        values = dict(zip(header, row, strict=True))
        size = len(_PLACEHOLDER.sub(lambda match, values=values: values[match[1]], form).encode()) + WRAPPING  # type: ignore[misc]
        if size > LARGEST:
            message = f"{size:,} bytes: MTurk takes {LARGEST:,}; {_advice(per_task)}"
            problems.append(Problem("too_long", "error", "batch.csv", values["turn_id_1"], f"row {number}", message))
    if problems:
        raise InputError(f"no sheet for MTurk: {count(len(problems), 'problem')}", problems)
    return {"batch.csv": table_bytes(header, rows).removeprefix(b"\xef\xbb\xbf"), "form.html": form.encode()}


def _advice(per_task: int) -> str:
    return "fewer --items-per-task" if per_task > 1 else "label it elsewhere, as with --to html"


def _cells(item: SheetItem) -> list[str]:
    who = [f"<p><b>About the user:</b> {markup(text)}</p>" for text in item.statements]
    who += [f"<p><b>{markup(name)}:</b> {markup(text)}</p>" for name, text in item.conversation]
    passages = [f"<li>{markup(text)}</li>" for text in item.passages]
    return [item.turn_id, item.response_id, "".join(who), markup(item.response), "".join(passages)]


def markup(text: str) -> Markup:
    r"""A text as HTML on one line, in ASCII where MTurk is particular, without a placeholder.

    >>> print(markup("a < ${b}\n"))
    a &lt; &#36;&#123;b}&#10;
    """
    signs = [_SIGNS.get(sign) or (f"&#{ord(sign)};" if ord(sign) > _TABLE else sign) for sign in text]
    if text[:1] in _FORMULA:
        # A cell that begins so would be disarmed with a sign that workers would see.
        signs[:1] = [f"&#{ord(text[0])};"]
    return Markup("".join(signs))  # noqa: S704 - every sign of markup is replaced


_SIGNS = {sign: str(escape(sign)) for sign in "&<>\"'"} | {sign: f"&#{ord(sign)};" for sign in "${\n\t"}
_TABLE = 0xFFFF
"""The last character of three bytes."""
_FORMULA = ("=", "+", "-", "@", " ")
