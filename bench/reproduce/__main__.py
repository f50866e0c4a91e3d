"""Published numbers beside those that the released files give, cell by cell; docs/reproduce.md says where files are.

    python -m bench.reproduce ikat2023 iKAT/2023/

Files are found by their names in the folder and below it.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import NamedTuple

from bench.reproduce import papers
from bench.reproduce.cast_regin import cast_regin
from bench.reproduce.papers import Cells
from judge.errors import JudgeError, refuse
from judge.io.layout import table_lines
from judge.io.tabular import read_table
from judge.io.text import interval
from judge.records import Estimate, Problem

PAPERS: Mapping[str, Callable[[Path], Cells]] = {
    "ikat2023": papers.ikat2023,
    "cone-rag": papers.cone_rag,
    "llmjudge": papers.llmjudge,
    "rag2024": papers.rag2024,
    "cast-regin": cast_regin,
}


WIDTH = 200
"""Columns of a line of the comparison."""


class Cell(NamedTuple):
    """A published number beside ours."""

    table: str
    row: str
    measure: str
    printed: str
    ours: float | Estimate | None
    """None where the files cannot give it."""
    difference: str
    """Ours, rounded as printed, less the printed number; empty where there is nothing of ours."""
    why: str
    """Why they differ or there is nothing of ours."""


def compare(paper: str, folder: Path) -> list[Cell]:
    """Every published number of a paper beside ours."""
    problems: list[Problem] = []
    _, published = read_table(Path(__file__).with_name(f"{paper}.tsv"), problems, quoted=False)
    refuse(problems, f"{paper}.tsv")
    cells = PAPERS[paper](folder)
    compared = []
    for line in published:
        table, row, measure, printed, released, why = line.cells.values()
        ours = cells.get((table, row.lower(), measure))
        if ours is None:
            compared.append(Cell(table, row, measure, printed, None, "", why or "its files are not in the folder"))
            continue
        value = ours.value if isinstance(ours, Estimate) else float(ours)
        places = Decimal(printed.replace(",", ""))
        rounded = Decimal(repr(value)).quantize(places, ROUND_HALF_UP)
        difference = rounded - places
        if not difference:
            why = ""
        elif str(rounded) != released:
            why = "not known: the folder has not the release that the numbers were compared with, or only a part of it"
        compared.append(Cell(table, row, measure, printed, ours, f"{difference:+}" if difference else "0", why))
    return compared


def shown(ours: float | Estimate | None) -> str:
    if ours is None:
        return "-"
    if isinstance(ours, Estimate):
        return interval(ours)
    return str(int(ours)) if float(ours).is_integer() else f"{ours:.4f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    try:
        cells = compare(given.paper, given.folder)
    except JudgeError as error:
        print(error, *getattr(error, "problems", ()), sep="\n", file=sys.stderr)
        return 2
    reasons = list(dict.fromkeys(cell.why for cell in cells if cell.why))
    lines = []
    for cell in cells:
        note = f"[{reasons.index(cell.why) + 1}]" if cell.why else ""
        lines.append([cell.table, cell.row, cell.measure, cell.printed, shown(cell.ours), cell.difference, note])
    header = ("table", "row", "measure", "printed", "ours", "difference", "")
    print(*table_lines(header, lines, WIDTH, words=(0, 1, 2)), sep="\n")
    print()
    for number, reason in enumerate(reasons, start=1):
        print(f"[{number}] {reason}")
    same = sum(cell.difference == "0" for cell in cells)
    none = sum(cell.ours is None for cell in cells)
    print(
        f"{len(cells)} published numbers: {same} the same, {len(cells) - same - none} other, {none} not in these files"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
