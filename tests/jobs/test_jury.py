"""Several models, prompts or samples as one jury, and several prompts together in one call, to every file and back."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.ask.results import read_labels
from judge.calibrate.findings import Calibration
from judge.cli import main
from judge.gold.rows import GoldRow
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.judges.backends.baseline import Overlap
from judge.judges.model import Price
from judge.judges.records import Completion, Request
from tests.calibration_world import FAST, contents, gold_rows, items, pool, row, table, write_gold, write_pool
from tests.conftest import (
    INPUTS,
    PROJECT,
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
    assert manifest(tmp_path / "out")["asked"] == {"limit": 3, "judgments": 3}


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
    # The first call of the server and its attempts fail; the baseline has answered.
    mock.script(*({"status": 500} for _ in range(2)))
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
    assert len(json_lines(tmp_path / "out" / "members.jsonl")) == 2 * (76 + 77)
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


def test_one_criterion_of_a_group_can_be_looked_at(tmp_path: Path, mock: Mock) -> None:
    found = calibrated(tmp_path, mock, criterion="naturalness")
    assert [one.criterion for one in found.together] == ["naturalness"]
    # The calls of the other criterion alone were not made, so nothing was saved that could be counted.
    assert found.group_costs == ()


@pytest.mark.long
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
