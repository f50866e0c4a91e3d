"""No command drops an argument: what is repeated accumulates or is refused, and so is what has no effect."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.cli import command_module, command_parser, main
from judge.cli.declared import parse_command
from judge.cli.parser import CommandParser
from tests.conftest import PROJECT


def parsers(command: str) -> Iterator[CommandParser]:
    pending: list[argparse.ArgumentParser] = [command_parser(command)]
    while pending:
        parser = pending.pop()
        assert isinstance(parser, CommandParser), parser.prog
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                pending += action.choices.values()


def test_several_models_without_a_jury_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = str(PROJECT / "examples" / "runs")
    models = ["--model", "baseline/overlap", "--model", "baseline/length"]
    assert main(["run", "--runs", runs, *models, "--out", str(tmp_path / "out")]) == 2
    assert "several models, samples and families need a jury (--jury RULE)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_two_columns_of_one_field_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    columns = ["--column", "turn_id=a", "--column", "turn_id=b", "--out", str(tmp_path / "gold.jsonl")]
    for command in (["gold", "import", "csv", "grades.csv"], ["crowd", "labels.csv", "--scale", "0-3"]):
        with pytest.raises(SystemExit):
            main([*command, *columns])
        assert "argument --column: turn_id is given twice\n" in capsys.readouterr().err


def test_what_is_given_replaces_the_default_and_adds_to_what_was_given() -> None:
    words = ["--runs", "a", "b", "--criteria", "naturalness", "--runs", "c", "--criteria", "relevance"]
    plan = parse_command(command_parser("run"), command_module("run"), words).args[0]
    assert plan.runs == (Path("a"), Path("b"), Path("c"))
    assert plan.criteria == ("naturalness", "relevance")
    assert plan.depth == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("calibrate --gold g --judgments j --temperature 0.5 --topics t", "--temperature, --topics: "),
        ("calibrate --gold g --judgments j --max-cost 1", "--max-cost: "),
        ("calibrate --gold g --judgments j --polarity lower", "--polarity: "),
        ("calibrate --gold g --judgments j --seal s", "--seal: "),
        ("leaderboard out --families f", "--families: "),
        ("passages extract --pool out --depth 2 --passages p -o x", "--depth: "),
        ("prompts show groundedness --form text", "--form: "),
        ("demo --no-model --model baseline/overlap", "--model: "),
    ],
)
def test_an_option_without_effect_is_refused(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed.split()) == 2
    assert capsys.readouterr().err.startswith(f"judge: {said}without effect here: ")
