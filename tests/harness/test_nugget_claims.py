"""`judge nuggets claims` against a server: nothing is paid twice, failures stay failures, a killed run goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.ask.settings import Settings
from judge.cli import main
from judge.errors import InputError, OperationalError, UsageError
from judge.harness.nuggets.questions import NuggetClaimsPlan, forecast_nuggets, label_claims
from judge.models.model import ModelOptions, Price
from judge.text.sentences import split_sentences
from tests.conftest import PROJECT
from tests.harness.test_nuggets import ask_until_killed
from tests.mock import Mock, start_mock
from tests.postgres import Postgres

pytestmark = pytest.mark.slow

BANK = PROJECT / "examples" / "nuggets.jsonl"
RESPONSES = 77


@pytest.fixture(scope="module")
def server() -> Iterator[Mock]:
    with start_mock() as mock:
        yield mock


def plan(mock: Mock, pooled: Path, out: Path, **more: object) -> NuggetClaimsPlan:
    options = ModelOptions(base_url=mock.base_url)
    return NuggetClaimsPlan(pool=pooled, bank=BANK, model="server/mock", out=out, options=options, **more)  # type: ignore[arg-type]


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("claims.jsonl", "failures.jsonl", "nuggets.json")}


def test_every_response_is_asked_once_and_never_again(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    forecast = forecast_nuggets(plan(server, pooled, tmp_path / "out"))
    assert (forecast.responses, forecast.nuggets) == (RESPONSES, 44)
    assert not (tmp_path / "out").exists()
    first = label_claims(plan(server, pooled, tmp_path / "out"))
    assert len(first.claims) == RESPONSES and not first.failures
    texts = {
        row["response_id"]: row["text"] for row in map(json.loads, (pooled / "pool.jsonl").read_text().splitlines())
    }
    assert all(len(row.labels) == len(split_sentences(texts[row.response_id])) for row in first.claims)
    paid, written = server.stats()["paid"], results(tmp_path / "out")
    assert set(server.paid_per_item().values()) == {1}
    again = label_claims(plan(server, pooled, tmp_path / "out"))
    assert again.claims == first.claims
    assert server.stats()["paid"] == paid
    assert results(tmp_path / "out") == written
    assert forecast_nuggets(plan(server, pooled, tmp_path / "out")).forecast.calls == 0


def test_what_one_folder_asked_another_finds_in_a_shared_journal(
    server: Mock, pooled: Path, tmp_path: Path, postgres: Postgres
) -> None:
    server.reset()
    url = postgres.database()
    label_claims(plan(server, pooled, tmp_path / "one", journal=url))
    paid = server.stats()["paid"]
    assert paid and forecast_nuggets(plan(server, pooled, tmp_path / "two", journal=url)).forecast.calls == 0
    label_claims(plan(server, pooled, tmp_path / "two", journal=url))
    assert server.stats()["paid"] == paid
    assert results(tmp_path / "two") == results(tmp_path / "one")
    assert not (tmp_path / "one" / "journal.sqlite").exists()


def test_a_budget_leaves_failures_and_the_next_call_goes_on(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    prices = {"*": Price(1e-4, 1e-4)}
    short = label_claims(plan(server, pooled, tmp_path, settings=Settings(max_cost=1.0, prices=prices, concurrency=4)))
    assert {failed.reason for failed in short.failures} == {"budget"}
    assert len(short.claims) + len(short.failures) == RESPONSES
    assert len(label_claims(plan(server, pooled, tmp_path)).claims) == RESPONSES
    assert set(server.paid_per_item().values()) == {1}


def test_a_reply_without_labels_is_a_failure(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    body = {"choices": [{"message": {"content": "1: nugget"}, "finish_reason": "stop"}], "model": "m"}
    server.script(*[{"status": 200, "body": json.dumps(body)}] * 2)
    outcome = label_claims(plan(server, pooled, tmp_path, limit=1))
    assert [failed.reason for failed in outcome.failures] == ["unreadable"]
    assert (tmp_path / "claims.jsonl").read_bytes() == b""


def test_a_killed_run_goes_on_with_the_same_bytes(server: Mock, pooled: Path, tmp_path: Path) -> None:
    server.reset()
    label_claims(plan(server, pooled, tmp_path / "whole"))
    server.reset()
    server.config(latency=0.05)
    ask_until_killed(server, pooled, tmp_path / "out", "claims", 2, 10)
    server.config(latency=0.0)
    assert not (tmp_path / "out" / "claims.jsonl").exists()
    label_claims(plan(server, pooled, tmp_path / "out"))
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    # A kill costs at most the calls in flight, and those that were not yet on the disk.
    assert sum(server.paid_per_item().values()) - len(server.paid_per_item()) <= 4


def test_a_folder_with_other_answers_is_refused_before_anything_is_sent(
    server: Mock, pooled: Path, tmp_path: Path
) -> None:
    label_claims(plan(server, pooled, tmp_path, limit=3))
    server.reset()
    with pytest.raises(InputError, match="holds claims made with another prompt: choose another --out"):
        label_claims(plan(server, pooled, tmp_path, prompt="nugget_precision/passages"))
    assert server.stats()["paid"] == 0
    (tmp_path / "nuggets.json").write_text("[")
    with pytest.raises(InputError, match="not as `judge nuggets claims` writes it"):
        label_claims(plan(server, pooled, tmp_path))


def test_a_response_whose_passages_have_no_text_is_not_asked_about(pooled: Path, tmp_path: Path) -> None:
    given = NuggetClaimsPlan(
        pool=pooled, bank=BANK, model="checker/overlap", out=tmp_path, prompt="nugget_precision/passages"
    )
    outcome = label_claims(given)
    assert [(failed.response_id, failed.reason) for failed in outcome.failures] == [("R00050", "no_passages")]
    assert all(row.passages for row in outcome.claims)


def test_what_cannot_be_asked_is_refused(pooled: Path, tmp_path: Path) -> None:
    of = {"pool": pooled, "bank": BANK, "out": tmp_path / "out"}
    with pytest.raises(UsageError, match="checker/overlap labels sentences"):
        label_claims(NuggetClaimsPlan(model="baseline/overlap", **of))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no prompt about claims"):
        label_claims(NuggetClaimsPlan(model="checker/overlap", prompt="nugget", **of))  # type: ignore[arg-type]
    gone = ModelOptions(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(OperationalError):
        label_claims(NuggetClaimsPlan(model="server/m", options=gone, settings=Settings(attempts=1), **of))  # type: ignore[arg-type]


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
    assert main([*command, "--out", str(tmp_path / "scores")]) == 0
    tables = json.loads(capsys.readouterr().out)
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
