"""No command drops an argument: what is repeated accumulates or is refused; every option of every command is tried.

Nothing is listed here. Options come from the parsers, so that a new one is tried by itself.
"""

import argparse
import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.cli import COMMANDS, command_parser, main
from judge.cli.parser import CommandParser, OneOrMore
from tests.conftest import PROJECT

VALUES = (("a.x", "b.x"), ("7", "8"), ("F=1", "G=2"), ("near_empty=1", "english=2"), ("0-3", "0-4"),
          ("a/b=1/2", "3/4"), ("postgresql://h/a", "postgresql://h/b"))  # fmt: skip
"""Two values of each kind of option."""


def parsers(command: str) -> Iterator[CommandParser]:
    pending: list[argparse.ArgumentParser] = [command_parser(command)]
    while pending:
        parser = pending.pop()
        assert isinstance(parser, CommandParser), parser.prog
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                pending += action.choices.values()


OPTIONS = [
    (parser.prog, action)
    for command in COMMANDS
    for parser in parsers(command)
    for action in parser._actions
    if action.option_strings and not isinstance(action, argparse._HelpAction)
]


def alone(action: argparse.Action) -> CommandParser:
    parser = CommandParser(prog="judge x", add_help=False)
    parser._add_action(action)
    return parser


def two_values(action: argparse.Action, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    if action.choices is not None:
        names = list(map(str, action.choices))
        return names[0], names[-1]
    for values in VALUES:
        try:
            for value in values:
                alone(action).parse_args([f"{action.option_strings[-1]}={value}"])
        except SystemExit:
            capsys.readouterr()
        else:
            return values
    raise AssertionError(f"{action.option_strings}: add two values of this kind to VALUES")


@pytest.mark.parametrize(("typed", "action"), OPTIONS, ids=[f"{typed} {action.dest}" for typed, action in OPTIONS])
def test_a_repeated_option_accumulates_or_is_refused(
    typed: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    action = copy.copy(action)
    action.required = False
    option = action.option_strings[-1]
    if action.nargs == 0:
        # A flag says the same twice.
        assert getattr(alone(action).parse_args([option, option]), action.dest) is True
        return
    first, second = two_values(action, capsys)
    of_one = [getattr(alone(action).parse_args([f"{option}={value}"]), action.dest) for value in (first, second)]
    if isinstance(of_one[0], list):
        both = alone(action).parse_args([option, first, option, second])
        assert getattr(both, action.dest) == of_one[0] + of_one[1]
        return
    if isinstance(action, OneOrMore):
        both = alone(action).parse_args([option, first, option, second])
        assert getattr(both, action.dest) == of_one
        return
    with pytest.raises(SystemExit) as stopped:
        alone(action).parse_args([option, first, option, second])
    assert stopped.value.code == 2
    assert "given more than once: it takes one value\n" in capsys.readouterr().err


def test_several_models_without_a_jury_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = str(PROJECT / "examples" / "runs")
    models = ["--model", "baseline/overlap", "--model", "baseline/length"]
    assert main(["run", "--runs", runs, *models, "--out", str(tmp_path / "out")]) == 2
    assert "several models, samples and families need a jury (--jury RULE)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_two_columns_of_one_field_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    columns = ["--column", "turn_id=a", "--column", "turn_id=b"]
    out = ["--out", str(tmp_path / "gold.jsonl")]
    assert main(["gold", "import", "csv", "grades.csv", *columns, *out]) == 2
    assert capsys.readouterr().err == "judge: --column gives turn_id twice\n"
    with pytest.raises(SystemExit):
        main(["crowd", "labels.csv", "--scale", "0-3", *columns, *out])
    assert capsys.readouterr().err.startswith("judge crowd: argument --column: turn_id is given twice\n")


def test_what_is_given_replaces_the_default_and_adds_to_what_was_given() -> None:
    parser = command_parser("run")
    parser.set_defaults(criteria=["relevance"], depth=3)
    args = parser.parse_args(
        ["--runs", "a", "b", "--criteria", "naturalness", "--runs", "c", "--criteria", "relevance"]
    )
    assert args.runs == [Path("a"), Path("b"), Path("c")]
    assert args.criteria == ["naturalness", "relevance"]
    assert args.depth == 3
    assert args.given == {"runs", "criteria"}


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
