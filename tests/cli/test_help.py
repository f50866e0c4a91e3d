"""What the command line says of itself, and one declaration for an option in Python, on the line and in a file."""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

import pytest
from pydantic import BeforeValidator, Field

from judge.cli import COMMANDS, MAIN_LINE, command_parser, main
from judge.cli.declared import FileOfOptions, declare, parsed_call
from judge.cli.helps import stored_parser
from judge.cli.parser import EXAMPLES as LISTED
from judge.cli.parser import CommandParser
from judge.cli.start import Shell
from judge.errors import UsageError
from judge.io.plan import Call, NotNegative, OneOf, Option, Options, OptionsRefused, Positive, pairs
from judge.jobs.run_inputs import Plan
from judge.jobs.tokens import LengthsPlan
from judge.judges.backends import open_model
from tests.conftest import PROJECT, complaint, on_stderr, put, refused, run_here


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
        assert main([*place.split(), "--help"]) == 0
        about = " ".join((parser.description or "").split())
        assert " ".join(capsys.readouterr().out.split()).startswith(about or "arguments:"), place
        assert 2 <= len(EXAMPLES[place]) <= 3, place
        text = parser.format_help()
        assert all(f"\n  {example}\n" in text for example in EXAMPLES[place]), place
        assert "exit codes:" in text


@pytest.mark.parametrize("width", ["60", "100", "200"])
def test_the_stored_help_is_what_the_plans_declare(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m docs.site.helps` writes it anew."""
    monkeypatch.setenv("COLUMNS", width)
    for place, parser in PLACES.items():
        command = place if place in COMMANDS else place.rpartition(" ")[0]
        stored = stored_parser(command, [*place.removeprefix(command).split(), "--help"])
        assert stored is not None and stored.format_help() == parser.format_help(), place
        assert stored.format_help(whole=True) == parser.format_help(whole=True), place


def test_a_command_of_many_options_shows_those_that_matter_and_all_when_asked(capsys) -> None:
    for place, parser in PLACES.items():
        names = [name.lstrip("-") for action in parser._actions for name in action.option_strings]
        assert len(parser.main) <= 12 and (parser.main or len(parser._actions) <= 21), place
        assert set(parser.main) <= set(names), place
        main([*place.split(), "--help", "all"])
        whole = capsys.readouterr().out
        assert all(f"--{name}" in whole for name in names if len(name) > 1 and name != "help"), place
        main([*place.split(), "--help"])
        short = capsys.readouterr().out
        assert (f"`judge {place} --help all` shows " in short) == bool(parser.main)
        assert "usage:" not in short + whole and len(short) <= len(whole) + 60


def test_the_main_options_of_a_run_stand_first_in_their_order(capsys) -> None:
    assert main(["run", "--help"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^  (?:-o(?: DIR)?, )?--([a-z-]+)", out, re.MULTILINE) == [
        *("runs", "topics", "passages", "criteria", "prompt", "model", "base-url", "column", "out", "dry-run"),
        *("limit", "max-cost", "max-file-size"),
    ]
    assert re.search(r"`judge run --help all` shows \d\d more options\.", out)


@pytest.mark.parametrize("typed", ["", "help", "--help", "-h"])
def test_judge_alone_shows_the_main_line_with_an_example_of_each(typed: str, capsys) -> None:
    assert main(typed.split()) == 0
    out, err = capsys.readouterr()
    assert err == "" and max(map(len, out.splitlines())) <= 80 and out.count("\n") <= 24
    assert [*re.findall("^  ([a-z]+)  ", out, re.MULTILINE)] == [*MAIN_LINE]
    assert [*re.findall("^ {17}(judge ([a-z]+).*)", out, re.MULTILINE)] == [
        (example, name) for name, example in zip(MAIN_LINE, LISTED["first screen"], strict=True)
    ]


@pytest.mark.parametrize("typed", ["", "help all", "run --help", "run --help all", "gold --help", "probe --help"])
def test_a_help_is_no_wider_than_the_terminal_but_for_what_is_copied(typed: str, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(typed.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 60 and not line.strip().startswith("judge ")] == []
    if typed:
        # An entry of a list goes on under its beginning.
        assert "  3  something outside failed or was interrupted; the same" in lines
        assert "     command resumes" in lines


@pytest.mark.parametrize("typed", ["help all", "--help all"])
def test_help_all_lists_every_command_and_the_exit_codes(typed: str, capsys) -> None:
    assert main(typed.split()) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert max(map(len, out.splitlines())) <= 80
    assert "exit codes:" in out and "--max-file-size" in out


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ("help run", "run --help"),
        ("help run all", "run --help all"),
        ("help gold check", "gold check --help"),
        ("help evaluate", "evaluate --help"),
        ("help evaluate qrels", "evaluate qrels --help"),
    ],
)
def test_help_of_a_command_is_that_of_the_command(asked: str, same: str, capsys) -> None:
    assert main(asked.split()) == 0
    out = capsys.readouterr().out
    assert main(same.split()) == 0
    assert capsys.readouterr().out == out != ""


def test_the_stored_help_answers_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored_parser("run", ["--help"]) is not None and stored_parser("gold", ["check", "-h"]) is not None
    for words in ([], ["--runs", "x"], ["--help", "x"], ["check", "x", "--help"], ["chek", "--help"]):
        assert stored_parser("gold", words) is None
    assert stored_parser("another", ["--help"]) is None
    # Another package may add choices, and a deleted annex takes its own away.
    points = put(tmp_path / "other-1.dist-info/entry_points.txt", "[trec_judge.plugins]\nformats.mine = mine:FORMAT\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert stored_parser("run", ["--help"]) is None
    points.unlink()
    assert stored_parser("run", ["--help"]) is not None
    monkeypatch.setattr("judge.cli.helps.is_there", lambda annex: annex != "citations")
    assert stored_parser("run", ["--help"]) is None


def test_help_needs_no_module_of_a_job() -> None:
    said = "import sys; from judge.cli import main\nmain(['run', '--help'])\n"
    said += "print(sorted({'pydantic', 'numpy', 'msgspec', 'judge.io.plan'} & sys.modules.keys()))"
    shown = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Judge every run") and shown.endswith("\n[]\n")


def test_the_examples_parse() -> None:
    listed = EXAMPLES | {"": LISTED["first screen"]}
    for place, example in ((place, example) for place, examples in listed.items() for example in examples):
        assert example.startswith(f"judge {place}")
        words = shlex.split(example)[1:]
        length = 2 if " ".join(words[:2]) in COMMANDS else 1
        PLACES[" ".join(words[:length])].parse_args(words[length:])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("runn --runs x", "judge: argument COMMAND: invalid choice: 'runn'; did you mean run? (choose from "),
        ("run --rusn x", "judge run: unrecognized arguments: --rusn; did you mean --runs?"),
        ("run --Max-cost=3 --runs x", "judge run: unrecognized arguments: --Max-cost=3; did you mean --max-cost?"),
        ("gold chek x",
            "judge gold: argument check|import|split|plan|sheet: invalid choice: 'chek'; did you mean check?"),
        ("run --runs x --criteria groundednes",
            "--criteria: invalid choice: 'groundednes'; did you mean groundedness?"),
        ("run --runs x --format cast2020", "argument --format: invalid choice: 'cast2020'; did you mean cast2022?"),
        ("validate --strcit", "judge validate: unrecognized arguments: --strcit; did you mean --strict?"),
        ("run --bogus", "judge run: unrecognized arguments: --bogus\n"),
        ("gold split a --test 1 --seed 1 --bogus", "judge gold split: unrecognized arguments: --bogus\n"),
        ("run", "judge run: the following arguments are required: --runs"),
        ("run --runs x --depth 0", "judge run: argument --depth: expected 1 or more, found '0'"),
    ],
)  # fmt: skip
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(typed: str, said: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(typed.split())
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 2
    place = err.splitlines()[0].partition(":")[0]
    assert err.splitlines()[1].startswith(f"`{place} --help all` lists the ")


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


@cache
def script(shell: str) -> str:
    return run_here("completion", shell).stdout


@pytest.mark.parametrize("shell", get_args(Shell))
def test_every_option_stands_in_the_script_of_a_shell(shell: str) -> None:
    text = script(shell)
    for place, parser in PLACES.items():
        for action in parser._actions:
            for name in action.option_strings:
                if shell == "bash":
                    options = f"_shtab_judge_{place.replace(' ', '_').replace('-', '_')}_option_strings=("
                    (line,) = [line for line in text.splitlines() if line.startswith(options)]
                    assert f" {name} " in line.replace("(", " ").replace(")", " "), place
                else:
                    assert name.lstrip("-") in text


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("judge va", {"validate"}),
        ("judge gold ", {"check", "import", "split", "plan", "sheet"}),
        ("judge run --criteria na", {"naturalness"}),
        ("judge run --runs x --max-c", {"--max-cost"}),
        ("judge gold plan --per", {"--per-run"}),
        ("judge run --runs ", set()),
        ("judge eval", {"evaluate"}),
        ("judge evaluate ", {"responses", "passages", "statements", "spans", "qrels"}),
        ("judge evaluate passages --by de", {"depth"}),
        ("judge evaluate qrels a b --off-", {"--off-scale"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "judge.bash").write_text(script("bash"), encoding="utf-8")
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
        ("calibrate --gold g --judgments j --temperature 0.5 --topics t", "--temperature: "),
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


def test_serve_alone_says_what_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    assert "  assess  a desk in the browser at which assessors label pooled" in capsys.readouterr().out


class Oven(Options, section="oven"):
    """How it is baked."""

    heat: Annotated[Positive, Option(metavar="DEGREES")] = 180
    """Degrees of the oven."""
    fan: bool = False
    """Move the air."""


class Cake(Oven, Call):
    """A cake."""

    eggs: Annotated[tuple[Path, ...], Option(metavar="EGG", place="too")]
    """Where the eggs are."""
    layers: NotNegative = 1
    """Layers of the cake."""
    glaze: Literal["none", "sugar"] = "none"
    """What is on top."""
    kind: Annotated[str | None, OneOf(["sponge", "marble"])] = None
    """Kind of the dough."""
    swaps: Annotated[dict[str, str], BeforeValidator(pairs), Option("swap", repeat=True)] = Field(default_factory=dict)
    """WHAT=OTHER: one ingredient in place of another."""
    secret: Annotated[int, Option(hidden=True)] = 0
    """Python alone knows it."""


BAKED: list[Cake] = []


def bake(cake: Cake, file: FileOfOptions) -> int:
    BAKED.append(cake)
    return 0


def parsed(*words: str) -> Cake | None:
    parser = CommandParser(prog="judge bake")
    declare(parser, {"": bake})
    BAKED.clear()
    assert parsed_call(parser, {"": bake}, words)() == 0
    return BAKED[0] if BAKED else None


def test_a_line_and_python_make_the_same_plan() -> None:
    line = parsed(
        "a", "--eggs", "b", "--layers", "3", "--heat", "200", "--fan", "--swap", "milk=oat=x", "--glaze=sugar"
    )
    python = Cake(eggs=["a", Path("b")], layers="3", glaze="sugar", swaps={"milk": "oat=x"}, heat="200", fan=True)
    assert line.with_values(argv=(), chosen={}) == python
    assert line.chosen == {
        "eggs": ["a", "b"], "layers": 3, "glaze": "sugar", "swap": ["milk=oat=x"], "heat": 200, "fan": True,
    }  # fmt: skip
    assert Cake(eggs="a").eggs == (Path("a"),)
    assert line.model_fields_set - {"argv", "chosen"} == {"eggs", "layers", "glaze", "swaps", "heat", "fan"}


@pytest.mark.parametrize("words", ["--layers 1 --layers=1", "--glaze none --glaze sugar", "--heat 1 --heat 2"])
def test_what_takes_one_value_is_refused_twice(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("a", *words.split())
    assert ": given more than once: it takes one value\n" in capsys.readouterr().err
    assert parsed("a", "--fan", "--fan").fan


@pytest.mark.parametrize(
    ("words", "values", "said"),
    [
        (["--layers", "-1"], {"layers": -1}, {"layers": "expected 0 or more, found {}"}),
        (["--layers", "two"], {"layers": "two"}, {"layers": "expected an integer, found {}"}),
        (["--kind", "spong"], {"kind": "spong"}, {"kind": "did you mean sponge? (choose from sponge, marble)"}),
        (["--glaze", "suger"], {"glaze": "suger"}, {"glaze": "did you mean sugar? (choose from none, sugar)"}),
        (["--swap", "milk"], {"swaps": ["milk"]}, {"swap": "'milk' is not FIELD=VALUE"}),
        (["--swap", "a=b", "--swap", "a=c"], {"swaps": ["a=b", "a=c"]}, {"swap": "a is given twice"}),
    ],
)
def test_a_line_and_python_refuse_the_same_values(words, values, said, capsys) -> None:
    with pytest.raises(OptionsRefused) as refused:
        Cake(eggs="a", **values)
    with pytest.raises(SystemExit, match="2"):
        parsed("a", *words)
    err = capsys.readouterr().err
    for name, reason in said.items():
        for start in reason.split("{}"):
            assert start in refused.value.reasons[name]
            assert start in err
        assert f"judge bake: argument --{name}: " in err


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--eggs", "a", "--layers", "x", "--heat", "0")
    assert capsys.readouterr().err.splitlines()[0] == (
        "judge bake: argument --heat: expected 1 or more, found '0'; argument --layers: expected an integer, found 'x'"
    )
    with pytest.raises(OptionsRefused) as refused:
        Cake(layrs=2)
    assert refused.value.reasons == {"eggs": "a value is required", "layrs": "no such option; did you mean layers?"}
    with pytest.raises(OptionsRefused, match=r"fan: expected true or false, found 1"):
        Oven(fan=1)
    with pytest.raises(OptionsRefused, match="layers: expected a text or a number, found true"):
        Cake(eggs="a", layers=True)


def test_an_option_that_python_calls_otherwise_is_named_as_python_does():
    with pytest.raises(OptionsRefused, match="column: no such option; did you mean columns"):
        Plan(runs="runs", column={"answer": "reply"})


def test_the_line_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    file = put(tmp_path / "j.toml", 'eggs = ["a", "b"]\nlayers = 3\nfan = true\nheat = 90\n')
    plan = parsed("--config", str(file), "--layers", "2", "--eggs", "c")
    assert (plan.eggs, plan.layers, plan.heat, plan.fan) == ((Path("c"),), 2, 90, True)


def test_a_file_of_options_is_refused_with_lines(tmp_path: Path) -> None:
    file = put(tmp_path / "j.toml", 'eggs = "a"\nlayers = true\n\nfan = 1\nheat = [1, 2]\nglaze = "suger"\n')
    assert [(problem.path, problem.message) for problem in refused(parsed, "--config", str(file))] == [
        ("line 2", "layers: expected a text or a number, found true"),
        ("line 4", "fan: expected true or false, found 1"),
        ("line 5", "heat: expected an integer, found a list with 2 entries"),
        ("line 6", "glaze: invalid choice: 'suger'; did you mean sugar? (choose from none, sugar)"),
    ]
    file.write_text("egs = 1\nconfig = 'x'\nsecret = 2\n", encoding="utf-8")
    assert [problem.message for problem in refused(parsed, "--config", str(file))] == [
        "judge bake has no option 'egs'; did you mean eggs?",
        "judge bake has no option 'config'",
        "judge bake has no option 'secret'",
    ]


def test_options_without_effect_are_refused_by_the_names_of_the_line() -> None:
    with pytest.raises(UsageError, match=r"--heat, --swap: without effect here: nothing is baked"):
        Cake(eggs="a", swaps=["a=b"], heat=3).refuse_unused(["heat", "swaps", "layers"], "nothing is baked")
    Cake(eggs="a").refuse_unused(["heat", "swaps"], "nothing is baked")


def test_help_says_what_each_field_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = capsys.readouterr().out
    assert "--heat DEGREES        degrees of the oven (default 180)" in text
    assert "secret" not in text
    assert "depth: Responses per turn and run, by rank." in (LengthsPlan.__doc__ or "")
