"""`--together` from files to files: one call a response, its own certificate, and what calibration says of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.calibrate.findings import Calibration
from judge.cli import main
from judge.gold.rows import GoldRow
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from tests.calibration_world import FAST, contents, gold_rows, items, pool, row, table, write_gold, write_pool
from tests.conftest import PROJECT, complaint, json_lines, manifest, run_example
from tests.jobs.test_run import files
from tests.mock import Mock

pytestmark = pytest.mark.slow

EXAMPLE = PROJECT / "examples"
WORLD = items(topics=24, each=3)
GROUNDED, NATURAL = "groundedness/graded+naturalness", "naturalness/graded+groundedness"


def run(out: Path, mock: Mock, *more: str) -> int:
    return run_example(out, "--model", "server/m", "--base-url", mock.base_url, *more)


@pytest.mark.parametrize("response_format", ["honor", "ignore", "reject"])
def test_one_call_a_response_in_every_form_and_the_next_run_makes_none(tmp_path, mock, response_format) -> None:
    mock.config(response_format=response_format)
    criteria = ["--criteria", "groundedness", "naturalness", "relevance", "--together", "--concurrency", "1"]
    assert run(tmp_path / "out", mock, *criteria) == 0
    # 77 responses; one of them lacks a passage's text and is asked about the other two.
    assert mock.stats()["paid"] == 77
    judgments = json_lines(tmp_path / "out" / "judgments.jsonl")
    assert Counter(one["criterion"] for one in judgments) == {"groundedness": 76, "naturalness": 77, "relevance": 77}
    assert {one["variant"] for one in judgments if one["criterion"] == "relevance"} == {
        "graded+groundedness+naturalness"
    }
    assert [one["reason"] for one in json_lines(tmp_path / "out" / "failures.jsonl")] == ["no_passages"]
    before = files(tmp_path / "out")
    assert run(tmp_path / "out", mock, *criteria) == 0
    assert mock.stats()["paid"] == 77
    assert files(tmp_path / "out") == before


def test_alone_and_together_are_two_configurations(tmp_path, mock: Mock, capsys) -> None:
    assert run(tmp_path / "out", mock, "--together") == 0
    made = manifest(tmp_path / "out")
    assert made["options"]["together"] is True
    assert made["configuration"]["criteria"]["naturalness"] == {
        "prompt": NATURAL, "sha256": find_criterion(NATURAL).digest,
    }  # fmt: skip
    capsys.readouterr()
    assert run(tmp_path / "out", mock) == 2
    assert "holds results of another configuration (criteria.groundedness" in capsys.readouterr().err
    # By their names, the prompts of the group are the same configuration.
    assert run(tmp_path / "out", mock, "--prompt", GROUNDED, "--prompt", NATURAL) == 0
    assert mock.stats()["paid"] == 77


def test_a_dry_run_counts_the_calls_and_a_folder_is_extended_as_it_was_made(tmp_path, mock: Mock, capsys) -> None:
    assert run(tmp_path / "dry", mock, "--together", "--dry-run", "--price", "0/1000") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "by a shared call 76" in shown
    assert "calls to be made 77" in shown
    # 153 grades of 150 tokens at $1000 a million.
    assert "cost about $22.95, at most $78.85" in shown
    out = tmp_path / "out"
    few = ["--runs", str(EXAMPLE / "runs" / "harbor-grounded.json")]
    assert main(["run", *few, "--topics", str(EXAMPLE / "topics.json"), "--model", "server/m", "--base-url",
                 mock.base_url, "--together", "--out", str(out)]) == 0  # fmt: skip
    capsys.readouterr()
    assert main(["run", "--runs", str(EXAMPLE / "runs" / "mill-fluent-invented.json"), "--extend", str(out)]) == 0
    assert "--together" in capsys.readouterr().err
    assert {one["variant"] for one in json_lines(out / "judgments.jsonl")} == {
        "graded+naturalness", "graded+groundedness",
    }  # fmt: skip


@pytest.mark.long
def test_prompts_of_the_user_are_found_again(tmp_path: Path, mock: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    given = []
    for name in ("groundedness", "naturalness"):
        text = (PROJECT / "prompts" / name / "graded.md").read_text(encoding="utf-8")
        (tmp_path / f"my-{name}.md").write_text(text.replace("version = 1", "version = 2"), encoding="utf-8")
        given += ["--prompt", str(tmp_path / f"my-{name}.md")]
    out = tmp_path / "out"
    assert run(out, mock, *given, "--together") == 0
    assert (out / "report.html").exists()
    capsys.readouterr()
    assert "give each prompt of your own with --prompt PATH" in complaint(capsys, main(["leaderboard", str(out)]))
    assert main(["leaderboard", str(out), *given]) == 0
    assert "groundedness/my-groundedness+naturalness.my-naturalness" in capsys.readouterr().out
    # The file of the criterion names the group too, where the others are known.
    assert main(["leaderboard", str(out), "--criterion", given[1], *given[2:]]) == 0
    assert main(["report", str(out), *given]) == 0
    assert main(["plan", str(out), *given]) == 0


def test_a_jury_asks_each_member_together(tmp_path: Path, mock: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "out", mock, "--model", "server/n", "--jury", "majority", "--together") == 0
    assert mock.stats()["paid"] == 2 * 77
    members = json_lines(tmp_path / "out" / "members.jsonl")
    assert len(members) == 2 * (76 + 77)
    capsys.readouterr()
    two = ["--prompt", "groundedness/graded", "--prompt", "groundedness/yes_no", "--prompt", "naturalness"]
    assert run(tmp_path / "two", mock, "--jury", "majority", *two, "--together") == 2
    assert "one request asks for each criterion under one prompt" in capsys.readouterr().err


# Calibration


def gold(tmp_path: Path) -> Path:
    """Grades of both criteria, but of naturalness for the first topics only."""
    rows: list[GoldRow] = gold_rows(WORLD)
    rows += [row(one.turn_id, one.response_id, one.gold, criterion="naturalness") for one in WORLD[:60]]
    return write_gold(tmp_path / "gold.jsonl", rows)


def calibrated(tmp_path: Path, mock: Mock, **more: Any) -> Calibration:
    write_pool(tmp_path / "pool", pool(WORLD))
    plan = CalibrationPlan(
        gold=[gold(tmp_path)], models=["server/m"], prompts=["groundedness", "naturalness"],
        pool=tmp_path / "pool", base_url=mock.base_url, together=True,
        replicates=200, permutations=200, **{"out": tmp_path / "cal", **more},
    )  # fmt: skip
    return calibrate_judges(plan).calibration


@pytest.mark.usefixtures("no_pictures")
def test_calibration_compares_alone_and_together_and_counts_the_calls(tmp_path: Path, mock: Mock) -> None:
    found = calibrated(tmp_path, mock)
    # 72 + 60 calls alone, 72 together: the 60 grades of naturalness come with those of groundedness.
    assert mock.stats()["paid"] == 72 + 60 + 72
    assert [(one.criterion, one.alone, one.together) for one in found.together] == [
        ("groundedness", "groundedness/graded", GROUNDED),
        ("naturalness", "naturalness/graded", NATURAL),
    ]
    assert [(one.difference.n, one.difference.topics) for one in found.together] == [(72, 24), (60, 20)]
    assert all(one.difference.low is not None for one in found.together)
    (cost,) = found.group_costs
    assert (cost.prompts, cost.calls_alone, cost.calls_together) == (
        ("groundedness/graded", "naturalness/graded"), 132, 72,
    )  # fmt: skip
    tried = {choice.criterion: choice.tried for choice in found.selections}
    assert tried["groundedness"] == ("server/m graded", "server/m graded+naturalness")
    rows = {one["together"]: one for one in table(tmp_path / "cal" / "together.tsv")}
    assert rows.keys() == {GROUNDED, NATURAL}
    # The same again asks nothing and gives the same bytes.
    before = contents(tmp_path / "cal")
    calibrated(tmp_path, mock)
    assert mock.stats()["paid"] == 72 + 60 + 72
    assert contents(tmp_path / "cal") == before


@pytest.mark.usefixtures("no_pictures")
def test_one_criterion_of_a_group_can_be_looked_at(tmp_path: Path, mock: Mock) -> None:
    found = calibrated(tmp_path, mock, criterion="naturalness")
    assert [one.criterion for one in found.together] == ["naturalness"]
    # The calls of the other criterion alone were not made, so nothing was saved that could be counted.
    assert found.group_costs == ()


@pytest.mark.long
@pytest.mark.usefixtures("no_pictures")
def test_a_certificate_is_of_prompts_asked_alone_or_of_the_very_group(tmp_path, mock: Mock, capsys) -> None:
    def certified(name: str, *prompts: str) -> str:
        given = [part for prompt in prompts for part in ("--prompt", prompt)]
        assert main(
            ["calibrate", "--gold", str(PROJECT / "gold" / "example.synthetic.jsonl"), "--pool",
             str(tmp_path / "together"), *given, "--model", "server/m", "--base-url", mock.base_url,
             "--out", str(tmp_path / name), *FAST]
        ) == 0  # fmt: skip
        return str(tmp_path / name)

    assert run(tmp_path / "together", mock, "--together") == 0
    alone = certified("alone", "groundedness", "naturalness")
    group = certified("group", GROUNDED, NATURAL)
    capsys.readouterr()
    for name, certificate, options, matches in (
        ("a", alone, ["--together"], False),
        ("b", group, ["--together"], True),
        ("c", group, [], False),
        ("d", group, ["--together", "--criteria", "groundedness", "naturalness", "relevance"], False),
        ("e", alone, [], True),
    ):
        assert run(tmp_path / name, mock, *options, "--certificate", certificate) == 0
        board = (tmp_path / name / "leaderboard.md").read_text(encoding="utf-8")
        assert ("does not match the certificate" not in board) == matches, name
    capsys.readouterr()
