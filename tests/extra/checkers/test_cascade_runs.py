"""`--cascade` from files to files: what is settled, what is asked and paid for, and what every output says of it."""

import json
import subprocess
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from judge.ask.records import Judgment
from judge.calibrate.findings import Calibration
from judge.cli import main
from judge.errors import RejectedError, UsageError
from judge.extra.checkers.checkers import Checker
from judge.io.words import containment
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.run import dry_run, run
from judge.jobs.run_inputs import Plan, RunInputs
from judge.judges.journal_tools import read_journal, read_spending
from judge.judges.records import Completion, Request
from tests.calibration_world import FAST, gold_rows, items, pool, write_gold, write_pool
from tests.conftest import INPUTS, PROJECT, complaint, ended, json_lines, manifest, on_stderr, printed, start_python
from tests.jobs.test_run import files
from tests.mock import Mock
from tests.scoring import Serve
from tests.time_limit import PATIENCE

EXAMPLE = PROJECT / "examples"
CASCADE = "checker/overlap@0.3:0.7"
NAME = f"{CASCADE}+server/m"
SENTENCES = "groundedness/sentences"
EVIDENCE = 76
"""Responses of the example whose passages have a text."""


def arguments(out: Path, mock: Mock, *more: str, prompt: str = SENTENCES) -> list[str]:
    return [
        *("run", *INPUTS, "--model", "server/m", "--base-url", mock.base_url),
        *("--criteria", "groundedness", "--prompt", prompt, "--out", str(out), *more),
    ]


def settled(out: Path) -> list[dict[str, Any]]:
    return [row for row in json_lines(out / "judgments.jsonl") if row["judge"] == "checker/overlap"]


def test_the_checker_settles_what_it_is_sure_of_and_the_model_is_asked_the_rest(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    said = on_stderr(capsys, main(arguments(out, mock, "--cascade", CASCADE)))
    mine = settled(out)
    # Every sentence that claims something lies beyond a bound, and some claim something.
    assert mine
    for row in mine:
        told = [one["probability"] for one in row["support"] if one["probability"] is not None]
        assert told and all(p <= 0.3 or p >= 0.7 for p in told)
    rows = json_lines(out / "judgments.jsonl")
    assert {row["cascade"] for row in rows} == {NAME}
    asked = [row for row in rows if row["judge"] == "server/m"]
    assert len(mine) + len(asked) == EVIDENCE == len(rows)
    # One text stands twice, so that one call answers two questions.
    assert mock.stats()["paid"] == len({row["request_digest"] for row in asked})
    note = f"checker/overlap settled {len(mine)} of {EVIDENCE} judgments"
    assert note in said and note in (out / "leaderboard.md").read_text(encoding="utf-8")
    recorded = manifest(out)
    counts = {"criterion": "groundedness", "settled": len(mine), "asked": len(asked), "without_evidence": 1}
    counts["checker_failed"] = 0
    assert recorded["cascade"] == {"checker": "checker/overlap", "low": 0.3, "high": 0.7, "counts": [counts]}
    sidecar = json.loads((out / "qrels" / "response_groundedness.llm.qrel.json").read_bytes())
    assert sidecar["judges"] == ["checker/overlap", "server/m"]
    assert sidecar["cascade"] == {"name": NAME, "settled": len(mine), "asked": len(asked), "checker_failed": 0}
    # Citations of the settled responses alone would say nothing of the others.
    assert not (out / "citations.tsv").exists()
    # The checker never says "contradicted", so shares of labels would mix two judges.
    assert not (out / "sentences.tsv").exists() and "sentences" not in sidecar
    assert ": sentences" not in (out / "leaderboard.md").read_text(encoding="utf-8")


def test_the_checker_alone_and_the_model_alone_say_the_same_of_the_same_responses(mock: Mock, tmp_path: Path) -> None:
    both, alone, checker = tmp_path / "both", tmp_path / "alone", tmp_path / "checker"
    assert main(arguments(both, mock, "--cascade", CASCADE)) == 0
    assert main(arguments(alone, mock)) == 0
    command = arguments(checker, mock)
    assert main([*command[: command.index("--model")], "--model", "checker/overlap", *command[-6:]]) == 0
    of_model, of_checker = (
        {row["response_id"]: (row["grade"], row["sentences"]) for row in json_lines(folder / "judgments.jsonl")}
        for folder in (alone, checker)
    )
    for row in json_lines(both / "judgments.jsonl"):
        source = of_checker if row["judge"] == "checker/overlap" else of_model
        assert source[row["response_id"]] == (row["grade"], row["sentences"])


def test_other_criteria_go_to_the_model_whole(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = ("--cascade", CASCADE, "--criteria", "groundedness", "naturalness")
    assert main(arguments(out, mock, *more)) == 0
    natural = [row for row in json_lines(out / "judgments.jsonl") if row["criterion"] == "naturalness"]
    assert {row["judge"] for row in natural} == {"server/m"} and not any("cascade" in row for row in natural)
    assert [row["criterion"] for row in manifest(out)["cascade"]["counts"]] == ["groundedness"]


def test_a_prompt_that_shows_the_conversation_goes_to_both(mock: Mock, tmp_path: Path) -> None:
    prompt = tmp_path / "talk.md"
    shown = (PROJECT / "prompts/groundedness/sentences.md").read_text(encoding="utf-8")
    shown = shown.replace('inputs = ["passages"', 'inputs = ["context", "passages"')
    prompt.write_text(shown.replace("{{passages}}", "{{context}}\n{{passages}}"), encoding="utf-8")
    assert main(arguments(tmp_path / "out", mock, "--cascade", CASCADE, prompt=str(prompt))) == 0
    assert {row["judge"] for row in json_lines(tmp_path / "out" / "judgments.jsonl")} == {"checker/overlap", "server/m"}


def test_the_same_command_again_asks_nothing_and_writes_the_same(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    before, paid = files(out), mock.stats()["requests"]
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    assert mock.stats()["requests"] == paid
    assert files(out) == before
    # Both judges are in one journal.
    assert {row.judge for row in read_spending(out / "journal.sqlite")} == {"checker/overlap", "server/m"}


def test_other_bounds_are_another_configuration_and_pay_only_for_what_they_leave_open(mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    first = mock.stats()["paid"]
    assert "cascade" in complaint(capsys, main(arguments(out, mock, "--cascade", "checker/overlap@0.1:0.9")))
    assert main(arguments(out, mock, "--cascade", "checker/overlap@0.1:0.9", "--replace")) == 0
    asked = {row["request_digest"] for row in json_lines(out / "judgments.jsonl") if row["judge"] == "server/m"}
    assert mock.stats()["paid"] == len(asked) > first


def test_a_dry_run_counts_only_what_would_be_asked(mock: Mock, tmp_path: Path) -> None:
    plan = Plan(
        runs=[EXAMPLE / "runs"], topics=EXAMPLE / "topics.json", passages=[EXAMPLE / "passages.jsonl"],
        prompts=[SENTENCES], model="server/m", base_url=mock.base_url, cascade=CASCADE,
        out=tmp_path / "out",
    )  # fmt: skip
    counts = dry_run(RunInputs(plan))
    assert mock.stats()["requests"] == 0 and not (tmp_path / "out").exists()
    rest = counts.judgments - counts.recalled - counts.without_evidence - counts.shared - counts.left_out
    assert counts.calls == rest - counts.settled and counts.unchecked == 0
    checker, model = counts.by_model
    assert (checker.model, checker.cost, checker.prompt_tokens) == ("checker/overlap", 0.0, 0)
    outcome = run(plan)
    assert mock.stats()["paid"] == counts.calls == model.calls
    assert (
        sum(isinstance(one, Judgment) and one.judge == "checker/overlap" for one in outcome.results) == counts.settled
    )
    again = dry_run(RunInputs(plan))
    assert (again.calls, again.settled) == (0, counts.settled)


@pytest.mark.long
def test_a_killed_run_pays_for_nothing_twice(mock: Mock, tmp_path: Path) -> None:
    mock.config(latency=0.05)
    out = tmp_path / "out"
    command = ["-m", "judge", *arguments(out, mock, "--cascade", CASCADE, "--concurrency", "2")]
    process = start_python(*command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while mock.stats()["paid"] < 10 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert process.poll() is None
    process.kill()
    process.wait()
    ended(start_python(*command))
    asked = {row["request_digest"] for row in json_lines(out / "judgments.jsonl") if row["judge"] == "server/m"}
    # Beyond one call for each question only those that were in flight, or being written, at the kill.
    assert len(asked) <= mock.stats()["paid"] <= len(asked) + 2 * 2
    again = mock.stats()["requests"]
    ended(start_python(*command))
    assert mock.stats()["requests"] == again


def test_a_failure_of_the_checker_is_none_of_the_item(mock: Mock, tmp_path, monkeypatch, capsys) -> None:
    complete: Callable[[Checker, Request], Any] = Checker.complete
    failed: list[str] = []

    async def some(self: Checker, request: Request) -> Completion:
        if int(request.response_id[1:]) % 2:
            failed.append(request.response_id)
            raise RejectedError("too long for the checker")
        found: Completion = await complete(self, request)
        return found

    monkeypatch.setattr(Checker, "complete", some)
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    rows = {row["response_id"]: row["judge"] for row in json_lines(out / "judgments.jsonl")}
    assert failed and len(rows) == EVIDENCE
    marked = {
        row["response_id"]: row["checker_failed"]
        for row in json_lines(out / "judgments.jsonl")
        if "checker_failed" in row
    }
    assert marked == dict.fromkeys(failed, "provider_error")
    note = f"On {len(marked)} of these the checker failed."
    assert note in " ".join(capsys.readouterr().err.split())
    assert note in (out / "leaderboard.md").read_text(encoding="utf-8")
    (counts,) = manifest(out)["cascade"]["counts"]
    sidecar = json.loads((out / "qrels" / "response_groundedness.llm.qrel.json").read_bytes())
    assert counts["checker_failed"] == sidecar["cascade"]["checker_failed"] == len(marked)
    assert {rows[response_id] for response_id in failed} == {"server/m"}
    assert [row["reason"] for row in json_lines(out / "failures.jsonl")] == ["no_passages"]
    # The checker is asked again, and what it settles then stands.
    monkeypatch.setattr(Checker, "complete", complete)
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    assert any(row["response_id"] in marked for row in settled(out))
    assert "checker_failed" not in (out / "judgments.jsonl").read_text(encoding="utf-8")


def test_a_recheck_asks_the_model_alone_again(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE, "--recheck", "5")) == 0
    again = json_lines(out / "recheck.jsonl")
    assert len(again) == 5 and {row["judge"] for row in again} == {"server/m"}
    assert not {row["response_id"] for row in again} & {row["response_id"] for row in settled(out)}


@pytest.mark.parametrize(("more", "told"), [
    (("--cascade", "checker/overlap@0.8:0.1"), "the lower one first"),
    (("--cascade", "openai/x@0.1:0.8"), "expected a checker"),
    (("--cascade", "checker/overlpa@0.1:0.8"), "did you mean overlap"),
    (("--cascade", "checker/server/x@0.1:0.8"), "needs one --cascade-url"),
    (("--cascade", CASCADE, "--cascade-url", "http://127.0.0.1:1/score"), "needs none"),
    (("--cascade-url", "http://127.0.0.1:1/score"), "which --cascade names"),
    (("--cascade", CASCADE, "--jury", "median", "--samples", "3"), "does not go with a jury"),
    (("--cascade", CASCADE, "--criteria", "groundedness", "naturalness", "--together"), "--together"),
    (("--cascade", CASCADE, "--price", "checker/other=1/2"), "no such model"),
])  # fmt: skip
def test_what_a_cascade_does_not_go_with_is_refused(mock, tmp_path, capsys, more, told) -> None:
    said = complaint(capsys, main(arguments(tmp_path / "out", mock, *more)))
    assert told in said and "Traceback" not in said
    assert not (tmp_path / "out").exists() and mock.stats()["requests"] == 0


def test_a_prompt_for_one_grade_and_a_checker_behind_itself_are_refused(mock: Mock, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE, prompt="groundedness/graded")) == 2
    assert "add --prompt groundedness/sentences" in capsys.readouterr().err
    command = arguments(out, mock, "--cascade", CASCADE)
    place = command.index("--model")
    assert main([*command[:place], "--model", "checker/overlap", *command[place + 4 :]]) == 2
    assert "cannot be asked the rest too" in capsys.readouterr().err


def test_a_price_for_all_models_is_not_the_checkers(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(arguments(out, mock, "--cascade", CASCADE, "--price", "1/2", "--max-cost", "5")) == 0
    took = {row.judge: row for row in read_spending(out / "journal.sqlite")}
    assert took["checker/overlap"].cost == 0.0 < took["server/m"].cost
    assert manifest(out)["prices"]["checker/overlap"] == {"in": 0.0, "out": 0.0}


def containments(body: Any) -> tuple[int, Any]:
    """A cross-encoder that is as sure as the share of words is, in the form of vLLM."""
    pairs = zip(body["text_1"], body["text_2"], strict=True)
    rows = [{"index": place, "score": containment(two, (one,))} for place, (one, two) in enumerate(pairs)]
    return 200, {"data": rows}


def test_a_checker_behind_a_server_has_an_address_of_its_own(mock: Mock, tmp_path, capsys, serve: Serve) -> None:
    out, local, bundle = tmp_path / "out", tmp_path / "local", tmp_path / "bundle"
    scorer = serve(containments)
    served = ("--cascade", "checker/server/x@0.3:0.7", "--cascade-url", f"{scorer.url}/score")
    before = " ".join(printed(capsys, main(arguments(out, mock, *served, "--dry-run"))).split())
    # Nothing is known of it yet, so all could be asked; nothing was sent to find out.
    assert f"settled 0 by checker/server/x; {EVIDENCE} are not checked yet, and count as calls" in before
    assert mock.stats()["requests"] == 0 and scorer.asked == []
    assert main(arguments(out, mock, *served)) == 0
    assert main(arguments(local, mock, "--cascade", CASCADE)) == 0
    rows, own = (
        {row["response_id"]: (row["grade"], row["judge"].partition("/server/")[0]) for row in json_lines(folder)}
        for folder in (out / "judgments.jsonl", local / "judgments.jsonl")
    )
    of_local = {key: (grade, judge.partition("/overlap")[0]) for key, (grade, judge) in own.items()}
    assert rows == of_local
    capsys.readouterr()
    sent = len(scorer.asked)
    assert main(arguments(out, mock, *served, "--dry-run")) == 0
    assert f"settled {len(settled(local))} by checker/server/x" in " ".join(capsys.readouterr().out.split())
    assert len(scorer.asked) == sent
    # The checker's address decides grades, and is not published.
    assert manifest(out)["configuration"]["cascade"]["base_url"] == f"{scorer.url}/score"
    assert main(["release", str(out), "--out", str(bundle)]) == 0
    assert scorer.url not in (bundle / "manifest.json").read_text(encoding="utf-8")


def world_in(folder: Path, tested: Callable[[int], bool] = lambda topic: False) -> tuple[list[Any], Path]:
    """A small world, its pool in `folder/pool`, and its gold; topics that are `tested` are the test split."""
    world = items(topics=12, each=3)
    write_pool(folder / "pool", pool(world))
    split = {one.turn_id: "test" if tested(int(one.turn_id.partition("_")[0])) else "dev" for one in world}
    rows = [row for one in world for row in gold_rows([one], split=split[one.turn_id])]
    return world, write_gold(folder / "gold.jsonl", rows)


def planned(folder: Path, gold: Path, mock: Mock, *cascades: str, **more: Any) -> CalibrationPlan:
    return CalibrationPlan(
        gold=[gold], pool=folder / "pool", prompts=[SENTENCES], cascades=cascades, out=folder / "out",
        base_url=mock.base_url, replicates=200, permutations=200, **{"models": ["server/m"], **more},
    )  # fmt: skip


def calibration(folder: Path, mock: Mock, *cascades: str, **more: Any) -> Calibration:
    """A calibration of one model and cascades of it, under groundedness by sentences."""
    return calibrate_judges(planned(folder, world_in(folder)[1], mock, *cascades, **more)).calibration


def test_calibration_says_what_a_cascade_saves_and_what_it_costs(mock: Mock, tmp_path: Path) -> None:
    found = calibration(tmp_path, mock, "checker/overlap@0.1:0.9", "checker/overlap@0.4:0.6")
    assert mock.stats()["paid"] == 36
    assert [(row.judge, row.alone) for row in found.cascades] == [
        ("checker/overlap@0.1:0.9+server/m", "server/m"),
        ("checker/overlap@0.4:0.6+server/m", "server/m"),
    ]
    rows = json_lines(tmp_path / "out" / "judgments.jsonl")
    for row in found.cascades:
        own = [one for one in rows if one.get("cascade") == row.judge]
        checked = [one for one in own if one["judge"] == "checker/overlap"]
        assert (len(own), len(checked)) == (row.items, row.settled)
        assert (row.cost.calls_alone, row.cost.calls_cascade) == (36, 36 - row.settled)
        assert row.difference.value == pytest.approx((row.value_cascade or 0) - (row.value_alone or 0))
    # A third, two thirds or all of the words: with wider bounds only all of them and none.
    assert found.cascades[0].settled < found.cascades[1].settled


@pytest.mark.parametrize("price", ["checker/server/x=5e6/0", None])
def test_the_dollars_of_a_cascade_are_those_of_both_judges(
    mock: Mock, tmp_path: Path, price: str | None, serve: Serve
) -> None:
    scorer = serve(containments)
    prices = ["server/m=1e6/2e6", *([price] if price else [])]
    cascade, url = "checker/server/x@0.1:0.9", f"{scorer.url}/score"
    (row,) = calibration(tmp_path, mock, cascade, cascade_url=url, price=prices).cascades
    assert row.cost is not None and row.cost.calls_checker == len(scorer.asked) == 36
    assert row.cost.cost_alone is not None
    if price is None:
        assert row.cost.cost_cascade is None
        return
    # The scorer counts no tokens, so those of the texts that it was sent are estimated, as they are for --max-cost.
    journal = list(read_journal(tmp_path / "out" / "journal.sqlite"))
    texts = [(*body["text_1"], *body["text_2"]) for _, body in scorer.asked]
    checked = [ceil(sum(len(text.encode()) for text in each) / 4) for each in texts]
    own = {entry.digest: entry.completion.cost or 0.0 for entry in journal if entry.judge == "server/m"}
    left = {one["request_digest"] for one in json_lines(tmp_path / "out" / "judgments.jsonl") if one.get("cascade")}
    rest = sum(cost for digest, cost in own.items() if digest in left)
    assert 0 < rest < row.cost.cost_alone == pytest.approx(sum(own.values()))
    assert row.cost.cost_cascade == pytest.approx(rest + 5.0 * sum(checked))


def test_a_checker_is_no_second_judge_of_its_own_cascade(tmp_path: Path, mock: Mock) -> None:
    cascade = "checker/overlap@0.1:0.8"
    with pytest.raises(UsageError, match="no other --model is asked"):
        calibration(tmp_path, mock, cascade, models=["checker/overlap"])
    found = calibration(tmp_path, mock, cascade, models=["checker/overlap", "server/m"], cascade_grid=True)
    assert [(row.judge, row.alone) for row in found.cascades] == [("checker/overlap@0.1:0.8+server/m", "server/m")]
    assert {row.alone for row in found.cascade_bounds} == {"server/m"}


def test_other_bounds_are_computed_of_the_answers_that_are_there(mock: Mock, tmp_path: Path) -> None:
    found = calibration(tmp_path, mock, "checker/overlap@0.1:0.9", cascade_grid=True)
    tried = {(row.low, row.high): row for row in found.cascade_bounds}
    assert len(tried) == len(found.cascade_bounds) == 25
    assert any("have met these grades in 1 different question;" in said for said in found.warnings)
    (row,), same = found.cascades, tried[0.1, 0.9]
    assert (same.settled, same.value, same.difference.value) == (row.settled, row.value_cascade, row.difference.value)
    assert tried[0.4, 0.6].settled >= tried[0.1, 0.9].settled >= tried[0.0, 1.0].settled
    # What is tried with other bounds is what another calibration finds with them.
    (other,) = calibration(tmp_path / "other", mock, "checker/overlap@0.4:0.6").cascades
    assert (tried[0.4, 0.6].settled, tried[0.4, 0.6].value) == (other.settled, other.value_cascade)


def test_a_grid_of_bounds_never_meets_test_grades(mock: Mock, tmp_path: Path) -> None:
    _, gold = world_in(tmp_path, lambda topic: topic >= 7)
    found = calibrate_judges(planned(tmp_path, gold, mock, CASCADE, cascade_grid=True)).calibration
    assert {row.split for row in found.cascade_bounds} == {"dev"}


@pytest.mark.long
def test_the_outputs_of_a_calibration_show_the_cascade(mock: Mock, tmp_path, capsys) -> None:
    _, gold = world_in(tmp_path)
    command = [
        *("calibrate", "--gold", str(gold), "--pool", str(tmp_path / "pool"), "--model", "server/m"),
        *("--base-url", mock.base_url, "--prompt", SENTENCES, "--price", "1/2", *FAST),
    ]
    out = tmp_path / "out"
    assert main([*command, "--cascade-grid", "--out", str(tmp_path / "no")]) == 2
    command.append("--cascade-grid")
    assert main([*command, "--cascade", "checker/overlap@0.1:0.9", "--out", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "settled" in told and " in place of 36 " in told
    assert "### Cascades" in (out / "calibration.md").read_text(encoding="utf-8")
    assert len((out / "cascade_bounds.tsv").read_text(encoding="utf-8").splitlines()) == 1 + 25
    before, paid = files(out), mock.stats()["requests"]
    assert main([*command, "--cascade", "checker/overlap@0.1:0.9", "--out", str(out)]) == 0
    assert mock.stats()["requests"] == paid
    assert files(out) == before
    assert main(["report", str(out)]) == 0
    assert main([*command, "--cascade", "checker/overlap@0.9:0.1", "--out", str(tmp_path / "no")]) == 2
    assert main(["calibrate", "--gold", str(gold), "--judgments", str(out), "--cascade", CASCADE]) == 2
    assert not (tmp_path / "no").exists()


def test_of_held_out_responses_the_chosen_cascade_asks_only_the_rest(mock: Mock, tmp_path: Path) -> None:
    world, gold = world_in(tmp_path, lambda topic: topic > 6)
    out = tmp_path / "out"
    found = calibrate_judges(planned(tmp_path, gold, mock, "checker/overlap@0.4:0.6"))
    # The mock's grades are chance, and the passages hold as many words as the responses deserve.
    (verdict,) = found.calibration.verdicts
    assert (verdict.judge, verdict.split) == ("checker/overlap@0.4:0.6+server/m sentences", "test")
    test = {one.response_id for one in world if int(one.turn_id.partition("_")[0]) > 6}
    said = [row for row in json_lines(out / "judgments.jsonl") if row["response_id"] in test]
    assert {row["cascade"] for row in said} == {"checker/overlap@0.4:0.6+server/m"}
    assert mock.stats()["paid"] == 18 + sum(row["judge"] == "server/m" for row in said) < 36
    (entry,) = found.certificate.certified
    assert entry.judge == "checker/overlap@0.4:0.6+server/m"


def test_a_certificate_of_a_cascade_is_of_its_bounds(mock: Mock, tmp_path: Path) -> None:
    first = tmp_path / "first"
    assert main(arguments(first, mock, "--cascade", CASCADE)) == 0
    gold = str(PROJECT / "gold" / "example.gold.jsonl")
    out = tmp_path / "calibrated"
    command = ["calibrate", "--gold", gold, "--judgments", str(first), "--criterion", "groundedness", "--out", str(out)]
    assert main([*command, *FAST]) == 0
    for name, cascade, matches in (
        ("same", ("--cascade", CASCADE), True),
        ("other", ("--cascade", "checker/overlap@0.2:0.7"), False),
        ("none", (), False),
    ):
        assert main(arguments(tmp_path / name, mock, *cascade, "--certificate", str(out / "certificate.json"))) == 0
        board = (tmp_path / name / "leaderboard.md").read_text(encoding="utf-8")
        assert ("does not match the certificate" not in board) == matches, name


def test_a_bundle_says_what_was_settled(mock: Mock, tmp_path: Path) -> None:
    out, bundle = tmp_path / "out", tmp_path / "bundle"
    assert main(arguments(out, mock, "--cascade", CASCADE)) == 0
    assert main(["release", str(out), "--out", str(bundle)]) == 0
    note = f"checker/overlap settled {len(settled(out))} of {EVIDENCE} judgments"
    for name in ("README.md", "leaderboard.md"):
        assert note in (bundle / name).read_text(encoding="utf-8")
    assert json.loads((bundle / "manifest.json").read_bytes())["cascade"]["counts"]
    assert main(["leaderboard", str(bundle)]) == 0
    assert main(["journal", "reparse", str(out)]) == 0
    assert note in (out / "report.html").read_text(encoding="utf-8")
    assert {entry.judge for entry in read_journal(out / "journal.sqlite")} == {"checker/overlap", "server/m"}
