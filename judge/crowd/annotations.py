"""Label Studio's annotations as rows: exports as JSON, JSON-MIN and CSV. Pure.

Its JSON is a list of tasks, each with the data that was shown and the annotations made; `completed_by` is the
annotator's number, or an object with an email. JSON-MIN and CSV have a row for each annotation, with the task's data,
`annotator`, `annotation_id`, `lead_time`, and a column for each control of the labeling interface. A choice, rating or
number stands in a value such as `{"choices": ["Mostly grounded"]}` or `[{"rating": 2}]`, which CSV writes as JSON.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.records import Problem

_VALUES = ("choices", "rating", "number", "text", "taxonomy")
"""Fields of a result's value that hold a label."""


def annotation_rows(values: Sequence[Mapping[str, Any]], file: str, problems: list[Problem]) -> list[tuple[int, Any]]:
    """Each row with the number of its entry in the list: of a task, one row for each annotation; else the entry itself.

    Annotations that were cancelled (skipped tasks) are left out, with a warning.
    """
    rows: list[tuple[int, Any]] = []
    cancelled: list[int] = []
    for number, entry in enumerate(values, start=1):
        annotations = entry.get("annotations")
        if not (isinstance(annotations, list) and isinstance(entry.get("data"), dict)):
            minimal = "annotation_id" in entry
            rows.append((number, {name: plain_value(cell) if minimal else cell for name, cell in entry.items()}))
            continue
        for annotation in annotations:
            if not isinstance(annotation, dict):
                continue
            if annotation.get("was_cancelled"):
                cancelled.append(number)
                continue
            about = {name: annotation.get(name) for name in ("id", "lead_time")}
            row = {
                **entry["data"],
                "annotator": _annotator(annotation.get("completed_by")),
                "annotation_id": about["id"],
                "lead_time": about["lead_time"],
            }
            results = annotation.get("result")
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict) and isinstance(name := result.get("from_name"), str):
                    row[name] = plain_value(result.get("value"))
            rows.append((number, row))
    if cancelled:
        message = f"{len(cancelled)} cancelled annotation{'s' * (len(cancelled) > 1)} left out; this is the first"
        problems.append(Problem("row_left_out", "warning", file, None, f"entry {cancelled[0]}", message))
    return rows


def _annotator(completed_by: Any) -> Any:
    if isinstance(completed_by, dict):
        return completed_by.get("email") or completed_by.get("id")
    return completed_by


def plain_value(value: Any) -> Any:
    """The label in a value of Label Studio; any other value as it is.

    >>> plain_value({"choices": ["Mostly grounded"]}), plain_value([{"rating": 2}]), plain_value([1, 2])
    ('Mostly grounded', 2, [1, 2])
    """
    while True:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (names := [name for name in _VALUES if name in value]):
            value = value[names[0]]
        else:
            return value


def plain_text(cell: str) -> str:
    """The label in a cell of Label Studio's CSV; any other text as it is.

    >>> plain_text('[{"rating": 2}]'), plain_text("Mostly grounded")
    ('2', 'Mostly grounded')
    """
    if cell[:1] not in ("[", "{"):
        return cell
    try:
        value = plain_value(msgspec.json.decode(cell))
    except (msgspec.MsgspecError, RecursionError):
        return cell
    return str(value) if isinstance(value, str | int | float) else cell
