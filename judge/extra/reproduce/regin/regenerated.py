"""The qrels, pool and bank of CAsT-ReGIn made again from its judgments, byte for byte. Pure."""

import json
from collections.abc import Collection, Iterable

from judge.crowd.regin.kinds import RELEVANT, qrels_path
from judge.crowd.regin.resource import Part
from judge.io.trec import QrelRow, qrels_lines

TAG = "dummytag"
"""The run tag of the released pools."""


def regenerate(part: Part, mi_turns: Collection[str] | None = None) -> dict[str, bytes]:
    """Path in the part's folder to content: every qrels file, the pool and the bank in their released forms.

    The question pool is in the order of code points of its ids, the response pool in the judgments' own, which
    is the same. The subset of the turns that call for initiative can be told from no label: without `mi_turns`
    there is none. It derives from the qrels of all turns, not from the filtered ones.
    """
    kind = part.kind
    files = {qrels_path(name): qrels_bytes(rows) for name, rows in qrels_of(part, mi_turns).items()}
    lines = (f"{turn_id}\tQ0\t{item_id}\t1\t0.0\t{TAG}\n" for turn_id, item_id in sorted(part.keys))
    files[kind.pool] = "".join(lines).encode()
    if kind.bank in part.released:
        files[kind.bank] = json.dumps(part.bank, indent=4, ensure_ascii=kind.escaped).encode()
    return files


def qrels_of(part: Part, mi_turns: Collection[str] | None = None) -> dict[str, list[tuple[str, str, int]]]:
    """Name of each qrels file to its rows; `filtered` has the turns with at least one grade of RELEVANT or more."""
    kind = part.kind
    qrels = {name: part.graded(criterion) for criterion, name in kind.all_turns.items()}
    if kind.criterion_of_subsets:
        rows = part.graded(kind.criterion_of_subsets)
        qrels[kind.filtered] = of_turns(rows, turns_with_relevant(rows))
        if mi_turns is not None:
            qrels[kind.mi_subset] = of_turns(rows, mi_turns)
    return qrels


def turns_with_relevant(rows: Iterable[tuple[str, str, int]]) -> set[str]:
    """The turns that have a grade of RELEVANT or more."""
    return {turn_id for turn_id, _, grade in rows if grade >= RELEVANT}


def of_turns(rows: Iterable[tuple[str, str, int]], turns: Collection[str]) -> list[tuple[str, str, int]]:
    """The rows of some turns, in their order."""
    return [row for row in rows if row[0] in turns]


def qrels_bytes(rows: Iterable[tuple[str, str, int]]) -> bytes:
    """A qrels file."""
    return qrels_lines(QrelRow(*row) for row in rows).encode()
