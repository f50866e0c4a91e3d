"""A bank of nuggets in another form and for people to edit: `judge nuggets convert`, `sheet` and `import` in Python."""

from collections import Counter
from pathlib import Path

import msgspec

from judge.errors import InputError, UsageError
from judge.files.folder import same_place, write_atomic
from judge.files.paths import JobPlan, StrPath, file_in
from judge.files.tabular import read_table
from judge.nuggets.forms import (
    BANK,
    EDITS,
    WRITTEN,
    bank_bytes,
    edits_file,
    parse_bank,
    read_bank,
    read_edits,
    read_made_bank,
)
from judge.nuggets.forms.edits import NuggetEdit, edited, edits_jsonl
from judge.nuggets.records import Nugget, NuggetBank
from judge.nuggets.sheet import NEEDED, bank_sheet, sheet_edits
from judge.pool.intake import turns_by_id
from judge.records import Problem, Record
from judge.runs.topics import read_topics
from judge.text.cells import count
from judge.text.safe import has_content, storable


class NuggetConvertPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets convert` can be told; paths may be strings."""

    bank: StrPath
    """The bank to read, or its folder."""
    to: str
    """The form to write, one of WRITTEN."""
    out: StrPath
    """The file to write."""
    form: str | None = None
    """The form of the bank, a key of FORMS; None to see it from its content."""
    vital_from: int | None = None
    """Nuggets without importance become vital if their passage has this grade or a higher one, else okay."""
    made_by: str | None = None
    """Who made the nuggets that do not say so."""
    edits: StrPath | None = None
    """People's edits; by default those in the folder of the bank."""


class ConvertedBank(Record, frozen=True):
    """A bank as it was read, and as it was written."""

    read: NuggetBank
    nuggets: tuple[Nugget, ...]
    """The nuggets of the written file, with what its form has a place for."""
    out: Path


def convert_bank(plan: NuggetConvertPlan) -> ConvertedBank:
    """Read a bank in any form and write it in another.

    Raises:
        UsageError: There is no such form, the file would be written over itself, or a nugget has no grade that
            `vital_from` could go by.
        InputError: The bank is bad, or the form cannot hold its nuggets; every problem is listed.
    """
    path, out = Path(plan.bank), Path(plan.out)
    edits = edits_file(path) if plan.edits is None else Path(plan.edits)
    if any(same_place(read, out) for read in (file_in(path, BANK), edits) if read is not None):
        raise UsageError(f"{out}: would be written over what it is made of")
    if plan.to not in WRITTEN:
        known = " or ".join(WRITTEN)
        raise UsageError(f"no form of bank called {plan.to!r} is written: expected {known} (--to)")
    bank = read_bank(path, plan.form, plan.edits)
    nuggets = bank.nuggets
    if plan.vital_from is not None:
        ungraded = [nugget.nugget_id for nugget in nuggets if nugget.importance is None and nugget.relevance is None]
        if ungraded:
            raise UsageError(
                f"--vital-from {plan.vital_from}: {len(ungraded)} of {len(nuggets)} nuggets have neither an importance "
                f"nor a grade of their passage, the first {ungraded[0]}"
            )
        nuggets = tuple(_graded(nugget, plan.vital_from) for nugget in nuggets)
    if plan.made_by is not None:
        nuggets = tuple(
            msgspec.structs.replace(nugget, made_by=plan.made_by) if nugget.made_by is None else nugget
            for nugget in nuggets
        )
    content = bank_bytes(nuggets, plan.to)
    written = parse_bank(content, str(out), plan.to)
    write_atomic(out, content)
    return ConvertedBank(bank, written.nuggets, out)


def _graded(nugget: Nugget, least: int) -> Nugget:
    """The nugget with an importance, by the grade of its passage where it has none of its own."""
    if nugget.importance is not None or nugget.relevance is None:
        return nugget
    return msgspec.structs.replace(nugget, importance="vital" if nugget.relevance >= least else "okay")


class NuggetSheetPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets sheet` can be told; paths may be strings."""

    bank: StrPath
    """The bank, or its folder."""
    out: StrPath
    """The sheet to write."""
    edits: StrPath | None = None
    """The edits so far; by default those in the folder of the bank."""
    topics: StrPath | None = None
    """Topics file, to show what the user said."""


class NuggetImportPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets import` can be told; paths may be strings."""

    sheet: StrPath
    """The sheet as people filled it in."""
    bank: StrPath
    """The bank, or its folder."""
    edited_by: str
    """Who changed the sheet."""
    edits: StrPath | None = None
    """The file of edits, which holds the edits so far and is written; by default that in the folder of the bank."""


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
    """Write a bank as a table for a spreadsheet, and return the number of its rows.

    Raises:
        UsageError: The sheet would be written over what it is made of.
        InputError: An input is bad; every problem is listed.
    """
    file, edits, out = file_in(plan.bank, BANK), _edits_so_far(plan.bank, plan.edits), Path(plan.out)
    given = [path for path in (file, edits, plan.topics) if path is not None]
    if any(same_place(out, Path(path)) for path in given):
        raise UsageError(f"{out}: would be written over what it is made of")
    made = read_made_bank(plan.bank).nuggets
    earlier = () if edits is None else read_edits(edits)
    turns = {} if plan.topics is None else turns_by_id(read_topics(plan.topics))
    said = {turn_id: turn.utterance for turn_id, turn in turns.items()}
    write_atomic(out, bank_sheet(made, earlier, said, str(edits)))
    return len(made) + sum(edit.action == "add" for edit in earlier)


def import_nugget_edits(plan: NuggetImportPlan) -> ImportedEdits:
    """Read what people changed in a sheet, and write it as the edits of the bank.

    Raises:
        UsageError: Nobody says where the edits go.
        InputError: An input is bad, or the sheet is of another bank; every problem is listed, and nothing is written.
    """
    if not has_content(plan.edited_by) or not storable(plan.edited_by):
        raise UsageError("--edited-by: expected a name")
    if plan.edits is None and not Path(plan.bank).is_dir():
        raise UsageError(f"{plan.bank}: not a folder, so the file of edits needs a name (--edits)")
    out = Path(plan.bank) / EDITS if plan.edits is None else Path(plan.edits)
    if any(same_place(out, path) for path in (file_in(plan.bank, BANK), Path(plan.sheet))):
        raise UsageError(f"{out}: would be written over what it is made of")
    made = read_made_bank(plan.bank).nuggets
    earlier = read_edits(out) if out.exists() else ()
    problems: list[Problem] = []
    path = Path(plan.sheet)
    _, rows = read_table(path, problems, needed=NEEDED)
    if problems:
        raise InputError(f"{path}: not usable as a sheet of nuggets: {count(len(problems), 'problem')}", problems)
    edits = sheet_edits(rows, made, earlier, plan.edited_by, str(path))
    nuggets = len(edited(made, edits, str(out)))
    write_atomic(out, edits_jsonl(edits))
    return ImportedEdits(edits, nuggets, out)


def _edits_so_far(bank: StrPath, edits: StrPath | None) -> Path | None:
    return edits_file(bank) if edits is None else Path(edits)
