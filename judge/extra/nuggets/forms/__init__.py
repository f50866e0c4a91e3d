"""The forms of nugget banks: a module for each, told apart by content; and people's edits of a bank.

A folder of `judge nuggets create` is read as its bank with the edits that lie beside it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from judge.errors import InputError, UsageError
from judge.extra.nuggets.forms import cone_rag, nuggetizer, own, rubrics
from judge.extra.nuggets.forms.edits import NuggetEdit, edited, parse_edits
from judge.extra.nuggets.forms.problems import BankProblems
from judge.extra.nuggets.records import Nugget, NuggetBank
from judge.io.cells import count
from judge.io.paths import StrPath, file_in
from judge.io.safe import did_you_mean
from judge.io.stored import read_stored, unpack

BANK, EDITS = "nuggets.jsonl", "edits.jsonl"
"""A bank in its folder, and people's edits of it."""


class BankForm(NamedTuple):
    """One form of bank."""

    about: str
    looks: Callable[[bytes], bool]
    """Whether content, without outer white space, looks like this form."""
    read: Callable[[bytes, str, BankProblems], list[Nugget]]
    """From content and the file's name to nuggets; problems are added."""
    write: Callable[[Sequence[Nugget]], bytes] | None
    """None where banks are only read."""


def read_bank(path: StrPath, form: str | None = None, edits: StrPath | None = None) -> NuggetBank:
    """Read a bank of nuggets, gzipped or not, with people's edits applied.

    Args:
        path: The file, or the folder with bank and edits.
        form: A key of FORMS; None to see it from the content.
        edits: A file of edits in place of those in the folder.
    """
    bank, made = read_made_bank(path, form), edits_file(path) if edits is None else Path(edits)
    if made is None:
        return bank
    return msgspec.structs.replace(bank, nuggets=edited(bank.nuggets, read_edits(made), str(made)))


def read_made_bank(path: StrPath, form: str | None = None) -> NuggetBank:
    """Read a bank as it was made, without people's edits; the arguments are those of `read_bank`."""
    file = file_in(path, BANK)
    return parse_bank(unpack(read_stored(file), str(file)), str(file), form)


def read_edits(path: StrPath) -> tuple[NuggetEdit, ...]:
    """Read a file of edits, gzipped or not."""
    return parse_edits(unpack(read_stored(Path(path)), str(path)), str(path))


def edits_file(path: StrPath) -> Path | None:
    """The edits beside the bank in a folder; None for a file, and for a folder without edits."""
    edits = Path(path) / EDITS
    return edits if Path(path).is_dir() and edits.exists() else None


def parse_bank(content: bytes, name: str, form: str | None = None) -> NuggetBank:
    """Read the nuggets in the bytes of a bank, not gzipped; `form` as for `read_bank`, `name` is for messages."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if form is None:
        form = next((key for key, row in FORMS.items() if row.looks(content.strip())), None)
        if form is None:
            expected = "; or ".join(row.about for row in FORMS.values())
            raise InputError(f"{name}: not a bank of nuggets: expected {expected}")
    problems = BankProblems(name)
    nuggets = _form(form).read(content, name, problems)
    if not nuggets and not problems:
        problems.add("empty_file", "", "expected one nugget or more")
    if problems:
        raise InputError(f"{name}: not usable as a bank: {count(len(problems), 'problem')}", problems)
    return NuggetBank(form, tuple(nuggets))


def bank_bytes(nuggets: Sequence[Nugget], form: str) -> bytes:
    """The bytes of a bank in a form."""
    write = _form(form).write
    if write is None:
        raise UsageError(f"{form}: only read, not written: expected {' or '.join(WRITTEN)}")
    return write(nuggets)


def _form(name: str) -> BankForm:
    if name not in FORMS:
        raise UsageError(f"no form of bank called {name!r}{did_you_mean(name, FORMS)} (there are {', '.join(FORMS)})")
    return FORMS[name]


FORMS: dict[str, BankForm] = {
    "nuggetizer": BankForm(
        "nuggetizer's JSON Lines with `qid` and `nuggets`", nuggetizer.looks, nuggetizer.read, nuggetizer.write
    ),
    "judge": BankForm("JSON Lines with `nugget_id` and `text`", own.looks, own.read, own.write),
    "cone-rag": BankForm(
        "CONE-RAG's JSON object from turn to nuggets `[1]`, `[2]`", cone_rag.looks, cone_rag.read, cone_rag.write
    ),
    "rubrics": BankForm("a table of rubric questions with `id` and `rubrik`", rubrics.looks, rubrics.read, None),
}
"""Name to form, in the order in which content is looked at."""
WRITTEN = tuple(name for name, form in FORMS.items() if form.write is not None)
"""The forms that banks are written in."""
