"""`judge nuggets match` and `claims` against a server: nothing is paid twice, and a killed run goes on."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from judge.cli import main
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.nuggets import questions as matching
from judge.io.ids import is_own_turn
from judge.io.words import split_sentences
from tests.conftest import PROJECT, printed, start_python
from tests.mock import Mock, wait_for_paid
from tests.time_limit import PATIENCE

BANK = PROJECT / "examples" / "nuggets.jsonl"
PAIRS, RESPONSES = 211, 77
"""77 pooled responses with the nuggets of their turns."""


class Asked(NamedTuple):
    """A command that asks about nuggets."""

    plan: type[matching.NuggetAskPlan]
    ask: Callable[..., matching.NuggetAnswers]
    questions: int
    other_prompt: str


GONE = "http://127.0.0.1:9/v1"
MATCH = Asked(matching.NuggetMatchPlan, matching.match_nuggets, PAIRS, "nugget/yes_no")
CLAIMS = Asked(matching.NuggetClaimsPlan, matching.label_claims, RESPONSES, "nugget_precision/passages")
both = pytest.mark.parametrize("asked", [MATCH, CLAIMS], ids=["match", "claims"])


def plan(mock: Mock, pooled: Path, out: Path, asked: Asked = MATCH, **more: object) -> Any:
    return asked.plan(pool=pooled, bank=BANK, model="server/mock", out=out, base_url=mock.base_url, **more)


def results(folder: Path, asked: Asked) -> dict[str, bytes]:
    names = (f"{asked.plan.command.answers}.jsonl", "failures.jsonl", "nuggets.json")
    return {name: (folder / name).read_bytes() for name in names}


@both
def test_every_question_is_asked_once_and_never_again(mock: Mock, pooled: Path, tmp_path: Path, asked: Asked) -> None:
    given = plan(mock, pooled, tmp_path / "out", asked)
    forecast = matching.forecast_nuggets(given)
    assert forecast.counts == {"responses": RESPONSES, "nuggets": 44}
    assert forecast.models[0].calls <= asked.questions
    assert not (tmp_path / "out").exists()
    first = asked.ask(given)
    assert len(first.answers) == asked.questions and not first.failures
    paid, written = mock.stats()["paid"], results(tmp_path / "out", asked)
    assert set(mock.paid_per_item().values()) == {1}
    assert asked.ask(given).answers == first.answers
    assert mock.stats()["paid"] == paid
    assert results(tmp_path / "out", asked) == written
    assert matching.forecast_nuggets(given).models[0].calls == 0


def test_each_sentence_of_a_response_has_a_label(mock: Mock, pooled: Path, tmp_path: Path) -> None:
    texts = {
        row["response_id"]: row["text"] for row in map(json.loads, (pooled / "pool.jsonl").read_text().splitlines())
    }
    claims = matching.label_claims(plan(mock, pooled, tmp_path, CLAIMS)).answers
    assert all(len(row.labels) == len(split_sentences(texts[row.response_id])) for row in claims)


@both
def test_a_budget_leaves_failures_and_the_next_call_goes_on(mock: Mock, pooled: Path, tmp_path, asked: Asked) -> None:
    short = asked.ask(plan(mock, pooled, tmp_path, asked, max_cost=1.0, price="100/100", concurrency=4))
    assert {failed.reason for failed in short.failures} == {"budget"}
    assert len(short.answers) + len(short.failures) == asked.questions
    assert len(asked.ask(plan(mock, pooled, tmp_path, asked)).answers) == asked.questions
    assert set(mock.paid_per_item().values()) == {1}


@both
def test_a_reply_without_a_label_is_a_failure(mock: Mock, pooled: Path, tmp_path: Path, asked: Asked) -> None:
    mock.script(*[reply("1: nugget")] * 2)
    outcome = asked.ask(plan(mock, pooled, tmp_path, asked, limit=1))
    assert [failed.reason for failed in outcome.failures] == ["unreadable"]
    assert not outcome.answers
    assert (tmp_path / f"{asked.plan.command.answers}.jsonl").read_bytes() == b""


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
@both
def test_a_killed_run_goes_on_with_the_same_bytes(mock: Mock, pooled: Path, tmp_path: Path, asked: Asked) -> None:
    asked.ask(plan(mock, pooled, tmp_path / "whole", asked))
    mock.reset()
    mock.config(latency=0.05)
    words = "--pool", pooled, "--bank", BANK, "--concurrency", 2, "--out", tmp_path / "out"
    ask_until_killed(mock, 10, asked.plan.command.name, *words)
    mock.config(latency=0.0)
    assert not (tmp_path / "out" / f"{asked.plan.command.answers}.jsonl").exists()
    asked.ask(plan(mock, pooled, tmp_path / "out", asked))
    assert results(tmp_path / "out", asked) == results(tmp_path / "whole", asked)
    # A kill costs at most the calls in flight, and those that were not yet on the disk.
    assert sum(mock.paid_per_item().values()) - len(mock.paid_per_item()) <= 4


@both
def test_a_folder_with_other_answers_is_refused_before_anything_is_sent(mock, pooled, tmp_path, asked) -> None:
    row = asked.plan.command
    asked.ask(plan(mock, pooled, tmp_path, asked, limit=3))
    mock.reset()
    with pytest.raises(InputError, match=f"holds {row.answers} made with another prompt: choose another --out"):
        asked.ask(plan(mock, pooled, tmp_path, asked, prompt=asked.other_prompt))
    assert mock.stats()["paid"] == 0
    (tmp_path / "nuggets.json").write_text("[")
    with pytest.raises(InputError, match=f"not as `judge nuggets {row.name}` writes it"):
        asked.ask(plan(mock, pooled, tmp_path, asked))


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


def test_a_response_whose_passages_have_no_text_is_not_asked_about(pooled: Path, tmp_path: Path) -> None:
    given = matching.NuggetClaimsPlan(
        pool=pooled, bank=BANK, model="checker/overlap", out=tmp_path, prompt="nugget_precision/passages"
    )
    outcome = matching.label_claims(given)
    assert [(failed.response_id, failed.reason) for failed in outcome.failures] == [("R00050", "no_passages")]
    assert all(row.passages for row in outcome.answers)


def test_what_cannot_be_asked_is_refused(pooled: Path, tmp_path: Path) -> None:
    of = {"pool": pooled, "bank": BANK, "out": tmp_path / "out"}
    with pytest.raises(UsageError, match="checker/overlap labels sentences"):
        matching.label_claims(matching.NuggetClaimsPlan(model="baseline/overlap", **of))
    with pytest.raises(UsageError, match="no prompt about claims"):
        matching.label_claims(matching.NuggetClaimsPlan(model="checker/overlap", prompt="nugget", **of))
    with pytest.raises(OperationalError):
        matching.label_claims(matching.NuggetClaimsPlan(model="server/m", base_url=GONE, attempts=1, **of))


def test_the_command_labels_and_scores(pooled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = ["--pool", str(pooled), "--bank", str(BANK)]
    claimed, matched = str(tmp_path / "claimed"), str(tmp_path / "matched")
    assert main(["nuggets", "claims", *of, "--model", "checker/overlap", "--dry-run", "--out", claimed]) == 0
    assert "responses           77: 44 nuggets" in capsys.readouterr().out
    assert main(["nuggets", "claims", *of, "--model", "checker/overlap", "--out", claimed]) == 0
    assert "sentences of 77 responses" in capsys.readouterr().err
    assert main(["nuggets", "match", *of, "--model", "baseline/overlap", "--out", matched]) == 0
    capsys.readouterr()
    command = ["nuggets", "score", *of, "--matches", matched, "--claims", claimed, "--format", "json"]
    tables = json.loads(printed(capsys, main([*command, "--out", str(tmp_path / "scores")])))
    assert [table["title"] for table in tables] == ["Runs", "Measures", "Precision"]
    assert "precision" not in tables[2]["rows"][0]
    assert all(
        row["labeled"] + row["no_claim"] + row["missing"] + row["unanswered"] == row["units"]
        for row in tables[2]["rows"]
    )
    first = {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()}
    assert {"precision.tsv", "claims.tsv"} <= first.keys()
    assert main([*command, "--out", str(tmp_path / "scores")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()} == first
    assert main([*command[:-4], "--out", str(tmp_path / "scores")]) == 0
    assert not (tmp_path / "scores" / "claims.tsv").exists()
