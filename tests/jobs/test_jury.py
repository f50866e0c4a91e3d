"""Several models, prompts or samples as one jury, to every file and back."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.ask.results import read_labels
from judge.cli import main
from judge.judges.backends.baseline import Overlap
from judge.judges.model import Price
from judge.judges.records import Completion, Request
from tests.calibration_world import row, write_gold
from tests.conftest import (
    INPUTS,
    complaint,
    json_lines,
    manifest,
    on_stderr,
    printed,
    run_example,
    start_python,
)
from tests.jobs.test_run import files, results
from tests.mock import Mock, wait_for_paid

POOLED = 77
CALLS = 76
"""Of the pooled responses, those whose passages have texts."""
OVERLAP = ["--model", "baseline/overlap"]


def asked(mock: Mock, *models: str) -> list[str]:
    named = [part for model in models for part in ("--model", model)]
    return [*named, "--base-url", mock.base_url, "--concurrency", "8"]


def test_two_models_and_a_baseline_are_one_judge(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    models = ["server/b", "server/a", "baseline/overlap"]
    assert run_example(out, "--jury", "majority", "--criteria", "groundedness", *asked(mock, *models)) == 0
    members, judgments = json_lines(out / "members.jsonl"), json_lines(out / "judgments.jsonl")
    assert len(judgments) == CALLS
    assert len(json_lines(out / "failures.jsonl")) == 1
    assert Counter(one["judge"] for one in members) == dict.fromkeys(models, CALLS)
    assert Counter(one["reason"] for one in json_lines(out / "member_failures.jsonl")) == {"no_passages": 3}
    given: dict[str, list[int]] = {}
    for one in members:
        given.setdefault(one["response_id"], []).append(one["grade"])
    for one in judgments:
        (first, most), *others = Counter(given[one["response_id"]]).most_common()
        mean = sum(given[one["response_id"]]) / 3
        assert one["grade"] == (first if most > 1 else (2 * sum(given[one["response_id"]]) + 3) // 6)
        assert one["expected"] == pytest.approx(mean)
        assert (one["judge"], one["model"]) == ("jury/majority", None)
        assert {int(label): p for label, p in one["probabilities"].items() if p} == pytest.approx(
            {grade: count / 3 for grade, count in [(first, most), *others]}, abs=1e-5
        )
    # The order of the members is theirs, not that of the command line.
    assert judgments[0]["rationale"].startswith("baseline/overlap: ")
    made = manifest(out)
    assert made["configuration"]["judge"] == "jury/majority"
    assert [one["judge"] for one in made["configuration"]["jury"]["members"]["groundedness"]] == sorted(models)
    about = made["jury"]["groundedness"]
    assert "the grade that most labels name" in about["rule"]
    assert about["alpha"]["n"] == CALLS
    assert made["counts"]["members"] == {"judgment": 3 * CALLS, "no_passages": 3}
    assert {"overlap-1"} < set(made["models_returned"])
    beside = json.loads((out / "qrels" / "response_groundedness.llm.qrel.json").read_text(encoding="utf-8"))
    assert beside["jury"] == about
    assert beside["judges"] == ["jury/majority"]
    shown = capsys.readouterr()
    assert "groundedness, a jury of 3: ordinal alpha" in shown.out
    assert "warning: groundedness:" not in shown.err
    # Again: nothing is asked, and the bytes are the same.
    paid, before = sum(mock.paid_per_item().values()), results(out)
    models.reverse()
    assert run_example(out, "--jury", "majority", "--criteria", "groundedness", *asked(mock, *models)) == 0
    assert sum(mock.paid_per_item().values()) == paid == 2 * CALLS
    assert results(out) == before


def test_prompts_and_samples_are_members_and_warned_of(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    prompts = ["--prompt", "relevance/ikat", "--prompt", "relevance/graded", "--samples", "2"]
    assert run_example(out, "--jury", "mean", *prompts, *asked(mock, "server/a")) == 0
    assert len(json_lines(out / "members.jsonl")) == 4 * POOLED
    # Of 1-1_3 there is one text with two sets of passages, which relevance does not show: asked once.
    assert sum(mock.paid_per_item().values()) == 4 * (POOLED - 1)
    judgments = json_lines(out / "judgments.jsonl")
    assert {one["variant"] for one in judgments} == {"graded"}
    names = [part.rpartition(": ")[0] for part in judgments[0]["rationale"].split("; ")]
    assert names == [f"server/a relevance/{prompt} #{n}" for prompt in ("graded", "ikat") for n in (1, 2)]
    warnings = manifest(out)["jury"]["relevance"]["warnings"]
    assert [warning for warning in warnings if "even number of members (4)" in warning]
    assert [warning for warning in warnings if "4 of 4 members are server/a" in warning]
    shown, page = capsys.readouterr().err, (out / "leaderboard.md").read_text(encoding="utf-8")
    for warning in warnings:
        assert f"warning: {warning}" in shown
        assert f"Warning: {warning}" in page
    assert "relevance, a jury of 4 under relevance/graded and relevance/ikat: ordinal alpha" in page


def test_a_jury_of_other_members_is_another_configuration(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    jury = ["--jury", "majority", "--criteria", "groundedness"]
    assert run_example(out, *jury, *asked(mock, "server/a", "server/b")) == 0
    before = files(out)
    assert run_example(out, *jury, *asked(mock, "server/a", "server/c")) == 2
    assert run_example(out, *jury, *asked(mock, "server/a", "server/b"), "--samples", "2") == 2
    assert run_example(out, "--jury", "mean", *jury[2:], *asked(mock, "server/a", "server/b")) == 2
    assert files(out) == before
    # One judge in its place takes all that the jury left.
    assert run_example(out, *jury[2:], *OVERLAP, "--replace") == 0
    assert not {"members.jsonl", "member_failures.jsonl"} & files(out).keys()
    assert "jury" not in manifest(out)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--jury", "majority", *OVERLAP], "groundedness: one member is no jury"),
        (["--jury", "majority", *OVERLAP, *OVERLAP], "baseline/overlap: named twice"),
        (["--jury", "majority", *OVERLAP, "--prompt", "groundedness/yes_no", "--prompt", "groundedness"],
         "groundedness/graded and groundedness/yes_no: members of one jury must grade on one scale"),
        (["--jury", "majority", *OVERLAP, "--prompt", "groundedness", "--prompt", "groundedness/graded"], "the same"),
        (["--jury", "majority", *OVERLAP, "--samples", "1001"], "1001 samples: expected 1 to 1000"),
        (["--jury", "mean", "--model", "server/a", "--model", "server/b", "--prompt", "preference"], "makes a tie of"),
        ([*OVERLAP, "--samples", "2"], "need a jury (--jury RULE)"),
        (["--model", "server/a", "--model", "server/b"], "need a jury (--jury RULE), but for a checker"),
        ([*OVERLAP, "--model", "server/a"], "baseline/overlap would judge all of groundedness; name it alone"),
        ([*OVERLAP, "--prompt", "groundedness", "--prompt", "groundedness/yes_no"], "two prompts for groundedness"),
        (["--jury", "majority", *OVERLAP, "--model", "server/a", "--max-cost", "1"], "price of server/a is not known"),
    ],
)  # fmt: skip
def test_what_is_no_jury_is_refused_before_anything_is_asked(mock, tmp_path, capsys, more, said) -> None:
    criteria = [] if "--prompt" in more else ["--criteria", "groundedness"]
    assert said in complaint(capsys, run_example(tmp_path / "out", *more, *criteria, "--base-url", mock.base_url))
    assert not (tmp_path / "out").exists()
    assert not mock.paid_per_item()


def test_kin_are_warned_of(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    families = tmp_path / "families.tsv"
    families.write_text("server/a\tllama\nserver/b\tllama\nquarry-copied\tllama\nharbor-grounded\tgpt\n")
    jury = ["--jury", "majority", "--criteria", "groundedness", *asked(mock, "server/a", "server/b", "server/c")]
    shown = on_stderr(capsys, run_example(tmp_path / "out", *jury, "--families", str(families), "--limit", "3"))
    assert "server/a and server/b are of one family, llama: they are not independent" in shown
    assert "self-judging: quarry-copied and server/a and server/b are of one family, llama" in shown
    assert "harbor-grounded" not in shown
    assert len(json_lines(tmp_path / "out" / "members.jsonl")) == 9
    assert len(json_lines(tmp_path / "out" / "judgments.jsonl")) == 3
    assert manifest(tmp_path / "out")["asked"] == {"limit": 3, "judgments": 3, "max_tokens": 1024}


def test_a_dry_run_counts_all_members(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    jury = ["--jury", "majority", "--criteria", "groundedness", *asked(mock, "server/a", "server/b"), "--samples", "2"]
    shown = printed(capsys, run_example(out, *jury, "--dry-run"))
    assert "judge               jury/majority\n  members           4 under groundedness\n" in shown
    assert f"judgments           {4 * POOLED}" in shown
    assert f"calls to be made    {4 * CALLS}" in shown
    assert "no price for server/a, server/b here" in shown
    assert not out.exists()
    assert not mock.paid_per_item()
    # What one member has been asked already is not asked again.
    assert run_example(out, "--criteria", "groundedness", *asked(mock, "server/a")) == 0
    capsys.readouterr()
    assert "another configuration" in complaint(capsys, run_example(out, *jury, "--dry-run"))
    assert f"calls to be made    {3 * CALLS}" in printed(capsys, run_example(out, *jury, "--dry-run", "--replace"))


class Paid(Overlap):
    """Word overlap at a cent a call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def price(self) -> Price:
        return Price(1e-6, 1e-6)

    async def complete(self, request: Request) -> Completion:
        return msgspec.structs.replace(await super().complete(request), cost=0.01)


def test_one_budget_is_for_all_members(tmp_path, capsys, monkeypatch, no_pause: None) -> None:
    monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: Paid(name))
    jury = ["--jury", "majority", "--criteria", "groundedness", "--model", "paid/a", "--model", "paid/b"]
    assert run_example(tmp_path / "out", *jury, "--max-cost", "0.995") == 3
    # 76 calls to the first, 24 to the second: with the hundredth the dollar is spent.
    assert Counter(one["judge"] for one in json_lines(tmp_path / "out" / "members.jsonl")) == {
        "paid/a": 76,
        "paid/b": 24,
    }
    missing = json_lines(tmp_path / "out" / "member_failures.jsonl")
    assert Counter(one["reason"] for one in missing) == {"budget": 52, "no_passages": 2}
    assert "the same command asks again" in capsys.readouterr().err
    assert run_example(tmp_path / "out", *jury, "--max-cost", "0.515") == 0
    assert len(json_lines(tmp_path / "out" / "members.jsonl")) == 2 * CALLS
    assert "calls to be made    0" in printed(capsys, run_example(tmp_path / "out", *jury, "--dry-run"))


def test_members_without_an_answer_are_counted_and_asked_again(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    jury = ["--jury", "majority", "--criteria", "groundedness", *OVERLAP, *asked(mock, "server/a")]
    # Two calls of the server fail after its first answer; the baseline has answered.
    mock.script({}, *({"status": 500} for _ in range(2)))
    assert run_example(out, *jury, "--attempts", "1") == 3
    missing = json_lines(out / "member_failures.jsonl")
    assert Counter(one["reason"] for one in missing) == {"provider_error": 2, "no_passages": 2}
    assert len(json_lines(out / "judgments.jsonl")) == CALLS
    assert "4 judgments of members are missing" in capsys.readouterr().err
    assert run_example(out, *jury) == 0
    assert [one["reason"] for one in json_lines(out / "member_failures.jsonl")] == ["no_passages"] * 2


def test_a_jury_is_calibrated_certified_and_ranked_like_any_judge(mock: Mock, tmp_path, capsys) -> None:
    out, trial = tmp_path / "out", tmp_path / "trial"
    jury = ["--jury", "majority", "--criteria", "groundedness", *asked(mock, "server/a", "server/b", "server/c")]
    assert run_example(out, *jury) == 0
    (labels,) = read_labels(out / "judgments.jsonl")
    assert (labels.judge, labels.prompt) == ("jury/majority", "groundedness/graded")
    graded = json_lines(out / "judgments.jsonl")
    rows = [row(one["turn_id"], one["response_id"], one["grade"], inclusion_probability=1.0) for one in graded]
    gold = write_gold(tmp_path / "gold.jsonl", rows)
    command = ["calibrate", "--gold", str(gold), "--judgments", str(out / "judgments.jsonl"), "--out", str(trial)]
    assert main([*command, "--replicates", "200", "--permutations", "200"]) in (0, 1)
    shown = capsys.readouterr()
    assert "jury/majority" in shown.out
    assert "has changed since" not in shown.out + shown.err
    (certified,) = json.loads((trial / "certificate.json").read_text(encoding="utf-8"))["certified"]
    assert certified["judge"] == "jury/majority"
    assert certified["prompt_digest"] not in {None, find_criterion("groundedness").digest}
    certificate = ["--certificate", str(trial / "certificate.json")]
    assert run_example(tmp_path / "same", *jury, *certificate) == 0
    assert all(one["certified"] == one["found"] for one in manifest(tmp_path / "same")["certificate"]["matches"])
    others = ["--jury", "majority", "--criteria", "groundedness", *asked(mock, "server/a", "server/b", "server/d")]
    assert run_example(tmp_path / "other", *others, *certificate, "--limit", "5") == 0
    differ = [
        one["item"]
        for one in manifest(tmp_path / "other")["certificate"]["matches"]
        if one["certified"] != one["found"]
    ]
    assert differ == ["prompt digest"]
    capsys.readouterr()
    assert main(["leaderboard", str(out), "--gold", str(gold)]) == 0
    shown = capsys.readouterr()
    assert "has changed since" not in shown.out + shown.err


@pytest.mark.long
def test_kill_9_and_the_same_command(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.03)
    out = tmp_path / "out"
    jury = ["--jury", "dawid-skene", "--criteria", "groundedness", *asked(mock, "server/a", "server/b", "server/c")]
    command = ("-m", "judge", "run", *INPUTS, "--out", out, *jury)
    for least in (30, CALLS + 30):
        process = start_python(*command, stderr=subprocess.DEVNULL)
        wait_for_paid(mock, process, least)
        process.kill()
        process.wait()
        assert manifest(out)["status"] == "unfinished"
        assert not (out / "judgments.jsonl").exists()
    assert run_example(out, *jury) == 0
    # Each of the two kills may cost the 8 calls in flight and the replies being written, of which there are at most 8.
    assert 0 <= sum(mock.paid_per_item().values()) - 3 * CALLS <= 2 * (8 + 8)
    journal = out / "journal.sqlite"
    replayed = tmp_path / "replayed"
    models = [part for name in "abc" for part in ("--model", f"replay/{journal}::server/{name}")]
    again = ["--base-url", mock.base_url, "--jury", "dawid-skene", "--criteria", "groundedness", *models]
    paid = sum(mock.paid_per_item().values())
    assert run_example(replayed, *again) == 0
    assert sum(mock.paid_per_item().values()) == paid
    assert results(replayed) == results(out)
