"""`judge run --recheck` and `--logprobs` on the bundled example, against a real server process."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.judges.journal_tools import read_journal
from tests.conftest import complaint, json_lines, manifest, printed, run_example
from tests.jobs.test_run import files
from tests.mock import Mock

CALLS = 76
"""Distinct questions about groundedness."""


def run(mock: Mock, out: Path, *more: str) -> int:
    return run_example(out, "--criteria", "groundedness", "--model", "server/a", "--base-url", mock.base_url, *more)


def reply(grade: int, fingerprint: str = "other") -> dict[str, Any]:
    content = json.dumps({"rationale": "again", "grade": str(grade)})
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {"status": 200, "body": {"model": "a", "system_fingerprint": fingerprint, "choices": [choice]}}


def results(folder: Path) -> dict[str, bytes]:
    """What no second answer may change."""
    return {name: content for name, content in files(folder).items()
            if name.startswith(("qrels/", "leaderboard", "differences", "judgments", "failures"))}  # fmt: skip


def test_a_checker_and_a_model_share_the_criteria(mock: Mock, tmp_path, capsys) -> None:
    out, both = tmp_path / "out", ["--model", "server/a", "--model", "checker/overlap", "--base-url", mock.base_url]
    name = "groundedness by checker/overlap, naturalness by server/a"
    counted = json.loads(printed(capsys, run_example(out, *both, "--dry-run", "--json")))
    assert (counted["judge"], counted["judgments"], counted["expected"]["calls"]) == (name, 154, 152)
    assert {row["model"]: row["expected"]["calls"] for row in counted["by_model"]} == {
        "checker/overlap": 76,
        "server/a": 76,
    }
    assert run_example(out, *both) == 0
    before = results(out)
    assert f"Judged: {name}." in capsys.readouterr().err and f"Judged: {name}.".encode() in before["leaderboard.md"]
    assert (manifest(out)["configuration"]["judge"], mock.stats()["requests"]) == (name, 76)
    assert run_example(out, *both, "--recheck", "2") == 0
    again = [(row["judge"], row["criterion"], row["variant"]) for row in json_lines(out / "recheck.jsonl")]
    assert again == [("checker/overlap", "groundedness", "sentences")] * 2 + [("server/a", "naturalness", "graded")] * 2
    assert (results(out), mock.stats()["requests"]) == (before, 78)


def test_second_answers_are_reported_and_change_no_result(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run(mock, out) == 0
    before = results(out)
    assert "recheck" not in manifest(out)
    mock.script(*(reply(3) for _ in range(4)))
    capsys.readouterr()
    assert run(mock, out, "--recheck", "4") == 0
    said = capsys.readouterr()
    assert mock.stats()["requests"] == CALLS + 4
    assert results(out) == before
    items = json_lines(out / "recheck.jsonl")
    assert [item["again_grade"] for item in items] == [3] * 4
    graded = {row["response_id"]: row["grade"] for row in json_lines(out / "judgments.jsonl")}
    assert [item["grade"] for item in items] == [graded[item["response_id"]] for item in items]
    (row,) = manifest(out)["recheck"]["rows"]
    flips = [item["grade"] != 3 for item in items]
    assert (row["asked"], row["flipped"]["value"]) == (4, sum(flips) / 4)
    assert row["change"]["value"] == sum(3 - item["grade"] for item in items) / 4
    assert manifest(out)["recheck"]["served"] == [
        {"judge": "server/a", "what": "system_fingerprint", "before": "mock", "after": "other", "replies": 4}
    ]
    assert "4 questions asked again (--recheck 4)" in said.out
    assert "4 second answers came from another system_fingerprint: 'mock' (20" in said.err
    assert "`recheck.jsonl`" in (out / "index.md").read_text(encoding="utf-8")
    assert main(["report", str(out)]) == 0
    page = (out / "report.md").read_text(encoding="utf-8")
    assert "## The same questions again" in page
    assert "Something else answered the second time" in page

    # The journal keeps both answers, and the same command asks for neither again.
    samples = [entry.sample for entry in read_journal(out / "journal.sqlite")]
    assert (samples.count(0), samples.count(1000)) == (CALLS, 4)
    kept = {name: content for name, content in files(out).items() if not name.startswith("report")}
    assert run(mock, out, "--recheck", "4") == 0
    assert mock.stats()["requests"] == CALLS + 4
    assert {name: content for name, content in files(out).items() if not name.startswith("report")} == kept
    # Without the option the folder is as it was.
    assert run(mock, out) == 0
    assert not (out / "recheck.jsonl").exists()
    assert results(out) == before


def test_a_second_answer_that_does_not_come_is_counted_and_asked_for_again(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run(mock, out, "--limit", "5") == 0
    mock.script({"status": 400, "body": {"error": {"message": "not today"}}})
    assert run(mock, out, "--limit", "5", "--recheck", "40%") == 0
    (row,) = manifest(out)["recheck"]["rows"]
    assert (row["asked"], row["missing"], row["flipped"]["n"]) == (2, 1, 1)
    assert "1 question of the recheck without a second answer" in capsys.readouterr().err
    assert run(mock, out, "--limit", "5", "--recheck", "40%") == 0
    (row,) = manifest(out)["recheck"]["rows"]
    assert (row["asked"], row["missing"], row["flipped"]["value"]) == (2, 0, 0)
    assert mock.stats()["requests"] == 5 + 2 + 1


def test_the_budget_is_for_both_answers(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(mock, out, "--limit", "5") == 0
    assert run(mock, out, "--limit", "5", "--recheck", "5", "--max-cost", "0", "--price", "1/1") == 0
    (row,) = manifest(out)["recheck"]["rows"]
    assert (row["asked"], row["missing"]) == (5, 5)
    assert {item["again_missing"] for item in json_lines(out / "recheck.jsonl")} == {"budget"}
    assert mock.stats()["requests"] == 5
    # In one go, the first answers leave nothing of what they cost.
    cost = sum(entry.completion.cost or 0.0 for entry in read_journal(priced(mock, tmp_path / "priced")))
    again = tmp_path / "again"
    assert run(mock, again, "--limit", "5", "--recheck", "5", "--price", "1/1", "--concurrency", "1",
               "--max-cost", str(cost * 0.999)) == 0  # fmt: skip
    (row,) = manifest(again)["recheck"]["rows"]
    assert (row["asked"], row["missing"]) == (5, 5)


def priced(mock: Mock, out: Path) -> Path:
    """The journal of five answers with their prices."""
    assert run(mock, out, "--limit", "5", "--price", "1/1") == 0
    return out / "journal.sqlite"


def test_the_members_of_a_jury_are_asked_again(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(mock, out, "--model", "baseline/overlap", "--jury", "majority", "--samples", "2",
               "--limit", "6", "--recheck", "2") == 0  # fmt: skip
    rows = manifest(out)["recheck"]["rows"]
    assert [(row["judge"], row["asked"]) for row in rows] == [("baseline/overlap", 4), ("server/a", 4)]
    assert [row["flipped"]["value"] for row in rows] == [0, 0]
    assert {item["sample"] for item in json_lines(out / "recheck.jsonl")} == {0, 1}
    assert mock.stats()["requests"] == 2 * 6 + 2 * 2


def test_a_forecast_counts_the_second_answers(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    counts = json.loads(printed(capsys, run(mock, out, "--recheck", "10%", "--dry-run", "--json")))
    assert (counts["expected"]["calls"], counts["rechecked"]) == (CALLS + 8, 8)
    assert run(mock, out, "--recheck", "10%") == 0
    assert mock.stats()["requests"] == CALLS + 8
    capsys.readouterr()
    counts = json.loads(printed(capsys, run(mock, out, "--recheck", "10%", "--dry-run", "--json")))
    assert (counts["rechecked"], set(counts["expected"].values())) == (0, {0})


@pytest.mark.parametrize("part", ["0", "half", "120%"])
def test_what_is_no_part_is_refused_before_anything_is_written(mock: Mock, tmp_path, part: str, capsys) -> None:
    assert run(mock, tmp_path / "out", "--recheck", part) == 2
    assert f"--recheck '{part}': expected a share such as 2%" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert mock.stats()["requests"] == 0


@pytest.mark.parametrize("shape", ["openai", "llama.cpp"])
def test_label_probabilities_give_expected_grades(mock: Mock, tmp_path, shape: str, capsys) -> None:
    mock.config(logprobs=shape)
    out = tmp_path / "out"
    assert run(mock, out, "--logprobs", "--limit", "6") == 0
    # The mock gives .7 to its label and .1 to each of the three others, after normalization.
    for row in json_lines(out / "judgments.jsonl"):
        assert row["form"] == "label"
        assert sorted(row["probabilities"].values()) == pytest.approx([0.1, 0.1, 0.1, 0.7], abs=1e-6)
        assert row["expected"] == pytest.approx(0.7 * row["grade"] + 0.1 * (6 - row["grade"]), abs=1e-5)
    entropy = -(0.7 * math.log2(0.7) + 3 * 0.1 * math.log2(0.1))
    note = f"6 of 6 judgments have label probabilities, with a mean entropy of {entropy:.2f} bits"
    assert note in capsys.readouterr().err
    assert note in (out / "leaderboard.md").read_text(encoding="utf-8").replace("\\", "")
    assert "expected_mean" in (out / "leaderboard.tsv").read_text(encoding="utf-8").partition("\n")[0]
    body = mock.last()[1]
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert body["structured_outputs"] == {"choice": ["0", "1", "2", "3"]}
    assert body["grammar"] == 'root ::= "0" | "1" | "2" | "3"'
    assert manifest(out)["configuration"]["options"]["logprobs"] is True


def test_a_judge_that_refuses_or_sends_none_is_said(mock: Mock, tmp_path, capsys) -> None:
    mock.config(logprobs="reject")
    assert run(mock, tmp_path / "out", "--logprobs") == 3
    assert "gives no label probabilities: leave out --logprobs" in capsys.readouterr().err
    assert not (tmp_path / "out" / "failures.jsonl").exists()
    mock.config(logprobs="ignore")
    assert run(mock, tmp_path / "out", "--logprobs", "--limit", "6") == 0
    assert "0 of 6 judgments have label probabilities" in capsys.readouterr().err


def test_the_option_is_on_record_only_where_it_is_used(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run(mock, out, "--limit", "6") == 0
    assert "logprobs" not in manifest(out)["configuration"]["options"]
    assert "--logprobs: none there, true now" in complaint(capsys, run(mock, out, "--limit", "6", "--logprobs"))
    assert run(mock, out, "--limit", "6") == 0
    assert mock.stats()["requests"] == 6
