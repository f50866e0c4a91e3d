"""`judge nuggets match` against a server: nothing is paid twice, failures stay failures, a killed run goes on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.ask.settings import Settings
from judge.cli import main
from judge.errors import InputError, OperationalError, UsageError
from judge.harness.nuggets.questions import NuggetMatchPlan, forecast_nuggets, match_nuggets, read_questions
from judge.models.model import ModelOptions, Price
from judge.text.ids import is_own_turn
from tests.conftest import PROJECT
from tests.mock import Mock, start_mock, wait_for_paid
from tests.postgres import Postgres
from tests.time_limit import PATIENCE

pytestmark = pytest.mark.slow

BANK = PROJECT / "examples" / "nuggets.jsonl"
PAIRS = 211
"""77 pooled responses with the nuggets of their turns."""


@pytest.fixture(scope="module")
def server() -> Iterator[Mock]:
    with start_mock() as mock:
        yield mock


def plan(mock: Mock, pooled: Path, out: Path, **more: object) -> NuggetMatchPlan:
    options = ModelOptions(base_url=mock.base_url)
    return NuggetMatchPlan(pool=pooled, bank=BANK, model="server/mock", out=out, options=options, **more)  # type: ignore[arg-type]


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("matches.jsonl", "failures.jsonl", "nuggets.json")}


def test_every_pair_is_asked_once_and_never_again(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    assert forecast_nuggets(plan(server, pooled, tmp_path / "out")).forecast.calls <= PAIRS
    assert not (tmp_path / "out").exists()
    first = match_nuggets(plan(server, pooled, tmp_path / "out"))
    assert len(first.matches) == PAIRS and not first.failures
    paid, written = server.stats()["paid"], results(tmp_path / "out")
    assert set(server.paid_per_item().values()) == {1}
    again = match_nuggets(plan(server, pooled, tmp_path / "out"))
    assert again.matches == first.matches
    assert server.stats()["paid"] == paid
    assert results(tmp_path / "out") == written
    assert forecast_nuggets(plan(server, pooled, tmp_path / "out")).forecast.calls == 0


def test_what_one_folder_asked_another_finds_in_a_shared_journal(
    server: Mock, pooled: Path, tmp_path: Path, postgres: Postgres
) -> None:
    server.reset()
    url = postgres.database()
    match_nuggets(plan(server, pooled, tmp_path / "one", journal=url))
    paid = server.stats()["paid"]
    assert forecast_nuggets(plan(server, pooled, tmp_path / "two", journal=url)).forecast.calls == 0
    match_nuggets(plan(server, pooled, tmp_path / "two", journal=url))
    assert server.stats()["paid"] == paid
    assert results(tmp_path / "two") == results(tmp_path / "one")
    assert not (tmp_path / "one" / "journal.sqlite").exists()


def test_a_budget_leaves_failures_and_the_next_call_goes_on(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    prices = {"*": Price(1e-4, 1e-4)}
    short = match_nuggets(plan(server, pooled, tmp_path, settings=Settings(max_cost=1.0, prices=prices, concurrency=4)))
    assert {failed.reason for failed in short.failures} == {"budget"}
    assert len(short.matches) + len(short.failures) == PAIRS
    rest = match_nuggets(plan(server, pooled, tmp_path))
    assert len(rest.matches) == PAIRS
    assert set(server.paid_per_item().values()) == {1}


def test_a_reply_without_a_label_is_a_failure(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    body = {"choices": [{"message": {"content": "Hm."}, "finish_reason": "stop"}], "model": "m"}
    server.script(*[{"status": 200, "body": json.dumps(body)}] * 2)
    outcome = match_nuggets(plan(server, pooled, tmp_path, limit=1))
    assert [failed.reason for failed in outcome.failures] == ["unreadable"]
    assert not outcome.matches
    assert (tmp_path / "matches.jsonl").read_bytes() == b""


def ask_until_killed(server: Mock, pooled: Path, out: Path, command: str, concurrency: int, paid: int) -> None:
    """Kill a command of `judge nuggets` once so many of its calls are paid."""
    arguments = [
        sys.executable, "-m", "judge", "nuggets", command, "--pool", str(pooled), "--bank", str(BANK), "--model",
        "server/mock", "--base-url", server.base_url, "--concurrency", str(concurrency), "--out", str(out),
    ]  # fmt: skip
    path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        arguments, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for_paid(server, process, paid)
    process.kill()
    process.wait(timeout=PATIENCE)


def test_a_killed_run_goes_on_with_the_same_bytes(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    match_nuggets(plan(server, pooled, tmp_path / "whole"))
    server.reset()
    server.config(latency=0.02)
    ask_until_killed(server, pooled, tmp_path / "out", "match", 4, 20)
    server.config(latency=0.0)
    assert not (tmp_path / "out" / "matches.jsonl").exists()
    match_nuggets(plan(server, pooled, tmp_path / "out"))
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    # A kill costs at most the calls in flight, and those that were not yet on the disk.
    assert sum(server.paid_per_item().values()) - len(server.paid_per_item()) <= 8


def test_a_folder_with_other_matches_is_refused_before_anything_is_sent(
    server: Mock, pooled: Path, tmp_path: Path
) -> None:
    match_nuggets(plan(server, pooled, tmp_path, limit=3))
    server.reset()
    with pytest.raises(InputError, match="made with another prompt: choose another --out"):
        match_nuggets(plan(server, pooled, tmp_path, prompt="nugget/yes_no"))
    assert server.stats()["paid"] == 0
    (tmp_path / "nuggets.json").write_text("[")
    with pytest.raises(InputError, match="not as `judge nuggets match` writes it"):
        match_nuggets(plan(server, pooled, tmp_path))


def test_a_server_that_is_not_there_ends_the_run(pooled: Path, tmp_path: Path) -> None:
    settings = Settings(attempts=1, concurrency=2)
    gone = NuggetMatchPlan(
        pool=pooled, bank=BANK, model="server/mock", out=tmp_path, settings=settings,
        options=ModelOptions(base_url="http://127.0.0.1:9/v1"),
    )  # fmt: skip
    with pytest.raises(OperationalError):
        match_nuggets(gone)


def test_matches_of_judges_are_scored_and_several_vote(
    server: Mock, pooled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    match_nuggets(plan(server, pooled, tmp_path / "a"))
    overlap = ["--model", "baseline/overlap", "--out", str(tmp_path / "b")]
    assert main(["nuggets", "match", "--pool", str(pooled), "--bank", str(BANK), *overlap]) == 0
    capsys.readouterr()
    command = ["nuggets", "score", "--pool", str(pooled), "--bank", str(BANK), "--format", "json", "--matches"]
    assert main([*command, str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    runs = json.loads(capsys.readouterr().out)[0]["rows"]
    assert {row["run"] for row in runs} >= {"harbor-grounded", "bramble-broken"}
    assert all(row["matched"] + row["unanswered"] == row["units"] for row in runs)


def test_a_prompt_shows_the_conversation_that_an_interactive_run_had(server: Mock, tmp_path: Path) -> None:
    server.reset()
    prompt, bank, topics = tmp_path / "mine.md", tmp_path / "bank.jsonl", PROJECT / "examples/topics.json"
    text = (PROJECT / "prompts/nugget/graded.md").read_text()
    text = text.replace("inputs = [", 'inputs = ["context", "utterance", ')
    prompt.write_text(text.replace("{{nugget}}", "{{context}}\n\n{{utterance}}\n\n{{nugget}}"))
    bank.write_text(json.dumps({"nugget_id": "n", "topic_id": "1-1", "text": "A fact."}))
    pools = {"alone": ["examples/interactive"], "mixed": ["examples/interactive", "examples/runs/harbor-grounded.json"]}
    for name, runs in pools.items():
        given = [str(PROJECT / run) for run in runs]
        assert main(["pool", "--runs", *given, "--topics", str(topics), "--out", str(tmp_path / name)]) == 0

    def of(name: str, **more: object) -> NuggetMatchPlan:
        options = ModelOptions(base_url=server.base_url)
        out = tmp_path / f"out-{name}"
        return NuggetMatchPlan(
            pool=tmp_path / name, bank=bank, model="server/mock", out=out, prompt=prompt, options=options, **more
        )  # type: ignore[arg-type]

    prepared = read_questions(of("alone"))
    asked = {pair.response.turn_id for pair in prepared.questions}
    assert asked and all(map(is_own_turn, asked))
    assert any(prepared.turns[turn_id].context for turn_id in asked)
    outcome = match_nuggets(of("alone"))
    assert (len(outcome.matches), len(outcome.failures)) == (len(prepared.questions), 0)
    with pytest.raises(UsageError, match="shown with the conversation, so a topics file is needed"):
        read_questions(of("mixed"))
    mixed = read_questions(of("mixed", topics=topics))
    assert {is_own_turn(pair.response.turn_id) for pair in mixed.questions} == {True, False}
    assert len(match_nuggets(of("mixed", topics=topics)).matches) == len(mixed.questions)
