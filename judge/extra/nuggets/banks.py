"""A bank of nuggets in another form: what `judge nuggets convert` does, for use from Python."""

from pathlib import Path
from typing import Annotated

import msgspec

from judge.errors import UsageError
from judge.extra.nuggets import Nugget, NuggetBank, forms
from judge.io.folder import same_place, write_atomic
from judge.io.plan import OneOf, Option, Options


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


def convert_bank(plan: NuggetConvertPlan) -> NuggetBank:
    """Read a bank in any form and write it in another; the bank comes back with what the other form has a place for."""
    if any(same_place(plan.out, path) for path in forms.bank_files(plan.bank)):
        raise UsageError(f"{plan.out}: would be written over what it is made of")
    bank = forms.read_bank(plan.bank, plan.form)
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
