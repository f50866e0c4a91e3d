"""A sheet for Label Studio: tasks to import and the labeling interface, with one control for each criterion. Pure.

Every text is shown by a `Text` tag, which shows markup as text. An alias makes the exported choice the grade itself; a
version without aliases exports the description, which the import of labels knows too.
"""

from xml.sax.saxutils import quoteattr

import msgspec

from judge.errors import UsageError
from judge.gold.grades import CANNOT, UNABLE
from judge.gold.sheets.items import GoldSheet, SheetItem, SheetRubric
from judge.gold.sheets.table import numbered, said

_DATA = ("turn_id", "response_id", "about_user", "conversation", "response", "passages", "comment")


def tasks_json(sheet: GoldSheet) -> bytes:
    """The tasks, one for each response."""
    return msgspec.json.format(msgspec.json.encode([{"data": _data(item, sheet)} for item in sheet.items])) + b"\n"


def config_xml(sheet: GoldSheet) -> bytes:
    """The labeling interface.

    Raises:
        UsageError: A criterion is called as a field of the tasks: exported tables have one column for both.
    """
    if taken := [rubric.criterion for rubric in sheet.rubrics if rubric.criterion in _DATA]:
        raise UsageError(f"Label Studio cannot have a criterion called {taken[0]}: a field of its tasks has this name")
    shown = _data(sheet.items[0], sheet).keys()
    lines = ["<View>", "  <Style>.htx-text { white-space: pre-wrap; }</Style>"]
    for name, title in (
        ("about_user", "About the user"),
        ("conversation", "Conversation"),
        ("response", "Response to assess"),
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
    texts = {
        "turn_id": item.turn_id,
        "response_id": item.response_id,
        "about_user": "\n".join(f"- {text}" for text in item.statements),
        "conversation": said(item),
        "response": item.response,
        "passages": numbered(item.passages),
    }
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
