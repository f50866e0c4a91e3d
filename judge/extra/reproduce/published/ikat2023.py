"""iKAT 2023: Table 7 (responses judged by GPT-4) and Table 1 (the test collection) from the released files."""

from collections.abc import Mapping
from pathlib import Path

from judge.extra.reproduce.published import PublishedNumber, Reproduction, beside_ours, counted
from judge.extra.reproduce.published.gpt4_labels import CRITERIA, LABEL_FILES, RunLabels, read_gpt4_labels, spelled
from judge.extra.reproduce.published.ikat2023_beyond import beyond, graded
from judge.extra.reproduce.published.ikat2023_collection import COLLECTION_FILES, collection
from judge.extra.reproduce.published.released import find_released
from judge.io.cells import decimals
from judge.records import Estimate

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

    Raises:
        InputError: A file is absent or bad; every problem is listed.
    """
    paths = find_released(folder, (*LABEL_FILES, *COLLECTION_FILES))
    labels = read_gpt4_labels({each.name: paths[each.name] for each in CRITERIA if each.name in paths})
    numbers, collection_notes = collection(paths)
    absent = [file.name for file in LABEL_FILES if file.key not in paths]
    without = (f"Not in the folder, so left out: {', '.join(absent)}.",) if absent else ()
    return Reproduction(
        name="ikat2023",
        source=SOURCE,
        numbers=(*_table_7(labels), *numbers),
        beyond=beyond(labels, spelled(labels, [row[0] for row in TABLE_7])),
        notes=(*NOTES, *collection_notes, *without),
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
