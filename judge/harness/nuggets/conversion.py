"""A bank of nuggets in another form: what `judge nuggets convert` does, for use from Python."""

from pathlib import Path

import msgspec

from judge.errors import UsageError
from judge.files.folder import same_place, write_atomic
from judge.files.paths import JobPlan, StrPath, file_in
from judge.nuggets.forms import BANK, WRITTEN, bank_bytes, edits_file, parse_bank, read_bank
from judge.nuggets.records import Nugget, NuggetBank
from judge.records import Record


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
