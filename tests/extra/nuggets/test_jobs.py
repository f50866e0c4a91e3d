"""`judge nuggets match` against a server: nothing is paid twice, and a killed run goes on."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.nuggets import questions as matching
from judge.io.ids import is_own_turn
from tests.conftest import PROJECT, printed, put, start_python
from tests.mock import Mock, wait_for_paid
from tests.time_limit import PATIENCE

BANK = PROJECT / "examples" / "nuggets.jsonl"
PAIRS, RESPONSES = 211, 77
"""77 pooled responses with the nuggets of their turns."""
GONE = "http://127.0.0.1:9/v1"


def plan(mock: Mock, pooled: Path, out: Path, **more: Any) -> matching.NuggetMatchPlan:
    return matching.NuggetMatchPlan(
        pool=pooled, bank=BANK, model="server/mock", out=out, base_url=mock.base_url, **more
    )


def results(folder: Path) -> dict[str, bytes]:
    names = ("matches.jsonl", "failures.jsonl", "nuggets.json")
    return {name: (folder / name).read_bytes() for name in names}


def test_every_question_is_asked_once_and_never_again(mock: Mock, pooled: Path, tmp_path: Path) -> None:
    given = plan(mock, pooled, tmp_path / "out")
    forecast = matching.forecast_nuggets(given)
    assert forecast.counts == {"responses": RESPONSES, "nuggets": 44}
    assert forecast.models[0].expected.calls <= PAIRS
    assert not (tmp_path / "out").exists()
    first = matching.match_nuggets(given)
    assert len(first.answers) == PAIRS and not first.failures
    paid, written = mock.stats()["paid"], results(tmp_path / "out")
    assert set(mock.paid_per_item().values()) == {1}
    assert matching.match_nuggets(given).answers == first.answers
    assert mock.stats()["paid"] == paid
    assert results(tmp_path / "out") == written
    assert matching.forecast_nuggets(given).models[0].expected.calls == 0


def test_a_budget_leaves_failures_and_the_next_call_goes_on(mock: Mock, pooled: Path, tmp_path) -> None:
    short = matching.match_nuggets(plan(mock, pooled, tmp_path, max_cost=1.0, price="100/100", concurrency=4))
    assert {failed.reason for failed in short.failures} == {"budget"}
    assert len(short.answers) + len(short.failures) == PAIRS
    assert len(matching.match_nuggets(plan(mock, pooled, tmp_path)).answers) == PAIRS
    assert set(mock.paid_per_item().values()) == {1}


def test_a_reply_without_a_label_is_a_failure(mock: Mock, pooled: Path, tmp_path: Path) -> None:
    mock.script(*[reply("1: nugget")] * 2)
    outcome = matching.match_nuggets(plan(mock, pooled, tmp_path, limit=1))
    assert [failed.reason for failed in outcome.failures] == ["unreadable"]
    assert not outcome.answers
    assert (tmp_path / "matches.jsonl").read_bytes() == b""


def reply(content: str) -> dict[str, object]:
    """An answer of the server with this content."""
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "model": "m"}
    return {"status": 200, "body": json.dumps(body)}


def ask_until_killed(mock: Mock, paid: int, command: str, *words: object) -> None:
    """Kill a command of `judge nuggets` once so many of its calls are paid."""
    asked = ("-m", "judge", "nuggets", command, "--model", "server/mock", "--base-url", mock.base_url)
    process = start_python(*asked, *words, stderr=subprocess.DEVNULL)
    wait_for_paid(mock, process, paid)
    process.kill()
    process.wait(timeout=PATIENCE)


@pytest.mark.long
def test_a_killed_run_goes_on_with_the_same_bytes(mock: Mock, pooled: Path, tmp_path: Path) -> None:
    matching.match_nuggets(plan(mock, pooled, tmp_path / "whole"))
    mock.reset()
    mock.config(latency=0.05)
    words = "--pool", pooled, "--bank", BANK, "--concurrency", 2, "--out", tmp_path / "out"
    ask_until_killed(mock, 10, "match", *words)
    mock.config(latency=0.0)
    assert not (tmp_path / "out" / "matches.jsonl").exists()
    matching.match_nuggets(plan(mock, pooled, tmp_path / "out"))
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    # A kill costs at most the calls in flight, and those that were not yet on the disk.
    assert sum(mock.paid_per_item().values()) - len(mock.paid_per_item()) <= 4


def test_a_folder_with_other_answers_is_refused_before_anything_is_sent(mock, pooled, tmp_path) -> None:
    matching.match_nuggets(plan(mock, pooled, tmp_path, limit=3))
    mock.reset()
    with pytest.raises(InputError, match="holds matches made with another prompt: choose another --out"):
        matching.match_nuggets(plan(mock, pooled, tmp_path, prompt="nugget/yes_no"))
    assert mock.stats()["paid"] == 0
    (tmp_path / "nuggets.json").write_text("[")
    with pytest.raises(InputError, match="not as `judge nuggets match` writes it"):
        matching.match_nuggets(plan(mock, pooled, tmp_path))


def test_a_prompt_shows_the_conversation_that_an_interactive_run_had(mock: Mock, tmp_path: Path) -> None:
    prompt, bank, topics = tmp_path / "mine.md", tmp_path / "bank.jsonl", PROJECT / "examples/topics.json"
    text = (PROJECT / "prompts/nugget/graded.md").read_text()
    text = text.replace("inputs = [", 'inputs = ["context", "utterance", ')
    prompt.write_text(text.replace("{{nugget}}", "{{context}}\n\n{{utterance}}\n\n{{nugget}}"))
    bank.write_text(json.dumps({"nugget_id": "n", "topic_id": "1-1", "text": "A fact."}))
    pools = {"alone": ["examples/interactive"], "mixed": ["examples/interactive", "examples/runs/harbor-grounded.json"]}
    for name, runs in pools.items():
        given = [str(PROJECT / run) for run in runs]
        assert main(["pool", "--runs", *given, "--topics", str(topics), "--out", str(tmp_path / name)]) == 0

    def of(name: str, **more: object) -> matching.NuggetMatchPlan:
        out = tmp_path / f"out-{name}"
        of = {"pool": tmp_path / name, "bank": bank, "prompt": prompt, "base_url": mock.base_url} | more
        return matching.NuggetMatchPlan(model="server/mock", out=out, **of)

    prepared = matching.QuestionInputs(of("alone"))
    asked = {one.turn_id for one, _ in prepared.questions}
    assert asked and all(map(is_own_turn, asked))
    assert any(prepared.turns[turn_id].context for turn_id in asked)
    outcome = matching.match_nuggets(of("alone"))
    assert (len(outcome.answers), len(outcome.failures)) == (len(prepared.questions), 0)
    with pytest.raises(UsageError, match="shown with the conversation, so a topics file is needed"):
        matching.QuestionInputs(of("mixed"))
    mixed = matching.QuestionInputs(of("mixed", topics=topics))
    assert {is_own_turn(one.turn_id) for one, _ in mixed.questions} == {True, False}
    assert len(matching.match_nuggets(of("mixed", topics=topics)).answers) == len(mixed.questions)


def test_a_response_whose_passages_have_no_text_is_not_asked_about(mock: Mock, pooled: Path, tmp_path: Path) -> None:
    text = (PROJECT / "prompts/nugget/graded.md").read_text().replace("inputs = [", 'inputs = ["passages", ')
    prompt = put(tmp_path / "mine.md", text.replace("{{nugget}}", "{{passages}}\n\n{{nugget}}"))
    outcome = matching.match_nuggets(plan(mock, pooled, tmp_path / "out", prompt=prompt))
    assert {(failed.response_id, failed.reason) for failed in outcome.failures} == {("R00050", "no_passages")}
    assert len(outcome.answers) + len(outcome.failures) == PAIRS


def test_what_cannot_be_asked_is_refused(pooled: Path, tmp_path: Path) -> None:
    of = {"pool": pooled, "bank": BANK, "out": tmp_path / "out"}
    with pytest.raises(UsageError, match="cannot be asked nugget/graded: baseline/overlap matches nuggets"):
        matching.match_nuggets(matching.NuggetMatchPlan(model="checker/overlap", **of))
    with pytest.raises(UsageError, match="no prompt about a nugget"):
        matching.match_nuggets(matching.NuggetMatchPlan(model="baseline/overlap", prompt="groundedness", **of))
    with pytest.raises(OperationalError):
        matching.match_nuggets(matching.NuggetMatchPlan(model="server/m", base_url=GONE, attempts=1, **of))


def test_the_command_matches_and_scores(pooled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of, matched = ["--pool", str(pooled), "--bank", str(BANK)], str(tmp_path / "matched")
    command = ["nuggets", "match", *of, "--model", "baseline/overlap", "--out", matched]
    assert main([*command, "--dry-run"]) == 0
    assert "pairs               211: 77 responses, 44 nuggets" in capsys.readouterr().out
    assert main(command) == 0
    assert "211 matches in" in capsys.readouterr().err
    command = ["nuggets", "score", *of, "--matches", matched, "--format", "json", "--out", str(tmp_path / "scores")]
    tables = json.loads(printed(capsys, main(command)))
    assert [table["title"] for table in tables] == ["Runs", "Measures"]
    first = {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()}
    assert main(command) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()} == first
