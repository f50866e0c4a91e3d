"""CAsT-ReGIn: what its README says of the released grades, and the counts of the release, beside the files."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import judge.extra.reproduce.published as papers
from judge.crowd.released import GRADES, KINDS, RELEVANT, Name, Part, qrels_path, read_resource, read_turns
from judge.errors import InputError, refuse
from judge.extra.reproduce import regin
from judge.io.ids import groups_of, natural_key, parse_qrels, topic_of
from judge.io.table import Cell, Table
from judge.io.text import count, examples
from judge.records import Estimate, Problem, Record
from judge.runs.tokens import countable
from judge.stats.resampling import all_resampled
from judge.stats.tables import confusion

SOURCE = "CAsT-ReGIn, https://github.com/grill-lab/CAsT-ReGIn: README.md, and the files of commit d7ea90c"
NOTES = (
    "The README prints no counts; those under `release` are counts of the whole release.",
    "The README says of the response qrels that they are filtered for turns with a grade of 2 or more. They are not: "
    "`question_relevance_filtered` is the only file that is.",
    "Where workers had no clear majority, the README's grade is their average; how it was rounded cannot be told, "
    "because the release has no labels of single workers.",
    "`judge crowd cast-regin DIR --out OUT` lists every known problem of the files and makes them again.",
)
_ORIGIN = "grill-lab/CAsT-ReGIn on GitHub"
_JUDGMENTS = tuple(
    papers.ReleasedFile(name, f"{kind.folder}/{kind.judgments}", "grill-lab/CAsT-ReGIn", rf"{name}_judgments\.json")
    for name, kind in KINDS.items()
)
_TURNS = papers.ReleasedFile(
    "turns", "mi_subset_turns.txt", "the turns of the mixed-initiative subset", r"mi_(subset_)?turns\.txt"
)
_OF_FILES = frozenset({"pool_differs", "malformed_line", "qrels_pairs", "qrels_grades", "qrels_order", "qrels_form"})
"""Codes of the checks that say why a file is not what the judgments give."""


class ReleasedCounts(Record, frozen=True):
    """Counts of one part of the release, which its README does not print."""

    judged: str
    """Judged items."""
    turns: str
    topics: tuple[str, ...]
    bank: str
    """Texts of the bank."""
    grades: dict[str, tuple[str, str, str, str]]
    """Criterion to how many items have each grade."""
    subsets: dict[str, str]
    """Name of a qrels file to its rows, of those that have not every turn."""
    pooled: tuple[str, tuple[str, ...]]
    """A turn, and its first items in the pool, as the README shows them."""


_TOPICS = tuple(map(str, range(132, 150)))
RELEASED: dict[Name, ReleasedCounts] = {
    "response": ReleasedCounts(
        judged="2479",
        turns="162",
        topics=tuple(topic for topic in _TOPICS if topic != "134"),
        bank="2315",
        grades={
            "relevance": ("235", "690", "955", "599"),
            "naturalness": ("457", "1014", "788", "220"),
            "conciseness": ("520", "1041", "703", "215"),
        },
        subsets={},
        pooled=("132_1-1", ("R00000", "R00263", "R00321", "R00395", "R00585", "R00711")),
    ),
    "question": ReleasedCounts(
        judged="2024",
        turns="205",
        topics=_TOPICS,
        bank="5597",
        grades={
            "relevance": ("654", "613", "397", "360"),
            "novelty": ("625", "751", "482", "166"),
            "diversity": ("506", "829", "497", "192"),
        },
        subsets={"question_relevance_filtered": "1919", "question_relevance_mi_subset": "246"},
        pooled=("132_1-1", ("Q0821", "Q1856", "Q4759", "Q4964", "Q5318", "Q5919", "Q6070", "Q6274")),
    ),
}
KNOWN_BAD = ("136_1-1", "Q6471")
"""Turn and question ("Are you looking for a specific web site") that the README expects to be 0 or 1 in relevance."""


def reproduce(folder: Path) -> papers.Reproduction:
    """Count the release again, and hold its files against its README.

    An InputError if a file cannot be read, or the judgments or the bank are damaged; every problem is listed.
    """
    judgments = papers.find_released(folder, _JUDGMENTS)
    if not judgments:
        raise papers.nothing_found(folder, _JUDGMENTS)
    found = ((name, read_resource(path.parent.parent)) for name, path in judgments.items())
    parts = [part for name, near in found for part in near if part.kind.name == name]
    damage = [problem for part in parts for problem in part.problems]
    refuse(damage, f"{folder}: damaged: {count(len(damage), 'problem')}")
    listed = papers.find_released(folder, (_TURNS,)).get("turns")
    turns = read_turns(listed) if listed is not None else None
    numbers = [number for part in parts for number in (*_readme(part, turns), *_release(part, turns))]
    absent = [name for name in RELEASED if name not in {part.kind.name for part in parts}]
    without = tuple(f"The {name}s are not in this folder." for name in absent)
    ordered = sorted(numbers, key=lambda number: number.table)
    return papers.Reproduction("cast-regin", SOURCE, tuple(ordered), beyond(parts), (*NOTES, *without))


def _readme(part: Part, turns: Sequence[str] | None) -> list[papers.PublishedNumber]:
    """The README's statements as numbers that should be 0."""
    of_checks = regin.check(part, turns)
    rows = [
        _claim(part, f"{path}: lines that the judgments do not give", different, _why(part, path, of_checks))
        for path, different in _different_lines(part, turns)
    ]
    if part.kind.bank in part.released:
        absent = [row.item_id for row in part.rows if row.item_id not in part.bank]
        rows.append(_claim(part, "judged items that the bank lacks", len(absent), examples(absent)))
        texts, spaces = regin.other_texts(part)
        reason = f"{spaces} of {len(texts)} in white space only: {examples([row.item_id for row in texts])}"
        rows.append(_claim(part, "judged texts other than the bank's", len(texts), reason))
    for name, left in regin.without_relevant(part).items():
        reason = f"not filtered, against the README: {examples(left)}"
        rows.append(_claim(part, f"{name}: turns without a grade of {RELEVANT} or more", len(left), reason))
    rows += _shown(part)
    return rows


def _shown(part: Part) -> list[papers.PublishedNumber]:
    """The README's examples: first lines of the pool, and a question that is known to be bad."""
    turn_id, items = RELEASED[part.kind.name].pooled
    rows = []
    if any(row.turn_id == turn_id for row in part.rows):
        absent = [item for item in items if (turn_id, item) not in set(part.keys)]
        rows.append(
            _claim(part, f"{turn_id}: pooled items of the README's example not judged", len(absent), examples(absent))
        )
    grades = [row.grades["relevance"] for row in part.rows if (row.turn_id, row.item_id) == KNOWN_BAD]
    if grades:
        measure = f"{' '.join(KNOWN_BAD)}: known to be bad, but with a relevance of {RELEVANT} or more"
        rows.append(_claim(part, measure, sum(grade >= RELEVANT for grade in grades), f"its grade is {grades[0]}"))
    return rows


def _claim(part: Part, measure: str, ours: int, reason: str) -> papers.PublishedNumber:
    return papers.beside_ours("README", f"{part.kind.name}s", measure, "0", _count(part, ours), reason)


def _different_lines(part: Part, turns: Sequence[str] | None) -> list[tuple[str, int]]:
    """Each released pool and qrels file with how many lines it has too many or too few."""
    made = regin.regenerate(part, turns)
    mi_subset = qrels_path(part.kind.mi_subset)
    if part.kind.criterion_of_subsets and mi_subset not in made and mi_subset in part.released:
        # Which turns are in the subset only the file itself can say where no list is given.
        whole = part.graded(part.kind.criterion_of_subsets)
        made[mi_subset] = regin.qrels_bytes(regin.of_turns(whole, _turns_of(part, mi_subset)))
    found = []
    for path in (part.kind.pool, *map(qrels_path, part.kind.qrels)):
        if path in part.released and path in made:
            theirs, ours = Counter(part.released[path].splitlines()), Counter(made[path].splitlines())
            found.append((path, ((theirs - ours) + (ours - theirs)).total()))
    return found


def _turns_of(part: Part, path: str) -> set[str]:
    """The turns of a released qrels file; none of one that is damaged, whose lines all differ then."""
    try:
        return {row.turn_id for row in parse_qrels(part.released[path].decode(), part.file(path), GRADES)}
    except (InputError, UnicodeDecodeError):
        return set()


def _why(part: Part, path: str, problems: Sequence[Problem]) -> str:
    said = (problem.message for problem in problems if problem.file == part.file(path) and problem.code in _OF_FILES)
    return "; ".join(list(said)[:2])


def _release(part: Part, turns: Sequence[str] | None) -> list[papers.PublishedNumber]:
    """The counts of the whole release beside those of the folder."""
    released, row = RELEASED[part.kind.name], f"{part.kind.name}s"
    here = {topic_of(turn_id) for turn_id, _ in part.keys}
    reason = _partial([topic for topic in released.topics if topic not in here])
    cells = [
        (f"judged {row}", released.judged, len(part.rows)),
        ("turns", released.turns, len({turn_id for turn_id, _ in part.keys})),
        ("topics", str(len(released.topics)), len(here)),
    ]
    if part.kind.bank in part.released:
        cells.append(("texts of the bank", released.bank, len(part.bank)))
    for criterion, printed in released.grades.items():
        found = Counter(row.grades[criterion] for row in part.rows)
        cells += [(f"{criterion} {grade}", printed[grade], found[grade]) for grade in GRADES]
    subsets = regin.qrels_of(part, turns)
    for name, printed_rows in released.subsets.items():
        if name in subsets:
            cells.append((f"rows of {name}", printed_rows, len(subsets[name])))
    return [
        papers.beside_ours("release", row, measure, published, _count(part, ours), reason)
        for measure, published, ours in cells
    ]


def _count(part: Part, number: int) -> Estimate:
    return papers.counted(number, len(part.rows), len({topic_of(turn_id) for turn_id, _ in part.keys}))


def _partial(missing: Sequence[str]) -> str:
    """Why a folder has less than the release."""
    if not missing:
        return "the folder is not the release as it was counted"
    if len(missing) == 1:
        return f"rows of topic {missing[0]} are not in this folder"
    first, last = int(missing[0]), int(missing[-1])
    whole = last - first + 1 == len(missing)
    return f"rows of topics {f'{first}-{last}' if whole else examples(missing)} are not in this folder"


SEED = 2022
"""Of resampled topics."""
_SCALE = tuple(GRADES)


def beyond(parts: Sequence[Part]) -> tuple[Table[Any], ...]:
    """The tables that the README does not have."""
    return _retests(parts), _lengths(parts)


def _retests(parts: Sequence[Part]) -> Table[Any]:
    """How far two grades agree that workers gave to nearly the same text in one turn."""
    lines: list[tuple[Cell, ...]] = []
    notes = [
        "pairs: texts of one turn that differ in case, punctuation and white space only, judged under two ids. same: "
        "share of equal grades. wkappa: quadratic weights, the smaller id first. alpha: ordinal. Intervals are over "
        "topics.",
        "Both grades have noise, so they are no upper limit: a judge with less may agree with one of them better than "
        "they do with each other.",
    ]
    for part in parts:
        grades, twice = {(row.turn_id, row.item_id): row.grades for row in part.rows}, regin.retests(part)
        for criterion in part.kind.all_turns:
            by_topic = groups_of(
                (topic_of(turn_id), (grades[turn_id, first][criterion], grades[turn_id, second][criterion]))
                for turn_id, *items in twice
                for first, second in [sorted(items, key=natural_key)]
            )
            tables = np.array([confusion(by_topic[topic], _SCALE) for topic in sorted(by_topic, key=natural_key)])
            tables = tables.reshape(-1, len(_SCALE), len(_SCALE))
            rows = all_resampled(("percent", "wkappa", "alpha_ordinal"), tables, _SCALE, np.random.default_rng(SEED))
            estimates = [row.estimate for row in rows.values()]
            lines.append((f"{part.kind.name}s", criterion, estimates[0].n, *estimates))
            notes += [f"{part.kind.name}s: {each.reason}" for each in estimates if each.reason]
    columns = ("part", "criterion", "pairs", "same", "wkappa", "alpha")
    return Table(lines, columns, "Retests", dict.fromkeys(notes))


def _lengths(parts: Sequence[Part]) -> Table[Any]:
    """The guideline's limit; a text that is judged in several turns counts in each."""
    return papers.lengths_grid(
        {
            f"{part.kind.name}s": {
                f"{row.turn_id}.{place}": row.text for place, row in enumerate(part.rows) if countable(row.text)
            }
            for part in parts
        }
    )
