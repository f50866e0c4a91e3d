"""All questions about a response in one request: whole commands, whose requests a server counts."""

import contextlib
import json
import re
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.judges.journal_tools import verify_journal
from tests.calibration_world import FAST
from tests.conftest import INPUTS, PROJECT, json_lines, manifest, printed, run_here, start_python
from tests.extra.bench.bench_world import dataset, items, write
from tests.jobs.test_run import results
from tests.mock import Mock, wait_for_paid

pytestmark = pytest.mark.slow

MODEL = "decisions/gpt-6-luna"
THREE = ("--criteria", "groundedness", "naturalness", "completeness")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, no_keys: None, no_pause: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "decisions-key-1")


def of(mock: Mock, out: Path, *more: str) -> list[str]:
    """The words that name judge and output."""
    return ["--model", MODEL, "--base-url", mock.base_url, "--out", str(out), *more]


def requests(mock: Mock, argv: Sequence[str], codes: tuple[int, ...] = (0,)) -> int:
    """How many requests a command makes."""
    before = mock.stats()["requests"]
    assert main(list(argv)) in codes
    return mock.stats()["requests"] - before


def example(mock: Mock, out: Path, *more: str) -> list[str]:
    return ["run", *INPUTS, *of(mock, out, "--limit", "12", *more)]


@pytest.mark.parametrize("concurrency", ["1", "2", "64"])
def test_a_request_a_response(mock: Mock, tmp_path: Path, concurrency: str) -> None:
    assert requests(mock, example(mock, tmp_path / "out", *THREE, "--concurrency", concurrency)) == 12
    assert len(json_lines(tmp_path / "out" / "judgments.jsonl")) == 36
    assert len(mock.last()[1]["questions"]) == 3
    (spending,) = manifest(tmp_path / "out")["spending"]
    assert [spending[name] for name in ("calls", "attempts", "counted", "timed")] == [12] * 4
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "journal.sqlite")) as journal:
        assert journal.execute("SELECT count(*) FROM completion").fetchone() == (36,)
    assert requests(mock, example(mock, tmp_path / "out", *THREE)) == 0


def test_a_second_criterion_asks_for_itself_alone(
    mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert requests(mock, example(mock, out, "--criteria", "groundedness")) == 12
    both = example(mock, out, "--criteria", "groundedness", "naturalness", "--replace")
    capsys.readouterr()
    (told,) = json.loads(printed(capsys, main([*both, "--dry-run", "--json"])))["by_model"]
    assert (told["recalled"], told["expected"]["calls"], told["expected"]["attempts"]) == (12, 12, 12)
    all_at_once = example(mock, tmp_path / "none", *THREE, "--dry-run")
    lines = printed(capsys, main(all_at_once)).splitlines()
    counted = {name.strip(): fact.strip() for name, fact in ((line[:20], line[20:]) for line in lines)}
    assert counted["judgments"].startswith("231 = 77 responses")
    named = ("beyond the limit", "in the same call", "calls to be made")
    assert [counted[name] for name in named] == ["195", "24", "12"]
    assert requests(mock, both) == 12
    assert len(mock.last()[1]["questions"]) == 1
    # Asked at once, the answers are the same.
    assert requests(mock, example(mock, tmp_path / "at once", "--criteria", "groundedness", "naturalness")) == 12
    assert _grades(tmp_path / "at once") == _grades(out)


def _grades(out: Path) -> list[tuple[Any, ...]]:
    names = ("response_id", "criterion", "grade", "probabilities", "request_digest")
    return [tuple(row[name] for name in names) for row in json_lines(out / "judgments.jsonl")]


def _nuggets(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    bank = str(PROJECT / "examples/nuggets.jsonl")
    return ["nuggets", "match", "--pool", str(pooled), "--bank", bank, *of(mock, folder)]


def _calibrate(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    gold = ["--gold", str(PROJECT / "gold/example.gold.jsonl"), "--pool", str(pooled)]
    prompts = ["--prompt", "groundedness/graded", "--prompt", "groundedness/sentences"]
    return ["calibrate", *gold, *prompts, *of(mock, folder, *FAST)]


def _probe(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    return ["probe", str(pooled), "--criteria", "groundedness", "naturalness", "--items", "2", *of(mock, folder)]


def _bench(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    return ["bench", "--data", str(write(folder.parent / "data", items())), *of(mock, folder)]


def _citations(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    given = PROJECT / "examples"
    runs = ["--runs", str(given / "citations/runs/heron-cites.jsonl"), "--profile", "rag", "--criteria", "support"]
    inputs = ["--topics", str(given / "citations/topics.tsv"), "--passages", str(given / "passages.jsonl")]
    return ["run", *runs, *inputs, *of(mock, folder)]


def _pairs(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    return ["run", *INPUTS, "--criteria", "preference", *of(mock, folder, "--limit", "12")]


def _dialogues(mock: Mock, folder: Path, pooled: Path) -> list[str]:
    return ["run", *INPUTS[:4], "--criteria", "coherence", *of(mock, folder, "--limit", "3")]


@pytest.mark.parametrize(("command", "made"), [
    # 211 nuggets of 77 responses, one of which has the text of another.
    (_nuggets, 76),
    # 77 rows of gold, each under two prompts; one response lacks a passage.
    (_calibrate, 76),
    (_probe, 64),
    (_bench, 40),
    (_citations, 7),
    (_pairs, 12),
    (_dialogues, 3),
])  # fmt: skip
def test_every_command_asks_as_its_dry_run_says(
    mock: Mock,
    tmp_path: Path,
    pooled: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[[Mock, Path, Path], list[str]],
    made: int,
) -> None:
    monkeypatch.setattr("judge.extra.bench.DATASETS", {"tiny": dataset()})
    argv = command(mock, tmp_path / "out", pooled)
    capsys.readouterr()
    told = printed(capsys, main([*argv, "--dry-run"]))
    assert re.findall(r"^calls(?: to be made)? +([0-9]+)$", told, re.MULTILINE) == [str(made)], told
    # There is a line for requests only where they are more than calls.
    assert "\nrequests " not in told
    assert mock.stats()["requests"] == 0
    assert requests(mock, argv, (0, 1)) == made
    assert requests(mock, argv, (0, 1)) == 0


def test_more_questions_than_a_request_holds(
    mock: Mock, tmp_path: Path, pooled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.extra.decisions.openai._MOST_ELSEWHERE", 2)
    sizes: Counter[int] = Counter()
    assert requests(mock, _nuggets(mock, tmp_path / "out", pooled)) > 76
    rows = json_lines(tmp_path / "out" / "matches.jsonl")
    sizes.update(Counter(row["response_id"] for row in rows).values())
    assert max(sizes) > 2 and len(mock.last()[1]["questions"]) <= 2
    assert {row["label"] for row in rows} <= {"supports", "partly", "does_not", "contradicts"}


def test_trouble_is_paid_once(mock: Mock, tmp_path: Path) -> None:
    mock.config(p429=0.2, p500=0.2, retry_after=0.01)
    assert main(example(mock, tmp_path / "out", *THREE)) == 0
    stats = mock.stats()
    assert stats["statuses"]["429"] and stats["statuses"]["500"]
    assert (stats["paid"], stats["repeated_paid"], stats["retry_after_violations"]) == (12, 0, 0)
    assert len(json_lines(tmp_path / "out" / "judgments.jsonl")) == 36
    # A refusal for a limit is an attempt, too.
    (spending,) = manifest(tmp_path / "out")["spending"]
    assert (spending["calls"], spending["attempts"]) == (12, stats["requests"])


def test_a_budget_ends_between_calls(mock: Mock, tmp_path: Path) -> None:
    argv = example(mock, tmp_path / "out", *THREE, "--price", "1000/0", "--max-cost", "3", "--concurrency", "1")
    made = requests(mock, argv, (3,))
    assert 1 < made < 12
    rows = json_lines(tmp_path / "out" / "judgments.jsonl")
    failed = json_lines(tmp_path / "out" / "failures.jsonl")
    assert (len(rows), {row["reason"] for row in failed}) == (3 * made, {"budget"})
    (spending,) = manifest(tmp_path / "out")["spending"]
    # What is left of the budget pays for no other call.
    assert spending["cost"] == pytest.approx(1e-3 * spending["prompt_tokens"])
    assert spending["cost"] * (made - 1) / made < 3.2


def test_a_refused_key_takes_one_request(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mock.config(key="another")
    assert requests(mock, example(mock, tmp_path / "out", *THREE), (3,)) == 1
    assert "status 401" in capsys.readouterr().err


@pytest.mark.long
def test_kill_9_in_the_middle(mock: Mock, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["-m", "judge", "run", *INPUTS, *THREE, *of(mock, out, "--concurrency", "8", "--attempts", "10")]
    mock.config(latency=0.2, p429=0.1, p500=0.05, retry_after=0.05)
    for least in (10, 25, 45):
        process = start_python(*command, stderr=subprocess.DEVNULL)
        wait_for_paid(mock, process, least)
        process.kill()
        process.wait()
        assert verify_journal(out / "journal.sqlite").problems == ()
    done = run_here(*command[2:])
    assert done.returncode == 0, done.stderr
    stats = mock.stats()
    # Three kills, each with at most 8 calls in flight and as many replies that were being written.
    assert 77 <= stats["paid"] <= 77 + 3 * 2 * 8
    before = stats["requests"]
    assert run_here(*command[2:]).returncode == 0
    assert mock.stats()["requests"] == before
    whole = tmp_path / "whole"
    assert run_here("run", *INPUTS, *THREE, *of(mock, whole, "--concurrency", "1")).returncode == 0
    assert _grades(whole) == _grades(out)
    replayed = tmp_path / "replayed"
    again = ["run", *INPUTS, *THREE, "--model", f"replay/{out / 'journal.sqlite'}", "--out", str(replayed)]
    assert run_here(*again).returncode == 0
    assert results(replayed) == results(out)
