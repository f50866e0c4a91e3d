"""One declaration for an option: Python, the command line and a file of options take and refuse the same values."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BeforeValidator, Field

from judge.cli.declared import FileOfOptions, declare, parsed_call
from judge.cli.parser import CommandParser
from judge.errors import UsageError
from judge.io.plan import Call, NotNegative, OneOf, Option, Options, OptionsRefused, Positive, pairs
from judge.jobs.tokens import LengthsPlan
from tests.conftest import put, refused


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
