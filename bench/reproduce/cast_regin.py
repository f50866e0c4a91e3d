"""CAsT-ReGIn: what its README says of the released files as numbers that should be 0, and counts of the release.

The README prints no counts; the published ones are of the whole release (commit d7ea90c). It says of the response qrels
that they are filtered for turns with a grade of 2 or more. They are not: `question_relevance_filtered` is the only file
that is.
"""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from bench.reproduce.papers import Cells, find
from judge.errors import InputError
from judge.io.files import text_of
from judge.io.ids import topic_of

RELEVANT = 2
EXAMPLES = {
    "response": ("R00000", "R00263", "R00321", "R00395", "R00585", "R00711"),
    "question": ("Q0821", "Q1856", "Q4759", "Q4964", "Q5318", "Q5919", "Q6070", "Q6274"),
}
"""The first pooled items of turn 132_1-1, as the README shows them."""
KNOWN_BAD = ("136_1-1", "Q6471")
"""Turn and question ("Are you looking for a specific web site") that the README expects to be 0 or 1 in relevance."""


class Judged(NamedTuple):
    """One judged item of a turn."""

    turn_id: str
    item_id: str
    text: str
    grades: dict[str, int]
    """By criterion."""


def cast_regin(folder: Path) -> Cells:
    cells: Cells = {}
    for part in ("response", "question"):
        if path := find(folder, f"{part}_judgments.json"):
            cells |= _part(path, part)
    if not cells:
        raise InputError(f"{folder}: no response_judgments.json or question_judgments.json of grill-lab/CAsT-ReGIn")
    return cells


def _part(path: Path, part: str) -> Cells:
    word = part.title()
    rows: list[Judged] = []
    for turn_id, turn in json.loads(text_of(path)).items():
        for item in turn[f"{word}s"]:
            # The label fields come in six orders.
            grades = {name.lower(): item[name] for name in item if name not in (f"{word} ID", f"{word} Text")}
            rows.append(Judged(turn_id, item[f"{word} ID"], item[f"{word} Text"], grades))
    readme = _files(path, part, rows) | _texts(path, part, rows) | _examples(part, rows)
    release: dict[str, float] = {
        f"judged {part}s": len(rows),
        "turns": len({row.turn_id for row in rows}),
        "topics": len({topic_of(row.turn_id) for row in rows}),
    }
    if bank := find(path.parent.parent, f"{part}_bank.json"):
        release["texts of the bank"] = len(json.loads(text_of(bank)))
    for criterion in rows[0].grades:
        counts = Counter(row.grades[criterion] for row in rows)
        for grade in range(4):
            release[f"{criterion} {grade}"] = counts[grade]
    if part == "question":
        relevant = _relevant(rows, "relevance")
        release["rows of question_relevance_filtered"] = sum(row.turn_id in relevant for row in rows)
        if turns := _subset_turns(path):
            release["rows of question_relevance_mi_subset"] = sum(row.turn_id in turns for row in rows)
    cells: Cells = {("README", f"{part}s", measure): count for measure, count in readme.items()}
    return cells | {("release", f"{part}s", measure): count for measure, count in release.items()}


def _files(path: Path, part: str, rows: list[Judged]) -> dict[str, float]:
    """How many lines of each released pool and qrels file are too many or too few."""
    pool = [f"{row.turn_id}\tQ0\t{row.item_id}\t1\t0.0\tdummytag" for row in rows]
    expected = {f"{part}_pool_depth_1.pool": pool}
    for criterion in rows[0].grades:
        every = "_all" if (part, criterion) == ("question", "relevance") else ""
        expected[f"qrels/{part}_{criterion}{every}.qrel"] = _qrels(rows, criterion)
    if part == "question":
        relevant = _relevant(rows, "relevance")
        filtered = [row for row in rows if row.turn_id in relevant]
        subset = [row for row in rows if row.turn_id in _subset_turns(path)]
        expected["qrels/question_relevance_filtered.qrel"] = _qrels(filtered, "relevance")
        expected["qrels/question_relevance_mi_subset.qrel"] = _qrels(subset, "relevance")
    counts: dict[str, float] = {}
    for name, lines in expected.items():
        file = path.parent.parent / name
        if file.is_file():
            theirs, ours = Counter(text_of(file).splitlines()), Counter(lines)
            counts[f"{name}: lines that the judgments do not give"] = ((theirs - ours) + (ours - theirs)).total()
    return counts


def _qrels(rows: list[Judged], criterion: str) -> list[str]:
    return [f"{row.turn_id} 0 {row.item_id} {row.grades[criterion]}" for row in rows]


def _relevant(rows: list[Judged], criterion: str) -> set[str]:
    """The turns that have a grade of RELEVANT or more."""
    return {row.turn_id for row in rows if row.grades[criterion] >= RELEVANT}


def _subset_turns(path: Path) -> set[str]:
    """The turns that call for initiative, by their list or by the released file; no label says which they are."""
    if listed := find(path.parent.parent, "mi_*turns.txt"):
        return set(text_of(listed).split())
    file = path.with_name("question_relevance_mi_subset.qrel")
    return {line.split()[0] for line in text_of(file).splitlines()} if file.is_file() else set()


def _texts(path: Path, part: str, rows: list[Judged]) -> dict[str, float]:
    counts: dict[str, float] = {}
    if file := find(path.parent.parent, f"{part}_bank.json"):
        bank = json.loads(text_of(file))
        counts["judged items that the bank lacks"] = sum(row.item_id not in bank for row in rows)
        counts["judged texts other than the bank's"] = sum(bank.get(row.item_id, row.text) != row.text for row in rows)
    if part == "response":
        turns = {row.turn_id for row in rows}
        for criterion in rows[0].grades:
            left = turns - _relevant(rows, criterion)
            counts[f"response_{criterion}: turns without a grade of {RELEVANT} or more"] = len(left)
    return counts


def _examples(part: str, rows: list[Judged]) -> dict[str, float]:
    judged = {(row.turn_id, row.item_id): row.grades["relevance"] for row in rows}
    absent = [item_id for item_id in EXAMPLES[part] if ("132_1-1", item_id) not in judged]
    counts: dict[str, float] = {"132_1-1: pooled items of the README's example not judged": len(absent)}
    if KNOWN_BAD in judged:
        measure = f"{' '.join(KNOWN_BAD)}: known to be bad, but with a relevance of {RELEVANT} or more"
        counts[measure] = int(judged[KNOWN_BAD] >= RELEVANT)
    return counts
