"""Table 7 and Table 1 of the iKAT 2023 overview from the real released files, and the figures beyond them."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from judge.cli import main
from judge.extra.reproduce.published import Reproduction, reproduce_publication
from judge.records import Estimate
from tests.conftest import PROJECT

RUNS = (
    "run-4-gpt-4", "georgetown_infosense_ikat_run_3", "uot-yahoo_run_llmnoptkb", "run_automatic_dense_monot5",
    "llama2_only_10_docs",
)  # fmt: skip
"""By falling share of grounded responses."""


@pytest.fixture(scope="module")
def made(shared: Path) -> Reproduction:
    return reproduce_publication("ikat2023", shared / "ikat")


def test_table_7_is_made_again_cell_by_cell(made: Reproduction) -> None:
    cells = {
        (number.row, number.measure): (number.published, round(number.ours.value, 4), number.difference)
        for number in made.numbers
        if number.table == "Table 7" and number.ours is not None and number.ours.value is not None
    }
    assert cells == {
        ("run-4-GPT-4", "groundedness"): ("0.89", 0.8904, 0),
        ("run-4-GPT-4", "grounded"): ("65", 65, 0),
        ("run-4-GPT-4", "not grounded"): ("8", 8, 0),
        ("run-4-GPT-4", "naturalness"): ("4.0", 4.0, 0),
        ("georgetown_infosense_ikat_run_3", "groundedness"): ("0.67", 0.6849, 0.01),
        ("georgetown_infosense_ikat_run_3", "grounded"): ("47", 50, 3),
        ("georgetown_infosense_ikat_run_3", "not grounded"): ("23", 23, 0),
        ("georgetown_infosense_ikat_run_3", "naturalness"): ("3.684", 3.6438, -0.04),
        ("uot-yahoo_run_llmnoptkb", "groundedness"): ("0.67", 0.6712, 0),
        ("uot-yahoo_run_llmnoptkb", "grounded"): ("49", 49, 0),
        ("uot-yahoo_run_llmnoptkb", "not grounded"): ("24", 24, 0),
        ("uot-yahoo_run_llmnoptkb", "naturalness"): ("2.9178", 2.9041, -0.0137),
        ("run_automatic_dense_monot5", "groundedness"): ("0.51", 0.5068, 0),
        ("run_automatic_dense_monot5", "grounded"): ("37", 37, 0),
        ("run_automatic_dense_monot5", "not grounded"): ("36", 36, 0),
        ("run_automatic_dense_monot5", "naturalness"): ("2.808", 2.7671, -0.041),
    }


def test_the_page_shows_what_is_printed(shared: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["reproduce", "ikat2023", str(shared / "ikat/2023/gpt4_judgments")]) == 0
    text = (PROJECT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    block = re.search(r"^```\n(ikat2023: .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out.startswith(block[1])


def test_every_cell_that_differs_or_lacks_has_a_reason_and_no_other(made: Reproduction) -> None:
    assert [number for number in made.numbers if bool(number.reason) != (number.difference != 0)] == []
    assert not any("not known: the release that" in number.reason for number in made.numbers)


def test_table_1_is_made_again_where_the_files_allow(made: Reproduction) -> None:
    ours = {
        number.row: (number.published, number.ours and round(number.ours.value or 0, 2))
        for number in made.numbers
        if number.table == "Table 1"
    }
    assert ours == {
        "Topics": ("13", 13),
        "Dialogues": ("25", 25),
        "Turns": ("326", 332),
        "Avg. dialogue length": ("13.04", 13.28),
        "Avg. num. of dialogue per topic": ("1.92", 1.92),
        "Assessed turns": ("176", 176),
        "Passages assessed": ("26,159", 34183),
        "Num of pruned turns": ("43", None),
        "Num of turns after pruning": ("133", None),
        "Num of dialogues after pruning": ("24", None),
        "Fails to meet (0)": ("20,458", 25467),
        "Slightly meets (1)": ("2,787", 4131),
        "Moderately meets (2)": ("1,803", 2733),
        "Highly meets (3)": ("932", 1542),
        "Fully meets (4)": ("179", 310),
        "PTKB turns assessed by NIST": ("98", 98),
        "PTKB assessments by NIST": ("1,030", 1030),
        "Relevant (1) by NIST": ("224", 224),
        "PTKB turns assessed by the organizers": ("112", 112),
        "PTKB assessments by the organizers": ("1,158", 1158),
        "Relevant (1) by the organizers": ("182", 182),
    }


def test_the_means_of_all_criteria_are_those_of_the_labels(made: Reproduction) -> None:
    means = {(line[0], str(line[1]).lower()): line[3] for line in made.beyond[0]}
    expected = {
        "groundedness": (0.8904, 0.6849, 0.6712, 0.5068, 0.3151),
        "naturalness": (4.0, 3.6438, 2.9041, 2.7671, 3.6986),
        "relevance": (2.9178, 1.5616, 0.3562, 0.6986, 1.2603),
        "completeness": (2.8493, 1.2329, 0.1096, 0.3699, 1.0556),
    }
    for criterion, values in expected.items():
        for run, value in zip(RUNS, values, strict=True):
            found = means[criterion, run]
            assert isinstance(found, Estimate)
            assert (round(found.value or 0, 4), found.topics) == (value, 23)
    dropped = means["completeness", "llama2_only_10_docs"]
    # One label of -1 is no grade: 76 points over 72 turns; with it 75 over 73 would be 1.0274.
    assert isinstance(dropped, Estimate)
    assert (dropped.n, dropped.value) == (72, 76 / 72)
    assert means["naturalness", "run-4-gpt-4"] == Estimate(4.0, None, None, 73, 23, "all grades equal")


def test_the_intervals_of_the_grounded_shares(made: Reproduction) -> None:
    of_run = {line[2]: line[3] for line in made.beyond[1] if line[0] == "run-4-GPT-4"}
    shown = {
        name: (round(each.low or 0, 4), round(each.high or 0, 4))
        for name, each in of_run.items()
        if isinstance(each, Estimate)
    }
    assert shown == {
        "Clopper-Pearson, turns": (0.7954, 0.9515),
        "Wilson, turns": (0.7984, 0.9434),
        "t, topics": (0.7818, 0.9485),
        "t, themes": (0.7989, 0.9432),
    }


def test_the_step_down_adjusts_every_p(made: Reproduction) -> None:
    lines = [line for line in made.beyond[2] if line[0] == "groundedness"]
    alone, adjusted = ([float(str(line[place])) for line in lines] for place in (4, 5))
    assert all(p <= q for p, q in zip(alone, adjusted, strict=True))
    of_pair = dict(zip(combinations(range(1, 6), 2), adjusted, strict=True))
    shown = {(1, 2): 0.043, (1, 3): 0.039, (1, 4): 0.0012, (3, 4): 0.079, (4, 5): 0.079}
    for pair, p in shown.items():
        assert of_pair[pair] == pytest.approx(p, abs=5e-4)
    of_pair = dict(zip(combinations(range(1, 6), 2), alone, strict=True))
    assert [of_pair[pair] for pair in ((1, 2), (3, 4))] == pytest.approx([0.0162, 0.0319], abs=5e-4)
    # Only the pairs 2-3, 3-4 and 4-5 are not told apart at .05.
    assert [line[5] for line in made.beyond[0] if line[0] == "groundedness"] == ["a", "b", "bc", "cd", "d"]


def test_cone_rag_counts_what_is_public(shared: Path) -> None:
    made = reproduce_publication("cone-rag", shared)
    assert {number.measure: number.difference for number in made.numbers} == {
        "conversations": 0, "passage assessments": 0, "gold nuggets": None, "gold answers": None,
    }  # fmt: skip
    over = {(line[0], line[1]): line[3] for line in made.beyond[-1]}
    assert over["Llama3.1-QR-splade-rr-baseline", "bare"] == 53
