"""A bank of nuggets in another form and for people to edit: `judge nuggets convert`, `sheet` and `import` in Python."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec

from judge.errors import UsageError, refuse
from judge.extra.nuggets import Nugget, NuggetBank, forms
from judge.extra.nuggets.edits import NEEDED, NuggetEdit, bank_sheet, edited, sheet_edits
from judge.io.files import jsonl_bytes
from judge.io.folder import same_place, write_atomic
from judge.io.plan import OneOf, Option, Options
from judge.io.tabular import read_table
from judge.io.text import count, has_content, storable
from judge.records import Problem, Record
from judge.runs.topics import topic_turns


class NuggetConvertPlan(Options):
    """Everything `judge nuggets convert` can be told."""

    bank: Annotated[Path, Option(metavar="BANK", place="only")]
    """The bank to read, or its folder."""
    to: Annotated[str, OneOf(forms.WRITTEN)]
    """The form to write."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """The file to write."""
    form: Annotated[str | None, OneOf(forms.FORMS)] = None
    """The form of BANK (default: seen from its content)."""
    vital_from: Annotated[int | None, Option(metavar="GRADE")] = None
    """Nuggets without importance become vital if their passage has this grade or a higher one, else okay."""
    made_by: Annotated[str | None, Option(metavar="NAME")] = None
    """Who made the nuggets that do not say so."""
    edits: Annotated[Path | None, Option(metavar="FILE")] = None
    """People's edits (default: edits.jsonl in the folder of the bank)."""


def convert_bank(plan: NuggetConvertPlan) -> NuggetBank:
    """Read a bank in any form and write it in another; the bank comes back with what the other form has a place for."""
    edits = forms.edits_file(plan.bank) if plan.edits is None else plan.edits
    _check_over(plan.out, *forms.bank_files(plan.bank), edits)
    bank = forms.read_bank(plan.bank, plan.form, plan.edits)
    if plan.vital_from is not None:
        ungraded = [each.nugget_id for each in bank.nuggets if each.importance is None and each.relevance is None]
        if ungraded:
            raise UsageError(
                f"--vital-from {plan.vital_from}: {len(ungraded)} of {len(bank.nuggets)} nuggets have neither an "
                f"importance nor a grade of their passage, the first {ungraded[0]}"
            )
    content = forms.bank_bytes([_completed(nugget, plan) for nugget in bank.nuggets], plan.to)
    written = forms.parse_bank(content, str(plan.out), plan.to)
    write_atomic(plan.out, content)
    return msgspec.structs.replace(bank, nuggets=written.nuggets)


def _completed(nugget: Nugget, plan: NuggetConvertPlan) -> Nugget:
    """The nugget with an importance by the grade of its passage, and its maker, where it lacks them."""
    importance = nugget.importance
    if importance is None and plan.vital_from is not None and nugget.relevance is not None:
        importance = "vital" if nugget.relevance >= plan.vital_from else "okay"
    return msgspec.structs.replace(nugget, importance=importance, made_by=nugget.made_by or plan.made_by)


def _check_over(out: Path, *read: Path | None) -> None:
    if any(path is not None and same_place(out, path) for path in read):
        raise UsageError(f"{out}: would be written over what it is made of")


class NuggetSheetPlan(Options):
    """Everything `judge nuggets sheet` can be told."""

    bank: Annotated[Path, Option(metavar="BANK", place="only")]
    """Bank of nuggets in any form, or its folder."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """The sheet to write, such as sheet.csv."""
    edits: Annotated[Path | None, Option(metavar="FILE")] = None
    """Edits so far (default: edits.jsonl in the folder of the bank)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, to show what the user said."""


class NuggetImportPlan(Options):
    """Everything `judge nuggets import` can be told."""

    sheet: Annotated[Path, Option(metavar="SHEET", place="only")]
    """The sheet as people filled it in."""
    bank: Annotated[Path, Option(metavar="FILE|DIR")]
    """The bank of the sheet, or its folder."""
    edited_by: Annotated[str, Option(metavar="NAME")]
    """Who changed the sheet."""
    edits: Annotated[Path | None, Option(metavar="FILE")] = None
    """File of edits to write (default: edits.jsonl in the bank's folder)."""


class ImportedEdits(Record, frozen=True):
    """The edits of a bank after a sheet was imported."""

    edits: tuple[NuggetEdit, ...]
    nuggets: int
    """Nuggets of the bank with its edits."""
    out: Path

    @property
    def actions(self) -> dict[str, int]:
        """How many edits there are of each kind."""
        counts = Counter(edit.action for edit in self.edits)
        return {action: counts[action] for action in ("change", "delete", "add")}


def write_nugget_sheet(plan: NuggetSheetPlan) -> int:
    """Write a bank as a table for a spreadsheet, and return the number of its rows."""
    edits = forms.edits_file(plan.bank) if plan.edits is None else plan.edits
    _check_over(plan.out, *forms.bank_files(plan.bank), edits, plan.topics)
    made = forms.read_made_bank(plan.bank).nuggets
    earlier = () if edits is None else forms.read_edits(edits)
    said = {turn_id: turn.utterance for turn_id, turn in (topic_turns(plan.topics) or {}).items()}
    write_atomic(plan.out, bank_sheet(made, earlier, said, str(edits)))
    return len(made) + sum(edit.action == "add" for edit in earlier)


def import_nugget_edits(plan: NuggetImportPlan) -> ImportedEdits:
    """Read what people changed in a sheet, and write it as the edits of the bank."""
    if not has_content(plan.edited_by) or not storable(plan.edited_by):
        raise UsageError("--edited-by: expected a name")
    if plan.edits is None and not plan.bank.is_dir():
        raise UsageError(f"{plan.bank}: not a folder, so the file of edits needs a name (--edits)")
    out = plan.bank / forms.EDITS if plan.edits is None else plan.edits
    _check_over(out, *forms.bank_files(plan.bank), plan.sheet)
    made = forms.read_made_bank(plan.bank).nuggets
    earlier = forms.read_edits(out) if out.exists() else ()
    problems: list[Problem] = []
    _, rows = read_table(plan.sheet, problems, needed=NEEDED)
    refuse(problems, f"{plan.sheet}: not usable as a sheet of nuggets: {count(len(problems), 'problem')}")
    edits = sheet_edits(rows, made, earlier, plan.edited_by, str(plan.sheet))
    nuggets = len(edited(made, edits, str(out)))
    write_atomic(out, jsonl_bytes(edits))
    return ImportedEdits(edits, nuggets, out)
