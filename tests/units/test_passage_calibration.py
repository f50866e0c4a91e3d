"""Grades of passages against people's: two qrels in; leaks into each level, cuts, runs by both; published digits."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from judge.cli import main
from judge.gold.rows import GoldRow
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.calibration.rankings import _people
from judge.stats.agreement import point
from judge.stats.tables import confusion
from tests.conftest import PROJECT, complaint, printed, put
from tests.units.test_passages import TURN, A, B, C, D, world

TURNS = tuple(f"{topic}_{turn}" for topic in range(1, 7) for turn in (1, 2))
PAIRS = ((0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3))
"""People's grade and the judge's of each passage of a turn."""


def qrels(folder: Path, turns: tuple[str, ...] = TURNS, more: str = "") -> tuple[Path, Path]:
    """People's qrels, and a judge's of the same passages."""
    people = "".join(f"{turn} 0 p{place} {human}\n" for turn in turns for place, (human, _) in enumerate(PAIRS))
    judge = "".join(f"{turn} 0 p{place} {grade}\n" for turn in turns for place, (_, grade) in enumerate(PAIRS))
    return put(folder / "nist.qrel", people + more), put(folder / "judge.qrel", judge)


def calibrated(*given: object) -> int:
    return main([str(each) for each in ("calibrate", *given, "--criterion", "passage_relevance")])


def findings(capsys: pytest.CaptureFixture[str], *given: object) -> dict[str, list[dict[str, Any]]]:
    code = calibrated(*given, "--replicates", 200, "--permutations", 200, "--json")
    return json.loads(printed(capsys, code))["findings"]


def test_what_leaks_into_each_level_is_said_in_words(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    said = " ".join(printed(capsys, calibrated("--gold", people, "--judgments", judge)).split())
    # A turn has four passages of grade 0, and one of them is called 2: all turns alike, so no interval.
    assert (
        "Of 48 passages that people grade 0, the judge calls 25 % relevant "
        "(grade 0: 50 %, grade 1: 25 %, grade 2: 25 %, grade 3: 0 %)." in said
    )
    assert "Of 24 passages that people grade 3, the judge calls 100 % relevant" in said


def test_qrels_of_other_turns_are_refused(tmp_path, capsys) -> None:
    people, _ = qrels(tmp_path)
    other = put(tmp_path / "other.qrel", "q1 0 p0 1\nq2 0 p0 0\n")
    said = complaint(capsys, calibrated("--gold", people, "--judgments", other))
    assert "nist.qrel: grades of other turns than the labels of" in said
    assert "it has 1_1, 1_2, 2_1, …, the labels q1, q2" in said


def test_shares_have_intervals_over_topics(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    # One topic more, of which the judge calls both passages of grade 0 relevant.
    put(people, people.read_text() + "7_1 0 p0 0\n7_1 0 p1 0\n")
    put(judge, judge.read_text() + "7_1 0 p0 2\n7_1 0 p1 3\n")
    rows = findings(capsys, "--gold", people, "--judgments", judge)["leakage"]
    (leak,) = (
        row["statistics"]["share"]
        for row in rows
        if row["facts"] == {"human": 0, "judged": "relevant", "binary": False}
    )
    assert (leak["value"], leak["n"], leak["topics"]) == (pytest.approx((12 + 2) / 50), 50, 7)
    assert leak["low"] < 0.25 < leak["value"] < leak["high"]


CUTS = {
    # From 1 on: of 10 passages people call 6 relevant, the judge 7, both 5.
    1: {"kappa": point("kappa", np.array([[2, 2], [1, 5]]), (0, 1)), "precision": 5 / 7, "recall": 5 / 6},
    # From 2 on: people 4, the judge 5, both 3.
    2: {"kappa": point("kappa", np.array([[4, 2], [1, 3]]), (0, 1)), "precision": 3 / 5, "recall": 3 / 4},
    3: {"kappa": point("kappa", np.array([[8, 0], [1, 1]]), (0, 1)), "precision": 1.0, "recall": 1 / 2},
}
# Relevant (grade 2 and better) by the judge 1 2 2 3, others 0 0 1 2 0 2: of 24 pairs 17 are won, and 5 tied.
AUC_AT_2 = (17 + 5 / 2) / 24


def test_each_cut_is_compared_as_relevant_or_not(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    rows = findings(capsys, "--gold", people, "--judgments", judge)["cuts"]
    found = {row["facts"]["cut"]: {name: row["statistics"][name]["value"] for name in CUTS[1]} for row in rows}
    assert found == {cut: pytest.approx(values) for cut, values in CUTS.items()}
    assert [row["facts"]["own"] for row in rows] == [False, True, False]
    assert rows[1]["statistics"]["auc"]["value"] == pytest.approx(AUC_AT_2)
    assert {row["facts"]["auc_of"] for row in rows} == {"grades"}


def test_other_spellings_of_turns_and_a_level_more_are_taken(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    put(people, people.read_text().replace("_", "-").replace("1-1 0 p9 3", "1-1 0 p9 4"))
    said = " ".join(printed(capsys, calibrated("--gold", people, "--judgments", judge)).split())
    assert "passage_relevance: 1 gold grade above 3 counted as 3" in said
    assert "120/6" in said


def test_topics_named_by_their_year_are_topics_of_their_own(tmp_path, capsys) -> None:
    # As the id of a turn, 2024-12 would be turn 12 of topic 2024.
    people, judge = qrels(tmp_path, tuple(f"2024-{number}" for number in range(10, 22)))
    runs = trec_runs(tmp_path / "runs", people)
    given = ["--gold", people, "--judgments", judge, "--runs", runs]
    found = findings(capsys, *given)
    assert {row["statistics"]["share"]["topics"] for row in found["leakage"]} == {12}
    (ranking,) = found["rankings"]
    assert ranking["statistics"]["tau_b"]["topics"] == 12


def test_a_judge_with_a_level_more_needs_its_scale(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    put(judge, judge.read_text().replace("1_1 0 p9 3", "1_1 0 p9 4"))
    assert "--scale LOW-HIGH says on which scale columns are" in complaint(
        capsys, calibrated("--gold", people, "--judgments", judge)
    )
    rows = findings(capsys, "--gold", people, "--judgments", judge, "--scale", "0-4")["cuts"]
    # 2 and better stay relevant, whatever levels a track adds above.
    assert [(row["facts"]["cut"], row["facts"]["own"]) for row in rows] == [
        (1, False), (2, True), (3, False), (4, False),
    ]  # fmt: skip


def test_grades_of_responses_have_no_such_findings(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    given = ["calibrate", "--gold", people, "--judgments", judge, "--criterion", "relevance", "--scale", "0-3"]
    code = main([str(each) for each in (*given, "--replicates", 200, "--permutations", 200, "--json")])
    found = json.loads(printed(capsys, code))["findings"]
    assert (found["leakage"], found["cuts"], found["rankings"]) == ([], [], [])
    given = [*given, "--runs", put(tmp_path / "runs" / "a.run", "1_1 Q0 p0 1 1.0 a\n")]
    assert "--runs: ranks runs by grades of passages, and relevance is of responses" in complaint(
        capsys, main([str(each) for each in given])
    )


def test_a_measure_needs_runs(tmp_path, capsys) -> None:
    people, judge = qrels(tmp_path)
    assert "--measure: without effect here: it ranks the runs of --runs" in complaint(
        capsys, calibrated("--gold", people, "--judgments", judge, "--measure", "P@5")
    )


def trec_runs(folder: Path, people: Path, runs: int = 5) -> Path:
    """Runs that know people's grades the less the higher their number is."""
    rng = random.Random(5)
    rows = [line.split() for line in people.read_text(encoding="utf-8").splitlines()]
    for number in range(runs):
        ranked = (
            f"{turn} Q0 {item} 1 {int(grade) + rng.gauss(0, number)} r{number}\n" for turn, _, item, grade in rows
        )
        put(folder / f"r{number}.run", "".join(ranked))
    return folder


@pytest.mark.parametrize("measure", ["nDCG@5", "P(rel=2)@5"])
def test_runs_are_ranked_as_two_sets_of_grades_rank_them(tmp_path, capsys, measure) -> None:
    people, judge = qrels(tmp_path)
    runs = trec_runs(tmp_path / "runs", people)
    evaluate = ["evaluate", "qrels", people, judge, "--runs", runs, "--measure", measure, "--json"]
    (expected,) = json.loads(printed(capsys, main([str(each) for each in evaluate])))["rankings"]
    given = ["--gold", people, "--judgments", judge, "--runs", runs, "--measure", measure, "--out", tmp_path / "out"]
    said = printed(capsys, calibrated(*given))
    assert "Do its qrels rank the runs as people's do?" in said
    found = json.loads((tmp_path / "out" / "calibration.json").read_text())["findings"]["rankings"]
    assert [(row["facts"]["measure"], row["facts"]["runs"]) for row in found] == [(measure, 5)]
    assert found[0]["statistics"]["tau_b"] == expected["statistics"]["tau_b"]
    assert -1 <= found[0]["facts"]["half_judge"] <= 1 >= found[0]["facts"]["half_human"]
    assert (
        (tmp_path / "out" / "rankings.tsv")
        .read_text()
        .startswith("judge\tprompt\tcriterion\tsplit\tmeasure\truns\ttau_b")
    )


def test_several_assessors_have_one_grade_for_the_ranking_of_runs() -> None:
    given = {"p0": (1, 2), "p1": (0, 0, 3), "p2": (0, 1, 3)}
    rows = [
        GoldRow(
            turn_id="1_1", topic_id="1", criterion="passage_relevance", grade=grade, assessor=f"a{n}", response_id=item
        )
        for item, grades in given.items()
        for n, grade in enumerate(grades)
    ]
    held_out = replace(rows[0], response_id="p3", split="test")
    # The middle of 1 and 2 is rounded up; 0 twice is the most frequent; the mean of 0, 1 and 3 is 1.33.
    assert _people("passage_relevance", [*rows, held_out], {}) == {"1_1": {"p0": 2, "p1": 0, "p2": 1}}


def test_folders_and_qrels_are_judges_side_by_side(tmp_path, capsys) -> None:
    folder = world(tmp_path)
    given = ["--topics", folder / "topics.json", "--passages", folder / "passages.jsonl", "--model", "baseline/overlap"]
    run = ["run", "--runs", folder / "runs", *given, "--criteria", "passage_relevance", "--out", folder / "out"]
    assert main([str(each) for each in run]) == 0
    own = folder / "out" / "qrels" / "passage_relevance.llm.qrel"
    copy = put(folder / "copy.qrel", own.read_text(encoding="utf-8").replace("1-1_1", "1-1-1"))
    people = put(folder / "nist.qrel", f"{TURN} 0 {A} 0\n{TURN} 0 {B} 3\n{TURN} 0 {C} 1\n{TURN} 0 {D} 2\n")
    capsys.readouterr()
    given = ["--gold", people, "--judgments", folder / "out", copy, "--runs", folder / "runs", "--json"]
    found = json.loads(printed(capsys, calibrated(*given)))
    rows = {row["judge"]: (row["n"], row["confusion"]) for row in found["agreement"] if row["judge"] != "constant"}
    assert set(rows) == {"baseline/overlap", "copy"}
    assert rows["baseline/overlap"] == rows["copy"]
    assert rows["copy"][0] == 3
    assert len({json.dumps(row["statistics"]) for row in found["findings"]["rankings"]}) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("8_1 Q0 p0 1 1.0 a\n", "answers none of the 12 turns that both sets graded"),
        ("1_1 Q0 q0 1 1.0 a\n", "no run ranks an item that A or B graded"),
        ("1_1 Q0 p0 1 x a\n", "line 1"),
    ],
)
def test_runs_of_something_else_are_refused(tmp_path, capsys, line, words) -> None:
    people, judge = qrels(tmp_path)
    runs = put(tmp_path / "runs" / "a.run", line)
    given = ["--gold", people, "--judgments", judge, "--runs", runs, "--out", tmp_path / "out"]
    assert words in complaint(capsys, calibrated(*given))
    assert not (tmp_path / "out").exists()


# The digits of arXiv:2502.13908: Table 3, and of Table 4 the best number of each column.
LLMJUDGE = [line.split("\t") for line in (PROJECT / "bench/reproduce/llmjudge.tsv").read_text().splitlines()[1:]]


def plan(gold: Path, judgments: list[Path], **more: Any) -> CalibrationPlan:
    return CalibrationPlan(
        gold=(gold,),
        judgments=tuple(judgments),
        criterion="passage_relevance",
        replicates=200,
        permutations=200,
        **more,
    )


@pytest.mark.slow
def test_the_digits_of_the_llmjudge_challenge_are_met(shared: Path) -> None:
    files = sorted((shared / "llmjudge" / "judges").glob("*.txt"))
    gold = shared / "llmjudge" / "llmjudge_test.qrel"
    found = calibrate_judges(plan(gold, files, off_scale="missing")).calibration
    cells: dict[tuple[str, str], float | None] = {}
    for row in found.agreement:
        cells[row.judge, "kappa"] = row.statistics["kappa"].value
        cells[row.judge, "alpha"] = row.statistics["alpha_ordinal"].value
    names = {1: "kappa 0|123", 2: "kappa 01|23", 3: "kappa 012|3"}
    for cut in found.findings["cuts"]:
        cells[cut.judge, names[int(cut.facts["cut"] or 0)]] = cut.statistics["kappa"].value
    # Two of its labels are off the scale. The paper takes the nearest grade; here they are missing.
    printed_ones = {(row, measure): number for _, row, measure, number, *_ in LLMJUDGE} | {
        ("RMITIR-llama70B", "kappa"): "0.2657",
        ("RMITIR-llama70B", "alpha"): "0.4884",
    }
    met = {cell: f"{value:.4f}" for cell, value in cells.items() if cell in printed_ones and value is not None}
    assert met == {cell: printed_ones[cell] for cell in met}
    assert len(met) == 36


# What UMBRELA's rerun in the challenge makes of each of people's grades (willia-umbrela1).
UMBRELA = ((1521, 369, 88, 27), (579, 457, 157, 40), (189, 280, 270, 69), (46, 125, 93, 113))


def test_what_leaks_from_umbrela_is_as_counted(shared: Path) -> None:
    folder = shared / "llmjudge"
    found = calibrate_judges(
        plan(folder / "llmjudge_test.qrel", [folder / "judges" / "willia-umbrela1.txt"])
    ).calibration
    row = next(row for row in found.agreement if not row.baseline)
    assert row.confusion == UMBRELA
    values = {name: row.statistics[name].value for name in ("kappa", "wkappa", "wkappa_linear", "alpha_ordinal", "ac1")}
    assert values == pytest.approx(
        {"kappa": 0.286272, "wkappa": 0.504356, "wkappa_linear": 0.396269, "alpha_ordinal": 0.491793, "ac1": 0.404579},
        abs=1e-6,
    )
    shares = {(row.facts["human"], row.facts["judged"]): row.statistics["share"] for row in found.findings["leakage"]}
    for human, counts in enumerate(UMBRELA):
        for judged, count in enumerate(counts):
            assert shares[human, str(judged)].value == pytest.approx(count / sum(counts))
        assert shares[human, "relevant"].value == pytest.approx(sum(counts[2:]) / sum(counts))
    # The 29 of 2,005 that leak into 3 are of few topics.
    assert shares[0, "3"].high > 2 * shares[0, "3"].value


RAG26 = "rag25-climbmix-umbrela-{}.qrels.gz"
JUDGES = (
    "qwen3.5-9b-v1",
    "qwen3.5-9b-v2",
    "ministral-3-14b-instruct-2512-v1",
    "ministral-3-14b-instruct-2512-v2",
)


@pytest.mark.slow
def test_five_stored_judges_of_rag_2026_are_held_against_each_other(shared: Path) -> None:
    import gzip

    def graded(name: str) -> dict[tuple[str, str], int]:
        with gzip.open(shared / "rag26" / RAG26.format(name), "rt") as lines:
            return {(turn, item): int(grade) for turn, _, item, grade in map(str.split, lines)}

    best = "codex-gpt5.5-medium-reasoning-v1"
    files = [shared / "rag26" / RAG26.format(name) for name in JUDGES]
    found = calibrate_judges(plan(shared / "rag26" / RAG26.format(best), files, scale="0-4")).calibration
    reference = graded(best)
    assert len(reference) == 26_341
    for name in JUDGES:
        other = graded(name)
        C = confusion([(grade, other[item]) for item, grade in reference.items()], range(5))
        row = next(row for row in found.agreement if row.judge.endswith(name))
        assert (row.n, row.topics, row.confusion) == (26_341, 22, tuple(map(tuple, C.tolist())))
        assert row.statistics["wkappa"].value == pytest.approx(point("wkappa", C, range(5)))
        cuts = [row.statistics["kappa"].value for row in found.findings["cuts"] if row.judge.endswith(name)]
        expected = []
        for cut in range(1, 5):
            low = C[:cut, :cut].sum(), C[:cut, cut:].sum()
            high = C[cut:, :cut].sum(), C[cut:, cut:].sum()
            expected.append(point("kappa", np.array([low, high]), (0, 1)))
        assert cuts == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("year", "passages"), [(2023, 34_183), (2024, 20_575)])
def test_a_noisy_copy_of_the_qrels_of_ikat_ranks_runs_nearly_as_they_do(shared: Path, tmp_path, year, passages) -> None:
    """No judge's qrels of iKAT are public; a copy with one grade in five moved by a level stands for one."""
    rng = random.Random(year)
    people = shared / "ikat" / "qrels" / f"{year}_test_qrels.trec"
    rows = [line.split() for line in people.read_text().splitlines()]
    assert len(rows) == passages
    moved = []
    for _, _, _, grade in rows:
        noise = rng.choice((-1, 1)) if rng.random() < 0.2 else 0
        moved.append(min(4, max(0, int(grade) + noise)))
    lines = (f"{turn} 0 {item} {grade}\n" for (turn, _, item, _), grade in zip(rows, moved, strict=True))
    copy = put(tmp_path / "copy.qrel", "".join(lines))
    runs = trec_runs(tmp_path / "runs", people)
    found = calibrate_judges(plan(people, [copy], scale="0-4", runs=(runs,))).calibration
    row = next(row for row in found.agreement if not row.baseline)
    C = confusion([(int(fields[3]), grade) for fields, grade in zip(rows, moved, strict=True)], range(5))
    assert row.confusion == tuple(map(tuple, C.tolist()))
    (ranking,) = found.findings["rankings"]
    # Runs that know the less of the grades the higher their number is are ranked so by either.
    assert ranking.statistics["tau_b"].value == 1
    assert ranking.facts["runs"] == 5
