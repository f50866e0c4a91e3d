"""iKAT 2023: Table 7 (responses judged by GPT-4) and Table 1 (the test collection) from the released files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.extra.reproduce.published import (
    PublishedNumber,
    ReleasedFile,
    Reproduction,
    beside_ours,
    counted,
    find_released,
    left_out,
)
from judge.extra.reproduce.published.gpt4_labels import (
    CRITERIA,
    LABEL_FILES,
    RunLabels,
    beyond,
    graded,
    read_gpt4_labels,
    spelled,
)
from judge.io.files import text_of
from judge.io.ids import QrelRow, cluster_of, parse_qrels, topic_of
from judge.io.text import decimals
from judge.records import Estimate
from judge.runs.topics import read_topics

SOURCE = (
    "M. Aliannejadi, Z. Abbasiantaeb, S. Chatterjee, J. Dalton & L. Azzopardi (2024), TREC iKAT 2023: The Interactive "
    "Knowledge Assistance Track Overview, arXiv:2401.01330"
)
TABLE_7 = (
    ("run-4-GPT-4", "0.89", "65", "8", "4.0"),
    ("georgetown_infosense_ikat_run_3", "0.67", "47", "23", "3.684"),
    ("uot-yahoo_run_llmnoptkb", "0.67", "49", "24", "2.9178"),
    ("run_automatic_dense_monot5", "0.51", "37", "36", "2.808"),
)
"""Run, share of grounded responses, grounded and not grounded, mean naturalness, as printed."""

_SKIPPED = (
    "the paper counts 47 + 23 = 70 turns, the release has 73 of this run, 50 of them grounded; the authors' program "
    "leaves out responses of 10 characters or fewer and those without a passage, which would fit"
)
_SUM = (
    "the 73 released labels sum to {}, the printed mean is that of {}: {}; the release once had a label of 3.5 that "
    "became 3, and more of that would explain it, but cannot be shown"
)
_KNOWN: dict[tuple[str, str], tuple[str, str]] = {
    ("georgetown_infosense_ikat_run_3", "groundedness"): ("0.68", _SKIPPED),
    ("georgetown_infosense_ikat_run_3", "grounded"): ("50", _SKIPPED),
    ("georgetown_infosense_ikat_run_3", "naturalness"): ("3.644", _SUM.format(266, 269, "3 points more")),
    ("uot-yahoo_run_llmnoptkb", "naturalness"): ("2.9041", _SUM.format(212, 213, "1 point more")),
    ("run_automatic_dense_monot5", "naturalness"): ("2.767", _SUM.format(202, 205, "3 points more")),
}
"""Run and measure to what the release gives, rounded as printed, and why that is not what is printed."""
_OTHER = "not known: the release that this command was written for gives {}"

NOTES = (
    "A released groundedness label of 1 says that the response has information that its passages lack, so a response "
    "is grounded where the label is 0.",
    "The paper's scale of naturalness has the levels 0, 1, 2, 3 and 3, its scale of groundedness 0 to 3; the released "
    "labels are 0 to 4, and 0 and 1.",
    "Tables 3 to 6 (passages, PTKB statements) cannot be made again: no run file of 2023 is public. `judge evaluate` "
    "has their measures for runs of your own.",
    "No response text of these runs is public, so the labels can be counted again but the responses not judged again.",
)


def reproduce(folder: Path) -> Reproduction:
    """Make Table 7 and Table 1 again, and say what the labels hold beyond them.

    An InputError if a file is absent or bad; every problem is listed.
    """
    paths = find_released(folder, (*LABEL_FILES, *COLLECTION_FILES))
    labels = read_gpt4_labels({each.name: paths[each.name] for each in CRITERIA if each.name in paths})
    numbers, collection_notes = collection(paths)
    return Reproduction(
        name="ikat2023",
        source=SOURCE,
        numbers=(*_table_7(labels), *numbers),
        beyond=beyond(labels, spelled(labels, [row[0] for row in TABLE_7])),
        notes=(*NOTES, *collection_notes, *left_out(LABEL_FILES, paths)),
    )


def _table_7(labels: Mapping[str, Mapping[str, RunLabels]]) -> list[PublishedNumber]:
    """The cells of Table 7; a share with its two counts is three cells."""
    by_name = {each.name: each for each in CRITERIA}
    numbers: list[PublishedNumber] = []
    for run_id, share, good, bad, mean in TABLE_7:
        grounded = graded(labels, by_name["groundedness"], run_id)
        natural = graded(labels, by_name["naturalness"], run_id)
        yes = no = None
        if grounded is not None and grounded.value is not None:
            grades = labels["groundedness"][run_id.lower()].grades.values()
            yes, no = (
                counted(sum(grade == wanted for grade in grades), len(grades), grounded.topics) for wanted in (1, 0)
            )
        cells = (("groundedness", share, grounded), ("grounded", good, yes), ("not grounded", bad, no))
        for measure, published, ours in (*cells, ("naturalness", mean, natural)):
            numbers.append(
                beside_ours("Table 7", run_id, measure, published, ours, _reason(run_id, measure, published, ours))
            )
    return numbers


def _reason(run_id: str, measure: str, published: str, ours: Estimate | None) -> str:
    if ours is None or ours.value is None:
        return "the folder has no label of this run"
    places = len(published.partition(".")[2])
    released, reason = _KNOWN.get((run_id, measure), (published, ""))
    return reason if decimals(ours.value, places) == released else _OTHER.format(released)


_NIST = "the page trec.nist.gov/data/ikat2023.html"
_REPOSITORY = "the repository irlabamsterdam/iKAT, folder 2023/{}/"
COLLECTION_FILES = (
    ReleasedFile(
        "topics", "2023_test_topics.json", r"2023_test_topics\.json(\.gz)?", _REPOSITORY.format("data"), False
    ),
    ReleasedFile("passages", "2023_test_qrels.trec", r"2023[_-](test[_-])?qrels\S*\.(trec|txt)(\.gz)?", _NIST, False),
    ReleasedFile("ptkb_nist", "ptkb_rel_nist", r"ptkb_rel_nist(\.txt)?", _REPOSITORY.format("evaluation"), False),
    ReleasedFile("ptkb_organizers", "ptkb_rel_org", r"ptkb_rel_org(\.txt)?", _REPOSITORY.format("evaluation"), False),
)
TABLE_1 = (
    ("topics", "Topics", "13"),
    ("topics", "Dialogues", "25"),
    ("topics", "Turns", "326"),
    ("topics", "Avg. dialogue length", "13.04"),
    ("topics", "Avg. num. of dialogue per topic", "1.92"),
    ("passages", "Assessed turns", "176"),
    ("passages", "Passages assessed", "26,159"),
    ("passages", "Num of pruned turns", "43"),
    ("passages", "Num of turns after pruning", "133"),
    ("passages", "Num of dialogues after pruning", "24"),
    ("passages", "Fails to meet (0)", "20,458"),
    ("passages", "Slightly meets (1)", "2,787"),
    ("passages", "Moderately meets (2)", "1,803"),
    ("passages", "Highly meets (3)", "932"),
    ("passages", "Fully meets (4)", "179"),
    ("ptkb_nist", "PTKB turns assessed by NIST", "98"),
    ("ptkb_nist", "PTKB assessments by NIST", "1,030"),
    ("ptkb_nist", "Relevant (1) by NIST", "224"),
    ("ptkb_organizers", "PTKB turns assessed by the organizers", "112"),
    ("ptkb_organizers", "PTKB assessments by the organizers", "1,158"),
    ("ptkb_organizers", "Relevant (1) by the organizers", "182"),
)
"""The file that a cell is counted in, the cell, and what is printed."""
RELEASED_TURNS, RELEASED_PASSAGES = 332, 34_183
"""What the release holds that this module was written for."""
_OTHER_RELEASE = "not known: this is not the release that this command was written for"
_TURNS = "not known: the released topics have 332 turns, and the track's validator expects 332"
_PRUNED = (
    "Table 1 counts what is left without 43 pruned turns; the released qrels have all 176, and no list of the 43 is "
    "public"
)
_NO_LIST = "no list of the pruned turns is public"

_Counts = dict[str, tuple[Estimate | None, str]]
"""Cell to what is counted, and why that is not what is printed."""


def collection(paths: Mapping[str, Path]) -> tuple[list[PublishedNumber], tuple[str, ...]]:
    """The cells of Table 1 if any of its files is there, and a note about the files that are not.

    An InputError if a file is bad.
    """
    absent = {file.key: file.name for file in COLLECTION_FILES if file.key not in paths}
    notes = (f"Table 1 needs more files, which are not in the folder: {', '.join(absent.values())}.",) if absent else ()
    if len(absent) == len(COLLECTION_FILES):
        return [], notes
    counts: _Counts = {
        row: (None, _NO_LIST if "prun" in row else f"{absent[key]} is not in the folder")
        for key, row, _ in TABLE_1
        if key in absent or "prun" in row
    }
    if "topics" in paths:
        counts |= _topics(paths["topics"])
    if "passages" in paths:
        counts |= _passages(paths["passages"])
    for key, who in (("ptkb_nist", "NIST"), ("ptkb_organizers", "the organizers")):
        if key in paths:
            counts |= _statements(paths[key], who)
    return [beside_ours("Table 1", row, "count", published, *counts[row]) for _, row, published in TABLE_1], notes


def _topics(path: Path) -> _Counts:
    topics = read_topics(path)
    themes = len({cluster_of(topic.topic_id, "theme") for topic in topics})
    turns = sum(len(topic.turns) for topic in topics)
    ours = (themes, len(topics), turns, turns / len(topics), len(topics) / themes)
    reason = _TURNS if turns == RELEASED_TURNS else _OTHER_RELEASE
    rows = (row for key, row, _ in TABLE_1 if key == "topics")
    return {row: (counted(number, turns, len(topics)), reason) for row, number in zip(rows, ours, strict=True)}


def _passages(path: Path) -> _Counts:
    rows = parse_qrels(text_of(path), str(path), range(5))
    grades = Counter(row.grade for row in rows)
    cells = [row for key, row, _ in TABLE_1 if key == "passages" and row.endswith(")")]
    ours = {"Passages assessed": len(rows)} | {cell: grades[grade] for grade, cell in enumerate(cells)}
    reason = _PRUNED if len(rows) == RELEASED_PASSAGES else _OTHER_RELEASE
    counts: _Counts = {cell: (_among(rows, number), reason) for cell, number in ours.items()}
    return counts | {"Assessed turns": (_among(rows, len({row.turn_id for row in rows})), _OTHER_RELEASE)}


def _statements(path: Path, who: str) -> _Counts:
    rows = parse_qrels(text_of(path), str(path), (0, 1))
    ours = {
        f"PTKB turns assessed by {who}": len({row.turn_id for row in rows}),
        f"PTKB assessments by {who}": len(rows),
        f"Relevant (1) by {who}": sum(row.grade for row in rows),
    }
    return {cell: (_among(rows, number), _OTHER_RELEASE) for cell, number in ours.items()}


def _among(rows: Sequence[QrelRow], number: int) -> Estimate:
    return counted(number, len(rows), len({topic_of(row.turn_id) for row in rows}))
