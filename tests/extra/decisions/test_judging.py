"""Decision models as judges: whole commands against a server that speaks both contracts."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.errors import RejectedError, TransientError, UsageError
from judge.judges.backends import open_model
from judge.judges.model import Model, ModelOptions
from judge.judges.records import PROMPT_CUT
from tests.calibration_world import FAST
from tests.conftest import PROJECT, complaint, json_lines, manifest, printed, run_example
from tests.extra.bench.bench_world import dataset, items, write
from tests.mock import Mock, ask, complete, used

pytestmark = pytest.mark.slow

BOTH = ("decisions/gpt-6-luna", "systemone/jev")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, no_keys: None, no_pause: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "decisions-key-1")
    monkeypatch.setenv("JUDGE_API_KEY", "systemone-key-1")


def judged(mock: Mock, out: Path, *more: str, model: str = BOTH[0], code: int = 0) -> list[dict[str, Any]]:
    """The judgments of a run over some responses of the example."""
    asked = ["--model", model, "--base-url", mock.base_url, "--limit", "12"]
    assert run_example(out, *asked, *more) == code
    return json_lines(out / "judgments.jsonl")


def opened(mock: Mock, model: str = BOTH[0], **options: Any) -> Model:
    return open_model(model, ModelOptions(base_url=mock.base_url, **options))


@pytest.mark.parametrize(("model", "path", "material", "key"), [
    (BOTH[0], "POST /v1/decisions ", "input", "decisions-key-1"),
    (BOTH[1], "POST /v1/systemone ", "state", "systemone-key-1"),
])  # fmt: skip
def test_three_criteria(mock: Mock, tmp_path: Path, model: str, path: str, material: str, key: str) -> None:
    rows = judged(mock, tmp_path / "out", "--criteria", "groundedness", "naturalness", "completeness", model=model)
    assert Counter(row["criterion"] for row in rows) == {"groundedness": 12, "naturalness": 12, "completeness": 12}
    for row in rows:
        assert (row["form"], row["repaired"], row["rationale"]) == ("decision", False, None)
        assert row["probabilities"] and sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert max(row["probabilities"].values()) == list(row["probabilities"].values())[_place(row)]
        assert (row["expected"] is None) == row["unable"]
    # Level of "unable": the question is a choice, and who cannot judge gives no grade.
    assert "unable" in next(row for row in rows if row["criterion"] == "completeness")["probabilities"]
    headers, sent = mock.last()
    assert set(sent) == {"model", material, "questions"}
    assert headers["authorization"] == f"Bearer {key}"
    assert mock.http("GET", "/__last")[1]["head"].startswith(path)
    # All is recalled.
    before = mock.stats()["requests"]
    again = judged(mock, tmp_path / "out", "--criteria", "groundedness", "naturalness", "completeness", model=model)
    assert (again, mock.stats()["requests"]) == (rows, before)


def _place(row: dict[str, Any]) -> int:
    """The place of the label of a grade."""
    scale = find_criterion(f"{row['criterion']}/{row['variant']}").scale
    label = scale.unable.label if row["unable"] and scale.unable else str(row["grade"])
    return list(row["probabilities"]).index(label)


@pytest.mark.parametrize("model", BOTH)
def test_sentences_are_questions_of_one_request(mock: Mock, tmp_path: Path, model: str) -> None:
    out = tmp_path / "out"
    rows = judged(mock, out, "--criteria", "groundedness", "--prompt", "groundedness/sentences", model=model)
    labels = {"supported", "contradicted", "unsupported", "no_claim"}
    assert len(rows) > 8 and all(set(row["sentences"]) <= labels for row in rows)
    assert mock.stats()["requests"] == len(rows)
    questions = mock.last()[1]["questions"]
    asked = questions if isinstance(questions, list) else list(questions.values())
    assert len(asked) in {len(row["sentences"]) for row in rows}
    assert {question["type"] for question in asked} == {"choice"}


def test_yes_and_no_is_a_predicate(mock: Mock, tmp_path: Path) -> None:
    rows = judged(mock, tmp_path / "out", "--criteria", "groundedness", "--prompt", "groundedness/yes_no")
    assert {row["grade"] for row in rows} == {0, 1}
    assert all(row["expected"] == row["probabilities"]["yes"] for row in rows)
    (question,) = mock.last()[1]["questions"]
    assert question["type"] == "predicate" and "\n\nTrue means yes: Every piece" in question["instructions"]


def test_pairs_and_dialogues(mock: Mock, tmp_path: Path) -> None:
    rows = judged(mock, tmp_path / "pairs", "--criteria", "preference")
    assert len(rows) == 12 and {row["grade"] for row in rows} <= {0, 1, 2}
    assert "<first_response>" in mock.last()[1]["input"]
    (question,) = mock.last()[1]["questions"]
    assert [level["label"] for level in question["levels"]] == ["second", "tie", "first"]
    given = ["--runs", str(PROJECT / "examples/runs"), "--topics", str(PROJECT / "examples/topics.json")]
    argv = ["run", *given, "--criteria", "coherence", "--model", BOTH[0], "--base-url", mock.base_url]
    assert main([*argv, "--limit", "3", "--out", str(tmp_path / "dialogues")]) == 0
    assert len(json_lines(tmp_path / "dialogues" / "judgments.jsonl")) == 3
    assert "<dialogue>" in mock.last()[1]["input"]


def test_citations(mock: Mock, tmp_path: Path) -> None:
    given = PROJECT / "examples"
    argv = [
        "run",
        "--runs",
        str(given / "citations/runs/heron-cites.jsonl"),
        "--profile",
        "rag",
        "--criteria",
        "support",
    ]
    argv += ["--topics", str(given / "citations/topics.tsv"), "--passages", str(given / "passages.jsonl")]
    assert main([*argv, "--model", BOTH[1], "--base-url", mock.base_url, "--out", str(tmp_path / "out")]) == 0
    assert {row["form"] for row in json_lines(tmp_path / "out" / "judgments.jsonl")} == {"decision"}
    assert '<passage n="1">' in mock.last()[1]["state"]


def test_nuggets_are_matched(mock: Mock, tmp_path: Path, pooled: Path) -> None:
    asked = ["--bank", str(PROJECT / "examples/nuggets.jsonl"), "--model", BOTH[0], "--base-url", mock.base_url]
    assert main(["nuggets", "match", "--pool", str(pooled), *asked, "--limit", "9", "--out", str(tmp_path / "m")]) == 0
    (question,) = mock.last()[1]["questions"]
    assert "<nugget>" in question["instructions"] and "<nugget>" not in mock.last()[1]["input"]
    rows = json_lines(tmp_path / "m" / "matches.jsonl")
    assert len(rows) == 9 and {row["label"] for row in rows} <= {"supports", "partly", "does_not", "contradicts"}


def test_calibrated_on_gold(mock: Mock, tmp_path: Path, pooled: Path) -> None:
    asked = ["--model", BOTH[0], "--base-url", mock.base_url, "--prompt", "groundedness/graded"]
    gold = ["--gold", str(PROJECT / "gold/example.gold.jsonl"), "--pool", str(pooled)]
    assert main(["calibrate", *gold, *asked, "--out", str(tmp_path / "cal"), *FAST]) in (0, 1)
    assert BOTH[0] in (tmp_path / "cal" / "agreement.tsv").read_text("utf-8")


def test_measured_on_public_labels(mock: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.extra.bench.DATASETS", {"tiny": dataset()})
    argv = ["bench", "--data", str(write(tmp_path / "data", items())), "--model", BOTH[1], "--base-url", mock.base_url]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 0
    # AUC needs the expected grade, which probabilities give.
    assert all(0 < row["score"] < 3 for row in json_lines(tmp_path / "out" / "items.jsonl"))


def test_probed(mock: Mock, tmp_path: Path, pooled: Path) -> None:
    argv = ["probe", str(pooled), "--model", BOTH[1], "--base-url", mock.base_url, "--criteria", "groundedness"]
    assert main([*argv, "--items", "2", "--kinds", "invariance", "--out", str(tmp_path / "out")]) in (0, 1)
    assert (tmp_path / "out" / "probe.md").exists()


def test_a_dry_run_tells_what_it_costs(
    mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    asked = ["--criteria", "groundedness", "--model", BOTH[0], "--limit", "12", "--dry-run", "--json"]
    (told,) = json.loads(printed(capsys, run_example(tmp_path / "out", *asked)))["by_model"]
    expected = told["expected"]
    assert [expected[name] for name in ("calls", "attempts", "completion_tokens")] == [12, 12, 0]
    assert told["tokens_per_reply"] == 0.0
    assert told["price"] == {"in": 0.1, "out": 0.0}
    assert expected["cost"] == told["most"] == pytest.approx(expected["prompt_tokens"] * 0.1e-6)
    # Instructions go out once for each sentence.
    (each,) = json.loads(printed(capsys, run_example(tmp_path / "out", *asked, "--prompt", "groundedness/sentences")))[
        "by_model"
    ]
    assert each["expected"]["prompt_tokens"] > expected["prompt_tokens"]
    assert mock.stats()["requests"] == 0
    # The price is of OpenAI's own address.
    asked += ["--base-url", mock.base_url]
    assert json.loads(printed(capsys, run_example(tmp_path / "out", *asked)))["by_model"][0]["price"] is None


def test_what_was_asked_is_billed_by_its_tokens(mock: Mock, tmp_path: Path) -> None:
    judged(mock, tmp_path / "out", "--criteria", "groundedness", "--price", "0.1/0")
    (spending,) = manifest(tmp_path / "out")["spending"]
    assert (spending["priced"], spending["completion_tokens"]) == (spending["calls"], 0)
    assert spending["cost"] == pytest.approx(spending["prompt_tokens"] * 0.1e-6)


@pytest.mark.parametrize("model", BOTH)
def test_a_refusal_is_a_failure_of_its_question_alone(mock: Mock, tmp_path: Path, model: str) -> None:
    mock.config(declined="You assess naturalness")
    asked = ["--criteria", "groundedness", "naturalness"]
    rows = judged(mock, tmp_path / "out", *asked, model=model, code=0)
    assert Counter(row["criterion"] for row in rows) == {"groundedness": 12}
    failed = json_lines(tmp_path / "out" / "failures.jsonl")
    assert Counter((row["criterion"], row["reason"]) for row in failed) == {("naturalness", "refused"): 12}
    assert '"type": "refusal"' in failed[0]["raw"]
    # It was paid for, and is not asked again.
    before = mock.stats()["requests"]
    judged(mock, tmp_path / "out", *asked, model=model)
    assert mock.stats()["requests"] == before


@pytest.mark.parametrize(("model", "body", "error", "message"), [
    (BOTH[0], "<html>", TransientError, "status 200, but not JSON"),
    (BOTH[0], {"model": "m"}, RejectedError, "status 200, but no answers"),
    (BOTH[1], {"answers": []}, RejectedError, "status 200, but no answers"),
    (BOTH[1], {"error": {"message": "busy", "code": 503}}, TransientError, "busy"),
])  # fmt: skip
def test_a_body_without_answers(mock: Mock, model: str, body: Any, error: type[Exception], message: str) -> None:
    mock.script({"body": body})
    with pytest.raises(error, match=message):
        complete(opened(mock, model), ask("decision"))


def test_a_completion_says_what_its_question_took(mock: Mock) -> None:
    mock.script({"body": {
        "model": "gpt-6-luna-2026-10-06",
        "answers": [{"type": "score", "name": "q1", "score": 1.0, "confidence": 0.9, "probabilities": [
            {"label": str(grade), "value": grade, "probability": float(grade == 1)} for grade in range(4)]}],
        "usage": {"input_tokens": 50, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 20}},
    }})  # fmt: skip
    completion = complete(opened(mock), ask("decision"))
    assert (completion.text, completion.finish_reason, completion.model) == ("1", "stop", "gpt-6-luna-2026-10-06")
    assert (completion.prompt_tokens, completion.completion_tokens, completion.cached_tokens) == (50, 0, 20)
    assert completion.probabilities == {"0": 0.0, "1": 1.0, "2": 0.0, "3": 0.0}
    assert (completion.endpoint, completion.system_fingerprint, completion.cost) == (mock.base_url, None, None)
    assert completion.latency is not None and completion.latency > 0


def test_questions_that_go_out_together(mock: Mock) -> None:
    requests = [ask("decision"), ask("decision", sentences=2, labels=("good", "bad")), ask("decision")]
    found = used(opened(mock), lambda model: model.complete_together(requests))
    assert mock.stats()["requests"] == 1
    assert [question["name"] for question in mock.last()[1]["questions"]] == ["q1", "q2", "q3", "q4"]
    assert [completion.text.count("\n") for completion in found] == [0, 1, 0]
    whole = sum(completion.prompt_tokens for completion in found)
    assert [completion.prompt_tokens for completion in found] == [
        whole - 3 * (whole // 4),
        2 * (whole // 4),
        whole // 4,
    ]
    # Alone, each has the same answer.
    alone = [used(opened(mock), lambda model, request=request: model.complete(request)) for request in requests]
    assert [completion.text for completion in alone] == [completion.text for completion in found]
    assert [completion.probabilities for completion in alone] == [completion.probabilities for completion in found]


def test_material_that_was_not_read_to_its_end(mock: Mock) -> None:
    def answered(**more: Any) -> Callable[[Any], Any]:
        mock.script({"body": {"model": "m", "answers": {"q1": {"type": "noul", "noul": 1.0}}, **more}})
        labels = ("yes", "no")
        of = find_criterion("groundedness/yes_no").scale
        return complete(opened(mock, BOTH[1]), ask("decision", "The train is late. " * 500, scale=of, labels=labels))

    assert answered(usage={"input_tokens": 2400}).finish_reason == "stop"
    assert answered(usage={"input_tokens": 512}).finish_reason == PROMPT_CUT
    assert answered(usage={"input_tokens": 2400, "truncated": True}).finish_reason == PROMPT_CUT


def test_a_judge_that_answers_one_at_a_time_can_be_asked_together() -> None:
    baseline = open_model("baseline/overlap")
    assert baseline.asks_together == 1
    found = used(baseline, lambda model: model.complete_together([ask("label"), ask("label")]))
    assert [completion.text for completion in found] == ["0", "0"]


@pytest.mark.parametrize(("model", "options", "message"), [
    (BOTH[0], {"temperature": 0.5}, "decisions/gpt-6-luna writes nothing, so it takes no --temperature"),
    (BOTH[1], {"seed": 1, "temperature": 0.5}, "so it takes no --temperature and --seed"),
    (BOTH[0], {"threads": 2}, "--threads is for local models"),
])  # fmt: skip
def test_options_that_no_decision_takes_are_refused(model: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_model(model, ModelOptions(base_url="http://127.0.0.1:1/v1", **options)).check([])


@pytest.mark.parametrize(("argv", "message"), [
    (["--model", BOTH[1]], "systemone/jev needs --base-url, the address before /systemone"),
    (["--model", BOTH[0], "--form", "json"], "decisions/gpt-6-luna cannot be asked in the form json, but decision"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert message in complaint(capsys, run_example(tmp_path / "out", "--criteria", "groundedness", *argv))


def test_a_key_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    argv = ["--criteria", "groundedness", "--model", BOTH[0]]
    assert "OPENAI_API_KEY" in complaint(capsys, run_example(tmp_path / "out", *argv))


def test_who_writes_nothing_makes_no_bank(mock: Mock, tmp_path: Path, pooled: Path, capsys) -> None:
    argv = ["nuggets", "create", "--pool", str(pooled), "--topics", str(PROJECT / "examples/topics.json")]
    argv += ["--model", BOTH[0], "--base-url", mock.base_url, "--out", str(tmp_path / "bank")]
    assert "decides between labels, so it cannot be asked nugget_creation/graded" in complaint(capsys, main(argv))


def test_a_recording_is_played_again(mock: Mock, tmp_path: Path) -> None:
    rows = judged(mock, tmp_path / "out", "--criteria", "groundedness")
    recording = f"replay/{tmp_path / 'out' / 'journal.sqlite'}"
    assert run_example(tmp_path / "again", "--criteria", "groundedness", "--model", recording, "--limit", "12") == 0
    assert json_lines(tmp_path / "again" / "judgments.jsonl") == rows
