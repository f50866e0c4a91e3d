"""Counting tokens as a job: the figures are those that `judge tokens` prints."""

import json
from pathlib import Path

import msgspec
import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.jobs.tokens import LengthsPlan, count_lengths, lengths_tsv

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RUNS, TOPICS = str(EXAMPLES / "runs"), str(EXAMPLES / "topics.json")


def test_the_outcome_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = count_lengths(LengthsPlan(runs=RUNS, topics=TOPICS, token_limit=40, depth=2))
    options = ["--runs", RUNS, "--topics", TOPICS, "--token-limit", "40", "--depth", "2"]
    assert main(["tokens", *options, "--tsv"]) == 0
    assert capsys.readouterr().out == lengths_tsv(outcome.runs)
    assert main(["tokens", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(msgspec.json.encode(outcome.runs))
    assert outcome.complete
    assert (len(outcome.runs), outcome.unusable, outcome.problems) == (7, (), ())
    faulty = next(run for run in outcome.runs if run.run_id == "thistle-faulty")
    assert (faulty.limit, {effect.rule for effect in faulty.rules}) == (40, {"bare", "english", "whitespace"})


def test_a_file_that_holds_no_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    outcome = count_lengths(LengthsPlan(runs=str(tmp_path)))
    assert (outcome.runs, outcome.unusable, outcome.complete) == ((), ("broken.json",), False)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        count_lengths(LengthsPlan(runs=str(tmp_path / "none")))
    with pytest.raises(UsageError):
        count_lengths(LengthsPlan(runs=RUNS, format="ikat1999"))
