"""What the command line says of itself: examples that parse, hints for mistyped names, completion, refusals."""

import argparse
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from judge.cli import COMMANDS, command_parser, main
from judge.cli.parser import CommandParser
from judge.cli.start import Shell
from judge.errors import UsageError
from judge.judges.backends import open_model
from tests.conftest import PROJECT, complaint, on_stderr, printed


def parsers(command: str) -> Iterator[CommandParser]:
    pending: list[argparse.ArgumentParser] = [command_parser(command)]
    while pending:
        parser = pending.pop()
        assert isinstance(parser, CommandParser), parser.prog
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                pending += action.choices.values()


PLACES = {parser.prog.removeprefix("judge "): parser for command in COMMANDS for parser in parsers(command)}
EXAMPLES = {
    place: re.findall("^  (judge .*)", (parser.epilog or "").partition("\n\n")[0], re.MULTILINE)
    for place, parser in PLACES.items()
}


def test_every_command_and_action_has_help_with_exit_codes_and_two_or_three_examples(capsys) -> None:
    for place, parser in PLACES.items():
        with pytest.raises(SystemExit, match="0"):
            main([*place.split(), "--help"])
        assert capsys.readouterr().out.startswith(f"usage: judge {place}")
        assert 2 <= len(EXAMPLES[place]) <= 3, place
        text = parser.format_help()
        assert all(f"\n  {example}\n" in text for example in EXAMPLES[place]), place
        assert "exit codes:" in text


def test_the_examples_parse() -> None:
    for place, example in ((place, example) for place, examples in EXAMPLES.items() for example in examples):
        assert example.startswith(f"judge {place}")
        words = shlex.split(example)[1:]
        length = 2 if " ".join(words[:2]) in COMMANDS else 1
        command_parser(" ".join(words[:length])).parse_args(words[length:])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("runn --runs x", "judge: argument COMMAND: invalid choice: 'runn'; did you mean run? (choose from "),
        ("run --rusn x", "judge run: unrecognized arguments: --rusn; did you mean --runs?"),
        ("run --Max-cost=3 --runs x", "judge run: unrecognized arguments: --Max-cost=3; did you mean --max-cost?"),
        (
            "gold chek x",
            "judge gold: argument check|import|split|plan|sheet: invalid choice: 'chek'; did you mean check?",
        ),
        (
            "run --runs x --criteria groundednes",
            "--criteria: invalid choice: 'groundednes'; did you mean groundedness?",
        ),
        ("run --runs x --format cast2020", "argument --format: invalid choice: 'cast2020'; did you mean cast2022?"),
        ("validate --strcit", "judge validate: unrecognized arguments: --strcit; did you mean --strict?"),
        ("run --bogus", "judge run: unrecognized arguments: --bogus\n"),
        ("gold split a --test 1 --seed 1 --bogus", "judge gold split: unrecognized arguments: --bogus\n"),
        ("", "judge: the following arguments are required: COMMAND"),
        ("run", "judge run: the following arguments are required: --runs"),
        ("run --runs x --depth 0", "judge run: argument --depth: expected 1 or more, found '0'"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(typed: str, said: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(typed.split())
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 2
    place = err.splitlines()[0].partition(":")[0]
    assert err.splitlines()[1].startswith(f"`{place} --help` lists the ")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        # A provider of litellm might have the name, so litellm is loaded.
        pytest.param("openia/gpt-4.1-mini", "; did you mean openai?", marks=pytest.mark.long),
        ("baseline/overlp", "; did you mean overlap?"),
        ("local/qwen2.5", "; did you mean qwen2.5-1.5b?"),
        ("qwen2.5-1.5b", "; did you mean local/qwen2.5-1.5b?"),
    ],
)
def test_a_mistyped_model_is_answered_with_the_one_that_was_meant(name: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_model(name)
    assert said in str(refused.value)


def test_a_mistyped_prompt_is_answered_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", "show", "groundedness/garded"]) == 2
    assert "no prompt called 'groundedness/garded'; did you mean groundedness/graded?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ("groundedness", ""),
        ("groundednes", "my.md: warning: the criterion groundednes is close to groundedness, which comes with judge; "),
        ("backing", "my.md: the criterion backing is new: none of attentiveness, "),
    ],
)
def test_a_criterion_that_nobody_else_has_is_said(criterion: str, said: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    Path("my.md").write_text(text.replace('"groundedness"', f'"{criterion}"', 1), encoding="utf-8")
    assert main(["prompts", "check", "my.md"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"my.md: good: {criterion}/my")
    assert err.startswith(said) and bool(err) == bool(said)


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    return printed(capsys, main(["completion", shell]))


@pytest.mark.parametrize("shell", get_args(Shell))
def test_every_option_stands_in_the_script_of_a_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for place, parser in PLACES.items():
        for action in parser._actions:
            for name in action.option_strings:
                if shell == "bash":
                    options = f"_shtab_judge_{place.replace(' ', '_').replace('-', '_')}_option_strings=("
                    (line,) = [line for line in text.splitlines() if line.startswith(options)]
                    assert f" {name} " in line.replace("(", " ").replace(")", " "), place
                else:
                    assert name.lstrip("-") in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("judge va", {"validate"}),
        ("judge gold ", {"check", "import", "split", "plan", "sheet"}),
        ("judge run --criteria na", {"naturalness"}),
        ("judge run --runs x --max-c", {"--max-cost"}),
        ("judge gold plan --per", {"--per-run"}),
        ("judge crowd cast-regin x --eval", {"--evaluate"}),
        ("judge run --runs ", set()),
        ("judge eval", {"evaluate"}),
        ("judge evaluate ", {"responses", "passages", "statements", "spans", "wording", "qrels"}),
        ("judge evaluate passages --by de", {"depth"}),
        ("judge evaluate qrels a b --off-", {"--off-scale"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "judge.bash").write_text(script("bash", capsys), encoding="utf-8")
    words = typed.split(" ")
    asked = (
        f"source {tmp_path}/judge.bash; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; "
        f'_shtab_judge judge {shlex.quote(words[-1])}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered


def test_a_parser_without_examples_ends_with_the_exit_codes() -> None:
    parser = CommandParser(prog="judge x")
    assert isinstance(parser, argparse.ArgumentParser)
    assert "examples:" not in parser.format_help()


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
        ("demo --model baseline/overlap", "--model: "),
    ],
)
def test_an_option_without_effect_is_refused(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, main(typed.split())).startswith(f"judge: {said}without effect here: ")


def test_too_little_memory_is_a_failure_outside_and_no_traceback(monkeypatch, capsys) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("judge.cli.functions_of", full)
    assert on_stderr(capsys, main(["tokens", "runs"]), 3) == (
        "judge: not enough memory; a smaller --max-file-size refuses large files before they are read\n"
    )


def test_serve_alone_lists_the_desks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    assert "  assess  a desk in the browser at which assessors label pooled responses, blind" in capsys.readouterr().out
