"""Reproduce: what papers printed, made again from their released files.

published   a module a publication: its numbers beside ours, and what they share
regin       CAsT-ReGIn checked and made again
cast_regin  `judge crowd cast-regin`, with runs over its bank ids

Here is what `judge reproduce` does, for use from Python.
"""

import re
from pathlib import Path
from typing import Annotated, Any

from judge.extra.reproduce.published import PUBLICATIONS, PublishedNumber, Reproduction, reproduce_publication
from judge.io.draw import interval_plot
from judge.io.folder import check_apart, replace_folder
from judge.io.installed import has_extra
from judge.io.plan import OneOf, Option, Options
from judge.io.steps import Step, Steps, quiet
from judge.io.table import FORMS, Cell, Table

COLUMNS = ("table", "row", "measure", "published", "ours", "difference", "reason")
"""The columns of the comparison."""


class ReproductionPlan(Options):
    """Everything `judge reproduce` can be told."""

    name: Annotated[str, OneOf(PUBLICATIONS), Option(metavar="NAME", place="only")]
    """The publication."""
    folder: Annotated[Path, Option(metavar="DIR", place="only")]
    """The released files, or a folder above them."""
    out: Annotated[Path | None, Option(short="o", metavar="OUT")] = None
    """Folder for the tables in every form, and pictures of the intervals."""


def reproduce_published(plan: ReproductionPlan, steps: Steps = quiet) -> Reproduction:
    """Make a publication again, and write its tables and pictures if asked to.

    An InputError if a released file is absent or bad; every problem is listed.
    """
    if plan.out is not None:
        check_apart(plan.out, [plan.folder])
    steps(Step(f"making {plan.name} again"))
    made = reproduce_publication(plan.name, plan.folder)
    if plan.out is not None:
        steps(Step("making tables and pictures"))
        replace_folder(plan.out, reproduction_files(made), "reproduction.sha256")
    return made


def comparison(made: Reproduction, *, marks: bool) -> Table[Any]:
    """The published numbers beside ours as one table; by `marks`, a reason is a letter that a note explains."""
    reasons = list(dict.fromkeys(number.reason for number in made.numbers if number.reason))
    said = {reason: _letter(place) if marks else reason for place, reason in enumerate(reasons)} | {"": ""}
    lines = tuple(
        (each.table, each.row, each.measure, each.published, _ours(each), _difference(each), said[each.reason])
        for each in made.numbers
    )
    explained = tuple(f"{said[reason]}: {reason}." for reason in reasons) if marks else ()
    return Table(
        lines, COLUMNS, f"{made.name}: published and made again", (*explained, *made.notes, f"Source: {made.source}")
    )


def reproduction_object(made: Reproduction) -> dict[str, Any]:
    """The object that `judge reproduce --json` prints; numbers are unrounded."""
    return {
        "name": made.name,
        "source": made.source,
        "numbers": made.numbers,
        "beyond": [grid.to_object() for grid in made.beyond],
        "notes": made.notes,
    }


def reproduction_files(made: Reproduction) -> dict[str, bytes]:
    """The tables in every form, and a picture of the intervals of each published measure that has some."""
    shown, whole = (comparison(made, marks=marks).files("comparison") for marks in (True, False))
    tools = {f"comparison.{FORMS[form][0]}" for form in ("tsv", "json")}
    files = {name: whole[name] if name in tools else content for name, content in shown.items()}
    for grid in made.beyond:
        files |= grid.files(_slug(grid.title))
    for table, measure in with_intervals(made) if has_extra("pictures") else ():
        of = [each for each in made.numbers if (each.table, each.measure) == (table, measure)]
        rows = [(each.row, each.ours) for each in of if each.ours is not None]
        printed = [_printed(each) for each in of if each.ours is not None]
        name, heading = _slug(f"{table} {measure}"), f"{made.name}, {table}: {measure}"
        pictures = interval_plot(rows, measure, heading, "n", marks=printed, names=("made again", "published"))
        files[f"{name}.svg"], files[f"{name}.png"] = pictures
    return files


def with_intervals(made: Reproduction) -> tuple[tuple[str, str], ...]:
    """The published tables and measures of which some number has an interval: those that are drawn."""
    return tuple(
        dict.fromkeys((each.table, each.measure) for each in made.numbers if each.ours and each.ours.low is not None)
    )


def _ours(number: PublishedNumber) -> Cell:
    """A count is an integer, as it is printed."""
    ours = number.ours
    if ours is None or ours.low is not None or ours.value is None or "." in (number.published or ""):
        return ours
    return int(ours.value) if ours.value.is_integer() else ours


def _printed(number: PublishedNumber) -> float | None:
    try:
        return float((number.published or "").replace(",", ""))
    except ValueError:
        return None


def _difference(number: PublishedNumber) -> Cell:
    """With as many decimals as are printed."""
    if number.difference is None:
        return None
    places = len((number.published or "").partition(".")[2])
    return f"{number.difference:+.{places}f}" if number.difference else "0"


def _letter(place: int) -> str:
    """The mark at a place from 0 on: a to z, then aa, ab and so on."""
    head, last = divmod(place, 26)
    return (_letter(head - 1) if head else "") + chr(ord("a") + last)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
