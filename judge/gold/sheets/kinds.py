"""The files of each kind of sheet: for a spreadsheet, a page, Amazon Mechanical Turk and Label Studio.

MTurk puts a row's values into its form as they are, for each `${column}`. So every text is HTML already, on one line,
in which nothing looks like a placeholder, and without the characters of four bytes that MTurk refuses in a table.

Label Studio shows every text by a `Text` tag, which shows markup as text. An alias makes the exported choice the grade
itself; a version without aliases exports the description, which the import of labels knows too.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import msgspec
from markupsafe import Markup, escape

from judge.errors import UsageError, refuse
from judge.gold import CANNOT, UNABLE
from judge.gold.sheets import GoldSheet, SheetItem, SheetRubric, shares
from judge.io.files import sha256
from judge.io.page import look, policy, render_page
from judge.io.text import count, disarmed, shown
from judge.records import file_problem

COLUMNS = ("turn_id", "response_id", "criterion", "assessor", "grade", "comment", "about_user", "conversation")
"""Columns of the sheet, before the response and its passages."""
LARGEST_CELL = 32_767
"""The most characters that a spreadsheet shows in a cell."""


def sheet_csv(noun: str, assessor: str, items: Sequence[SheetItem]) -> bytes:
    """The rows that one assessor fills in; `noun` heads the texts to grade."""
    # A cell for each passage: a spreadsheet cuts a cell that holds them all.
    most = max((len(item.passages) for item in items), default=0)
    rows: list[tuple[str, ...]] = []
    for item in items:
        for criterion in item.criteria:
            rows.append((item.turn_id, item.response_id, criterion, assessor, "", "", *_texts(item, most)))
    return _table_bytes((*COLUMNS, noun, *(f"passage_{n}" for n in range(1, most + 1))), rows)


def long_cells(sheet: GoldSheet) -> int:
    """How many texts are longer than a spreadsheet shows."""
    texts = chain.from_iterable(_texts(item, len(item.passages)) for item in sheet.items)
    return sum(len(text) > LARGEST_CELL for text in texts)


def levels_csv(sheet: GoldSheet) -> bytes:
    """What each grade means, below what to look at."""
    rows: list[tuple[str, str, str]] = []
    for rubric in sheet.rubrics:
        rows += [(rubric.criterion, "", paragraph) for paragraph in rubric.guidance]
        rows += [(rubric.criterion, str(grade), description) for grade, description in rubric.levels]
        rows.append((rubric.criterion, UNABLE, f"{CANNOT}."))
    return _table_bytes(("criterion", "grade", "meaning"), rows)


def _table_bytes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """A CSV file that spreadsheets read as UTF-8, in which no cell is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([disarmed(cell) for cell in row] for row in rows)
    # Spreadsheets take a file without the mark for one in the encoding of their own country.
    return text.getvalue().encode("utf-8-sig")


def _texts(item: SheetItem, passages: int) -> tuple[str, ...]:
    """What is read, a line for each utterance, with as many cells for passages as the table has columns for them."""
    statements = "\n".join(f"- {text}" for text in item.statements)
    conversation = "\n".join(f"{who}: {text}" for who, text in item.conversation)
    blank = [""] * (passages - len(item.passages))
    return statements, conversation, item.response, *item.passages, *blank


LARGEST = 65_535
"""The most bytes of a question that MTurk takes, the texts included."""
WRAPPING = 400
"""Bytes of the XML that MTurk puts around a form."""
_ID = re.compile(r"[\w.:/#@+~,;=()\[\]|-]+", re.ASCII)
_COLUMNS = ("turn_id", "response_id", "conversation", "response", "passages")
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def batch_and_form(items: Sequence[SheetItem], per_task: int, form: str) -> dict[str, bytes]:
    """The two files of a batch: workers see `per_task` items on a page, whose fields are numbered from 1.

    An InputError if an id cannot stand in a page, or a page is too long; each is listed.
    """
    problems = []
    for name in chain.from_iterable((item.turn_id, item.response_id) for item in items):
        if not _ID.fullmatch(name):
            problems.append(file_problem("wrong_id", "pool", f"{shown(name)}: MTurk's page cannot hold this id"))
    rows: list[list[str]] = []
    for start in range(0, len(items), per_task):
        page = items[start : start + per_task]
        blank = [""] * len(_COLUMNS) * (per_task - len(page))
        rows.append([*chain.from_iterable(map(_cells, page)), *blank])
    header = [f"{name}_{slot}" for slot, name in product(range(1, per_task + 1), _COLUMNS)]
    for number, row in enumerate(rows, 1):
        values = dict(zip(header, row, strict=True))
        size = len(_PLACEHOLDER.sub(lambda match, values=values: values[match[1]], form).encode()) + WRAPPING  # type: ignore[misc]
        if size > LARGEST:
            advice = "fewer --items-per-task" if per_task > 1 else "label it elsewhere, as with --to html"
            message = f"{size:,} bytes: MTurk takes {LARGEST:,}; {advice}"
            problems.append(
                file_problem("too_long", "batch.csv", message, f"row {number}", turn_id=values["turn_id_1"])
            )
    refuse(problems, f"no sheet for MTurk: {count(len(problems), 'problem')}")
    return {"batch.csv": _table_bytes(header, rows).removeprefix(b"\xef\xbb\xbf"), "form.html": form.encode()}


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


_DATA = ("turn_id", "response_id", "about_user", "conversation", "response", "passages", "comment")


def config_xml(sheet: GoldSheet) -> bytes:
    """The labeling interface.

    A UsageError if a criterion is called as a field of the tasks: exported tables have one column for both.
    """
    if taken := [rubric.criterion for rubric in sheet.rubrics if rubric.criterion in _DATA]:
        raise UsageError(f"Label Studio cannot have a criterion called {taken[0]}: a field of its tasks has this name")
    shown = _data(sheet.items[0], sheet).keys()
    lines = ["<View>", "  <Style>.htx-text { white-space: pre-wrap; }</Style>"]
    for name, title in (
        ("about_user", "About the user"),
        ("conversation", "Conversation"),
        ("response", f"{sheet.noun.capitalize()} to assess"),
        ("passages", "Passages it names"),
    ):
        if name in shown:
            lines.append(f"  <Header value={_attribute(title)}/>")
            lines.append(f'  <Text name="{name}" value="${name}" valueType="text"/>')
    for rubric in sheet.rubrics:
        lines += _control(rubric)
    lines += ['  <TextArea name="comment" toName="response" rows="2" maxSubmissions="1" placeholder="Comment"/>']
    return ("\n".join([*lines, "</View>"]) + "\n").encode()


def _data(item: SheetItem, sheet: GoldSheet) -> dict[str, str]:
    # Passages stand under their numbers, as a judge sees them.
    passages = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(item.passages, 1))
    texts = dict(zip(_DATA, (item.turn_id, item.response_id, *_texts(item, 0)[:3], passages), strict=False))
    # A tag whose field a task lacks is an error, so all tasks have the same fields.
    present = {"turn_id", "response_id", "response"}
    present |= {"passages"} if sheet.shows_passages else set()
    present |= {"about_user"} if any(each.statements for each in sheet.items) else set()
    present |= {"conversation"} if any(each.conversation for each in sheet.items) else set()
    return {name: text for name, text in texts.items() if name in present}


def _control(rubric: SheetRubric) -> list[str]:
    choices = [(description, str(grade)) for grade, description in rubric.levels]
    return [
        f"  <Header value={_attribute(rubric.criterion)}/>",
        *(f'  <Header size="6" value={_attribute(paragraph)}/>' for paragraph in rubric.guidance),
        f'  <Choices name="{rubric.criterion}" toName="response" choice="single-radio" required="true">',
        *(
            f"    <Choice value={_attribute(text)} alias={_attribute(alias)}/>"
            for text, alias in (*choices, (CANNOT, UNABLE))
        ),
        "  </Choices>",
    ]


def _attribute(text: str) -> str:
    # A value that holds a dollar sign would name a field of the task.
    return quoteattr(text.replace("$", "＄"))


_PAGES = Path(__file__).parent / "pages"


def form_page(sheet: GoldSheet, assessor: str, items: Sequence[SheetItem]) -> bytes:
    """The page of one assessor: it holds all texts, keeps the labels, and gives them as a table to download."""
    style = look() + (_PAGES / "form.css").read_text(encoding="utf-8")
    script = (_PAGES / "form.js").read_text(encoding="utf-8")
    # Labels are kept by what was labeled, so that another sheet of the same name never takes them over.
    key = sha256(msgspec.json.encode((sheet.rubrics, (assessor, items))))[:16]
    page = render_page(
        _PAGES,
        "form.html",
        policy=policy([script], [style]),
        style=Markup(style),  # noqa: S704 - our own style sheets
        script=Markup(script),  # noqa: S704 - our own script
        key=key,
        assessor=assessor,
        noun=sheet.noun,
        items=items,
        labels=sum(len(item.criteria) for item in items),
        rubrics=tuple(map(_shown, sheet.rubrics)),
        passages=sheet.shows_passages,
    )
    return page.encode()


def worker_form(sheet: GoldSheet, per_task: int) -> str:
    """The form of a batch, with a numbered part for each response of a task and MTurk's placeholders for the texts."""
    rubrics: list[dict[str, Any]] = []
    for rubric in map(_shown, sheet.rubrics):
        rubrics.append(
            {
                "criterion": rubric["criterion"],
                "guidance": tuple(map(markup, rubric["guidance"])),
                "choices": tuple((value, markup(meaning)) for value, meaning in rubric["choices"]),
            }
        )
    return render_page(
        _PAGES,
        "mturk.html",
        noun=sheet.noun,
        rubrics=rubrics,
        slots=range(1, per_task + 1),
        conversation=any(item.conversation or item.statements for item in sheet.items),
        passages=sheet.shows_passages,
    )


def _shown(rubric: SheetRubric) -> dict[str, Any]:
    """A rubric as the templates show it: what an assessor may choose stands with what it means."""
    choices = [(str(grade), description) for grade, description in rubric.levels]
    return {"criterion": rubric.criterion, "guidance": rubric.guidance, "choices": (*choices, (UNABLE, CANNOT))}


class SheetOptions(NamedTuple):
    """Who labels what, in which order."""

    assessors: tuple[str, ...] = ()
    double: float | None = None
    """The share of the items that every assessor labels, each other one being labeled by one; None for DOUBLE."""
    per_task: int = 1
    """How many responses a worker sees on one page of MTurk."""
    seed: int = 0


def _csv(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    files = {f"{name}.csv": sheet_csv(sheet.noun, *share) for name, share in _by_assessor(sheet, options).items()}
    return {**files, "levels.csv": levels_csv(sheet)}


def _html(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    return {f"{name}.html": form_page(sheet, *share) for name, share in _by_assessor(sheet, options).items()}


def _by_assessor(sheet: GoldSheet, options: SheetOptions) -> dict[str, tuple[str, tuple[SheetItem, ...]]]:
    dealt = shares(sheet.items, options.assessors, options.double, options.seed)
    return {f"sheet-{name}" if name else "sheet": (name, items) for name, items in dealt.items()}


def _mturk(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    items = _of_platform(sheet, options)
    per_task = min(options.per_task, len(items))
    return batch_and_form(items, per_task, worker_form(sheet, per_task))


def _label_studio(sheet: GoldSheet, options: SheetOptions) -> dict[str, bytes]:
    tasks = msgspec.json.encode([{"data": _data(item, sheet)} for item in _of_platform(sheet, options)])
    return {"tasks.json": msgspec.json.format(tasks) + b"\n", "config.xml": config_xml(sheet)}


def _of_platform(sheet: GoldSheet, options: SheetOptions) -> tuple[SheetItem, ...]:
    if options.assessors or options.double is not None:
        raise UsageError("--assessor and --double belong to csv and html: a platform deals out the work itself")
    return shares(sheet.items, (), None, options.seed)[""]


SHEETS: dict[str, Callable[[GoldSheet, SheetOptions], dict[str, bytes]]] = {
    "csv": _csv,
    "html": _html,
    "labelstudio": _label_studio,
    "mturk": _mturk,
}
