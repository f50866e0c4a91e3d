"""Table 1 of the iKAT 2023 overview: counts of topics, turns, passages and PTKB statements."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.extra.reproduce.published import PublishedNumber, beside_ours, counted
from judge.extra.reproduce.published.released import ReleasedFile
from judge.io.ids import cluster_of, topic_of
from judge.io.line_stream import text_of
from judge.io.trec import QrelRow, parse_qrels
from judge.records import Estimate
from judge.runs.topics import read_topics

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
_PRUNED = (
    "Table 1 counts what is left without 43 pruned turns; the released qrels have all 176, and no list of the 43 is "
    "public"
)
RELEASED_TURNS, RELEASED_PASSAGES = 332, 34_183
"""What the release holds that this module was written for."""
_OTHER = "not known: this is not the release that this command was written for"
_TURNS = "not known: the released topics have 332 turns, and the track's validator expects 332"
_NO_LIST = "no list of the pruned turns is public"
_ABSENT = "{} is not in the folder"
_GRADES = (
    ("Fails to meet (0)", "20,458"),
    ("Slightly meets (1)", "2,787"),
    ("Moderately meets (2)", "1,803"),
    ("Highly meets (3)", "932"),
    ("Fully meets (4)", "179"),
)


def collection(paths: Mapping[str, Path]) -> tuple[list[PublishedNumber], tuple[str, ...]]:
    """The cells of Table 1 whose files are there, and a note about those whose files are not.

    Raises:
        InputError: A file is bad.
    """
    absent = [file.name for file in COLLECTION_FILES if file.key not in paths]
    notes = (f"Table 1 needs more files, which are not in the folder: {', '.join(absent)}.",) if absent else ()
    if len(absent) == len(COLLECTION_FILES):
        return [], notes
    cells = [*_topics(paths.get("topics")), *_passages(paths.get("passages"))]
    for key, who, turns, labels, relevant in (
        ("ptkb_nist", "NIST", "98", "1,030", "224"),
        ("ptkb_organizers", "the organizers", "112", "1,158", "182"),
    ):
        cells += _statements(paths.get(key), who, (turns, labels, relevant))
    names = {file.key: file.name for file in COLLECTION_FILES}
    return [
        beside_ours("Table 1", row, "count", published, ours, reason or _ABSENT.format(names[key]))
        for key, row, published, ours, reason in cells
    ], notes


_Cell = tuple[str, str, str, Estimate | None, str]
"""The file, the row of the table, what is printed, ours, and why they differ."""


def _topics(path: Path | None) -> list[_Cell]:
    cells = (
        ("Topics", "13"),
        ("Dialogues", "25"),
        ("Turns", "326"),
        ("Avg. dialogue length", "13.04"),
        ("Avg. num. of dialogue per topic", "1.92"),
    )
    if path is None:
        return [("topics", row, published, None, "") for row, published in cells]
    topics = read_topics(path)
    themes = len({cluster_of(topic.topic_id, "theme") for topic in topics})
    turns = sum(len(topic.turns) for topic in topics)
    ours = (themes, len(topics), turns, turns / len(topics), len(topics) / themes)
    return [
        ("topics", row, published, counted(number, turns, len(topics)), _TURNS if turns == RELEASED_TURNS else _OTHER)
        for (row, published), number in zip(cells, ours, strict=True)
    ]


def _passages(path: Path | None) -> list[_Cell]:
    pruning = (
        ("Num of pruned turns", "43"), ("Num of turns after pruning", "133"), ("Num of dialogues after pruning", "24")
    )  # fmt: skip
    rows = () if path is None else parse_qrels(text_of(path), str(path), range(5))
    turns = {row.turn_id for row in rows}
    grades = Counter(row.grade for row in rows)

    def ours(number: int) -> Estimate | None:
        return None if path is None else counted(number, len(rows), len(set(map(topic_of, turns))))

    def reason(text: str) -> str:
        return "" if path is None else text if len(rows) == RELEASED_PASSAGES else _OTHER

    return [
        ("passages", "Assessed turns", "176", ours(len(turns)), reason(_OTHER)),
        ("passages", "Passages assessed", "26,159", ours(len(rows)), reason(_PRUNED)),
        *(("passages", row, published, None, _NO_LIST) for row, published in pruning),
        *(
            ("passages", row, published, ours(grades[grade]), reason(_PRUNED))
            for grade, (row, published) in enumerate(_GRADES)
        ),
    ]


def _statements(path: Path | None, who: str, published: Sequence[str]) -> list[_Cell]:
    key = "ptkb_nist" if who == "NIST" else "ptkb_organizers"
    names = (f"PTKB turns assessed by {who}", f"PTKB assessments by {who}", f"Relevant (1) by {who}")
    if path is None:
        return [(key, row, number, None, "") for row, number in zip(names, published, strict=True)]
    rows: tuple[QrelRow, ...] = parse_qrels(text_of(path), str(path), (0, 1))
    turns = {row.turn_id for row in rows}
    ours = (len(turns), len(rows), sum(row.grade for row in rows))
    return [
        (key, row, number, counted(value, len(rows), len(set(map(topic_of, turns)))), _OTHER)
        for row, number, value in zip(names, published, ours, strict=True)
    ]
