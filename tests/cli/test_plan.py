"""`judge plan`: a judged folder as the pilot of the next collection."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.errors import UsageError
from judge.gold.rows import read_gold
from judge.gold.seal import write_split
from judge.io.ids import topic_of
from judge.pool.records import Pool
from judge.stats.generalizability import (
    Design,
    GradeTable,
    GradeVariance,
    difference_variance,
    grade_variance,
    half_width_factor,
)
from tests.calibration_world import failure, judgment, pooled, row, write_gold, write_judged
from tests.conftest import complaint, printed

CRITERION = find_criterion("groundedness")


class Folder:
    """A judged folder of four runs on topics of two turns, each response with the labels of two assessors."""

    def __init__(self, path: Path, topics: int, assessors: int = 2) -> None:
        rng = np.random.default_rng(12)
        grades = [level.grade for level in CRITERION.scale.levels]
        responses, judgments, failures, gold = [], [], [], []
        self.judged: list[tuple[float, str, str]] = []
        for run in range(4):
            for turn_id in (f"{topic}_{turn}" for topic in range(topics) for turn in (1, 2)):
                response_id = f"R{len(responses):05d}"
                responses.append(pooled(response_id, response_id, f"run{run}", turn_id=turn_id, passages=()))
                truth = 0.5 + 0.5 * run + rng.normal(0, 0.5)
                grade, *labels = (
                    int(np.clip(round(truth + rng.normal(0, 0.5)), min(grades), max(grades)))
                    for _ in range(1 + assessors)
                )
                if run == 0 and turn_id == "0_1":
                    failures.append(failure(turn_id, response_id, "unreadable", "litellm/m"))
                    grade = min(grades)
                else:
                    judgments.append(judgment(turn_id, response_id, grade, "litellm/m"))
                self.judged.append((float(grade), f"run{run}", turn_id))
                gold += [row(turn_id, response_id, label, f"A{place}") for place, label in enumerate(labels)]
        self.path = write_judged(path / "out", Pool(tuple(responses), {}, ()), judgments, failures)
        self.gold = write_gold(path / "gold.jsonl", gold)


@pytest.fixture
def pilot(tmp_path: Path) -> Folder:
    return Folder(tmp_path, 10)


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    return json.loads(printed(capsys, main(["plan", *map(str, arguments), "--json"])))


def test_the_judges_grades_are_taken_apart_and_a_missing_one_is_the_worst(pilot: Folder, capsys) -> None:
    values, runs, turns = (list(column) for column in zip(*pilot.judged, strict=True))
    of = grade_variance(GradeTable(values, runs, [topic_of(turn) for turn in turns], turns))
    assert isinstance(of, GradeVariance)
    (found,) = told(capsys, pilot.path)["pilots"]
    assert (found["criterion"], found["graders"], found["turns_per_topic"]) == ("groundedness", "judge", 2.0)
    assert {row["source"]: row["estimate"] for row in found["variance"]["components"]} == pytest.approx(
        {row.source: row.estimate for row in of.components}
    )
    assert [(design["topics"], design["labels"], design["grades"]) for design in found["designs"]] == [
        (10, 1, 20), (25, 1, 50), (50, 1, 100), (100, 1, 200), (200, 1, 400),
    ]  # fmt: skip
    variance = difference_variance(of, Design(2.0))
    assert found["designs"][1]["difference"] == pytest.approx(half_width_factor(25) * (variance / 25) ** 0.5)


def test_more_topics_make_all_better_and_goals_are_met(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = told(capsys, pilot.path, "--half-width", "0.1", "--difference", "0.2")["pilots"]
    designs = found["designs"]
    for name in ("mean", "difference", "detectable"):
        assert [design[name] for design in designs] == sorted((design[name] for design in designs), reverse=True)
    for name in ("relative", "absolute"):
        shares = [design["reliability"][name] for design in designs]
        assert shares == sorted(shares) and 0 < shares[0] < shares[-1] < 1
    width, power = found["needed"]
    assert (width["goal"], width["size"], power["goal"], power["size"]) == ("half_width", 0.1, "difference", 0.2)
    for needed in (width, power):
        assert needed["topics"]["low"] < needed["topics"]["value"] < needed["topics"]["high"]
    (longer,) = told(capsys, pilot.path, "--half-width", "0.1", "--turns", "6")["pilots"]
    assert longer["turns_per_topic"] == 6
    assert longer["needed"][0]["topics"]["value"] < width["topics"]["value"]


def test_gold_of_several_assessors_sets_topics_against_labels(pilot: Folder, capsys) -> None:
    found = told(capsys, pilot.path, "--gold", pilot.gold, "--half-width", "0.1")["pilots"]
    assert [one["graders"] for one in found] == ["judge", "assessors", "judge - assessors"]
    _, assessors, apart = found
    assert [row["source"] for row in assessors["variance"]["components"]][-2:] == ["assessor", "label"]
    needed = {one["labels"]: one["topics"]["value"] for one in assessors["needed"]}
    assert needed[1] > needed[2] > needed[3]
    # A label more of every response costs more grades than the topics that it saves.
    assert needed[1] < 2 * needed[2]
    assert (apart["variance"]["grades"], apart["designs"], apart["needed"]) == (79, [], [])


def test_one_label_a_response_says_nothing_of_more_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = Folder(tmp_path, 10, assessors=1)
    _, assessors, _ = told(capsys, pilot.path, "--gold", pilot.gold)["pilots"]
    assert {design["labels"] for design in assessors["designs"]} == {1}
    assert "label" not in [row["source"] for row in assessors["variance"]["components"]]


def test_the_terminal_has_the_same_figures(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, main(["plan", str(pilot.path), "--gold", str(pilot.gold), "--half-width", "0.1"]))
    outcome = judge.plan_topics(judge.TopicsPlan(folder=pilot.path, gold=[pilot.gold], half_width=0.1))
    first = outcome.pilots[0]
    assert out.startswith("groundedness, judge: 4 runs, 10 topics, 20 turns, 80 grades\n")
    assert f"{first.designs[0].difference:.3f}" in out
    topics = first.needed[0].topics
    value, low, high = (f"{number:.0f}" for number in (topics.value, topics.low, topics.high) if number is not None)
    assert f"An interval of +-0.1 with 1 label a response: topics {value} [{low}, {high}]\n" in out
    assert "Over any number of topics the judge moves a difference of two runs by 0." in out


def test_few_topics_are_no_pilot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(Folder(tmp_path, 7).path), "--half-width", "0.1"]) == 0
    said = capsys.readouterr()
    assert (
        "Warning: groundedness, judge: 7 topics: the variances may be far off, and nothing is planned by them"
        in said.err
    )
    assert said.out.endswith("No plan: fewer than 8 topics.\n")
    assert "+-" not in said.out


def test_bad_goals_and_sealed_gold_are_refused(pilot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("0", "-1", "nan", "inf", "x"):
        with pytest.raises(SystemExit, match="2"):
            main(["plan", str(pilot.path), "--half-width", size])
    with pytest.raises(UsageError, match=r"difference: expected a finite number"):
        judge.plan_topics(judge.TopicsPlan(folder=pilot.path, difference=float("nan")))
    write_split(read_gold(pilot.gold), 0.5, 1, pilot.path.parent / "split")
    sealed = pilot.path.parent / "split" / "test.jsonl"
    assert "sealed test grades" in complaint(capsys, main(["plan", str(pilot.path), "--gold", str(sealed)]))
