"""People's edits: read, applied, refused; and the sheet that they come from."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError
from judge.extra.nuggets import Nugget
from judge.extra.nuggets.edits import NEEDED, NuggetEdit, bank_sheet, edited, parse_edits, sheet_edits
from judge.extra.nuggets.forms import read_bank, read_edits
from judge.io.files import jsonl_bytes
from judge.io.tabular import TableRow
from judge.io.text import digest, disarmed, has_content, storable
from tests.conftest import refused

MADE = (
    Nugget("1-1_1/1", "1-1", "Ramps are free.", "1-1_1", "vital", made_by="server/m"),
    Nugget("1-1_1/2", "1-1", "=1+1", "1-1_1", "okay"),
    Nugget("1-1/1", "1-1", "Book early.", None, None),
)
SHAS = {nugget.nugget_id: digest(nugget.text) for nugget in MADE}


def change(nugget_id: str, **more: object) -> NuggetEdit:
    return NuggetEdit(nugget_id, "change", "ann", SHAS[nugget_id], **more)  # type: ignore[arg-type]


def test_edits_change_delete_and_add_and_leave_the_bank_alone() -> None:
    edits = (
        change("1-1_1/1", text="Ramps cost nothing.", importance="okay"),
        NuggetEdit("1-1_1/2", "delete", "bob", SHAS["1-1_1/2"]),
        NuggetEdit("1-1_1/x", "add", "bob", text="Staff helps.", importance="vital", turn_id="1-1_1"),
        NuggetEdit("1-1/x", "add", "bob", text="Ask.", topic_id="1-1"),
    )
    assert parse_edits(jsonl_bytes(edits), "edits") == edits
    found = edited(MADE, edits, "edits")
    assert [(row.nugget_id, row.text, row.importance, row.edited_by) for row in found] == [
        ("1-1_1/1", "Ramps cost nothing.", "okay", "ann"),
        ("1-1_1/x", "Staff helps.", "vital", "bob"),
        ("1-1/1", "Book early.", None, None),
        ("1-1/x", "Ask.", None, "bob"),
    ]
    assert found[0].made_by == "server/m" and found[3].turn_id is None


@pytest.mark.parametrize(("edit", "message"), [
    (NuggetEdit("1-1_1/9", "delete", "ann", "0" * 64), "no such nugget"),
    (NuggetEdit("1-1_1/1", "change", "ann", "0" * 64, "B."), "changed since"),
    (NuggetEdit("1-1_1/1", "add", "ann", text="B.", turn_id="1-1_1"), "has a nugget of this id"),
])  # fmt: skip
def test_an_edit_of_another_bank_is_refused(edit: NuggetEdit, message: str) -> None:
    assert message in refused(edited, MADE, (edit,), "edits")[0].message


@pytest.mark.parametrize(("row", "place"), [
    ({"action": "rename"}, "$.action"),
    ({"edited_by": " "}, "$.edited_by"),
    ({"nugget_sha256": None}, "$.nugget_sha256"),
    ({"text": None}, "$"),
    ({"text": "\x00"}, "$.text"),
    ({"importance": "big"}, "$.importance"),
    ({"turn_id": "1-1_1"}, "$"),
    ({"action": "delete"}, "$"),
    ({"action": "add", "turn_id": "1-1_1"}, "$.nugget_sha256"),
    ({"action": "add", "nugget_sha256": None}, "$"),
    ({"action": "add", "nugget_sha256": None, "turn_id": "x"}, "$.turn_id"),
    ({"action": "add", "nugget_sha256": None, "topic_id": "a b"}, "$.topic_id"),
    ({"action": "add", "nugget_sha256": None, "turn_id": "1-1_1", "topic_id": "2-1"}, "$.topic_id"),
    ({"action": "add", "nugget_sha256": None, "turn_id": "1-1_1", "nugget_id": "a b"}, "$.nugget_id"),
    ({"more": 1}, "$"),
])  # fmt: skip
def test_a_bad_edit_is_named_with_its_line(row: dict[str, object], place: str) -> None:
    sound = {"nugget_id": "n", "action": "change", "edited_by": "ann", "nugget_sha256": "0" * 64, "text": "A."}
    line = {name: value for name, value in (sound | row).items() if value is not None}
    content = b"\n" + json.dumps(line).encode()
    assert f"line 2: {place}" in [problem.path for problem in refused(parse_edits, content, "edits")]


def test_a_nugget_has_one_edit() -> None:
    problems = refused(parse_edits, jsonl_bytes([change("1-1_1/1", text="A."), change("1-1_1/1", text="B.")]), "edits")
    assert problems[0].path == "line 2: $.nugget_id"


def test_a_folder_is_read_as_the_bank_with_its_edits(tmp_path: Path) -> None:
    (tmp_path / "nuggets.jsonl").write_text('{"nugget_id": "n", "turn_id": "1-1_1", "text": "A."}\n')
    assert [nugget.text for nugget in read_bank(tmp_path).nuggets] == ["A."]
    (tmp_path / "edits.jsonl").write_bytes(jsonl_bytes([NuggetEdit("n", "change", "ann", digest("A."), "B.")]))
    assert [nugget.text for nugget in read_bank(tmp_path).nuggets] == ["B."]
    assert [nugget.text for nugget in read_bank(tmp_path / "nuggets.jsonl").nuggets] == ["A."]
    assert len(read_edits(tmp_path / "edits.jsonl")) == 1
    (tmp_path / "nuggets.jsonl").write_text('{"nugget_id": "n", "turn_id": "1-1_1", "text": "C."}\n')
    with pytest.raises(InputError, match="not edits of this bank"):
        read_bank(tmp_path)


def rows_of(made: tuple[Nugget, ...], edits: tuple[NuggetEdit, ...] = ()) -> list[TableRow]:
    """The rows of a sheet as the import reads them."""
    table = csv.DictReader(io.StringIO(bank_sheet(made, edits, {}, "edits").decode("utf-8-sig"), newline=""))
    return [TableRow(place, {name: cell.strip() for name, cell in row.items()}) for place, row in enumerate(table, 2)]


def new_row(**cells: str) -> TableRow:
    return TableRow(99, dict.fromkeys(NEEDED, "") | cells)


def test_a_sheet_says_what_people_changed() -> None:
    rows = rows_of(MADE)
    assert rows[1].cells["text"] == "\\=1+1"
    assert sheet_edits(rows, MADE, (), "ann", "s") == ()
    rows[0].cells["text"] = "Ramps cost nothing."
    rows[1].cells["text"] = "\\=2+2"
    rows[2].cells["delete"] = "X"
    rows.append(new_row(turn_id="1-1_1", text="Staff helps.", importance="Vital"))
    edits = sheet_edits(rows, MADE, (), "ann", "s")
    added = f"1-1_1/{digest('Staff helps.')[:8]}"
    assert edits == (
        change("1-1_1/1", text="Ramps cost nothing."),
        change("1-1_1/2", text="=2+2"),
        NuggetEdit("1-1/1", "delete", "ann", SHAS["1-1/1"]),
        NuggetEdit(added, "add", "ann", text="Staff helps.", importance="vital", turn_id="1-1_1"),
    )
    # The same sheet again, by somebody else, changes nothing.
    assert sheet_edits(rows, MADE, edits, "bob", "s") == edits
    # Nor does the sheet of bank and edits, or one without some of the rows.
    again = rows_of(MADE, edits)
    assert [row.cells["delete"] for row in again] == ["", "", "x", ""]
    assert sheet_edits(again, MADE, edits, "bob", "s") == edits
    assert sheet_edits(again[:1], MADE, edits, "bob", "s") == edits
    # Who undoes an edit leaves none; who takes back an addition leaves none; who changes one is its author.
    again[0].cells["text"] = "Ramps are free."
    again[2].cells["delete"] = ""
    again[3].cells["delete"] = "x"
    again[1].cells["importance"] = "vital"
    assert sheet_edits(again, MADE, edits, "bob", "s") == (
        NuggetEdit("1-1_1/2", "change", "bob", SHAS["1-1_1/2"], "=2+2", "vital"),
    )


@pytest.mark.parametrize(("place", "cells", "message"), [
    (0, {"nugget_id": "1-1_1/7"}, "the bank has no nugget"),
    (0, {"nugget_id": "1-1_1/2"}, "has changed since the sheet was made"),
    (0, {"shown_sha256": "0", "text": "B."}, "has changed since the sheet was made"),
    (0, {"text": ""}, "expected the text of a nugget"),
    (0, {"importance": "huge"}, "expected vital or okay"),
    (0, {"importance": ""}, "expected vital or okay"),
    (0, {"delete": "maybe"}, "expected x or nothing"),
    (None, {"text": "A."}, "needs `turn_id`"),
    (None, {"text": "", "turn_id": "1-1_1"}, "expected the text of a nugget"),
    (None, {"text": "A.", "turn_id": "x y"}, "expected a turn id"),
    (None, {"text": "A.", "topic_id": "x_1"}, "expected a topic id"),
    (None, {"text": "A.", "turn_id": "1-1_1", "topic_id": "2-1"}, "is not the topic of"),
])  # fmt: skip
def test_a_row_that_cannot_be_read_is_named(place: int | None, cells: dict[str, str], message: str) -> None:
    rows = rows_of(MADE)
    if place is None:
        rows.append(new_row(**cells))
    else:
        rows[place].cells.update(cells)
    assert message in " ".join(problem.message for problem in refused(sheet_edits, rows, MADE, (), "ann", "s"))


def test_a_nugget_stands_on_one_row() -> None:
    for row in (rows_of(MADE)[0], new_row(turn_id="1-1_1", text="New.")):
        problems = refused(sheet_edits, [row, TableRow(100, row.cells)], MADE, (), "ann", "s")
        assert f"already on line {row.line}" in problems[0].message


@given(text=st.text(min_size=1, max_size=30).filter(lambda text: has_content(text) and storable(text)))
def test_a_text_that_nobody_touched_is_no_edit(text: str) -> None:
    made = (Nugget("1-1_1/1", "1-1", text.strip(), "1-1_1", "okay"),)
    (row,) = rows_of(made)
    assert disarmed(row.cells["text"]) == row.cells["text"]
    assert sheet_edits([row], made, (), "ann", "s") == ()


def test_a_sheet_undoes_nothing_that_others_edited_since() -> None:
    rows = rows_of(MADE)
    bobs = (change("1-1_1/1", text="Ramps cost nothing."), NuggetEdit("1-1/1", "delete", "bob", SHAS["1-1/1"]))
    # What ann did not touch stays as bob has it.
    assert sheet_edits(rows, MADE, bobs, "ann", "s") == bobs
    rows[1].cells["importance"] = "vital"
    assert sheet_edits(rows, MADE, bobs, "ann", "s") == (
        bobs[0], change("1-1_1/2", importance="vital"), bobs[1]
    )  # fmt: skip
    # What both changed is refused.
    rows[0].cells["importance"] = "okay"
    assert [problem.path for problem in refused(sheet_edits, rows, MADE, bobs, "ann", "s")] == ["line 2: shown_sha256"]


def test_a_bank_that_was_made_again_refuses_what_people_changed_of_another_text() -> None:
    rows = rows_of(MADE)
    again = (Nugget("1-1_1/1", "1-1", "Ramps are there.", "1-1_1", "vital"), *MADE[1:])
    assert sheet_edits(rows, again, (), "ann", "s") == ()
    rows[0].cells["delete"] = "x"
    with pytest.raises(InputError):
        sheet_edits(rows, again, (), "ann", "s")
