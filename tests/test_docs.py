"""What the documents say about the command line is true."""

import argparse
import ast
import functools
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import judge
from judge.cli import COMMANDS, GENERAL, ROOMS, command_module, command_parser, main
from judge.cli.demo import write_example
from tests.conftest import PROJECT
from tests.desk.visiting import label_at_once
from tests.test_walls import DOORS

DOCUMENTS = [
    path.relative_to(PROJECT).as_posix()
    for folder in (".", "docs", "examples", "gold")
    for path in sorted((PROJECT / folder).glob("*.md"))
]


@functools.cache
def options_of(command: str) -> set[str]:
    parser = argparse.ArgumentParser()
    command_module(command).add_arguments(parser)
    names = {name for action in parser._actions for name in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            names |= {name for sub in action.choices.values() for one in sub._actions for name in one.option_strings}
    return names


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_and_option_in_a_document_exists(document: str) -> None:
    text = (PROJECT / document).read_text(encoding="utf-8")
    for command, rest in re.findall(
        r"^[ `]*(?:\.venv/bin/)?judge (crowd cast-regin|(?:evaluate|serve) [a-z-]+|[a-z]+)([^\n`|]*)",
        text,
        re.MULTILINE,
    ):
        assert command in COMMANDS, f"judge {command}"
        for option in re.findall(r"(?<![\w-])--[a-z-]+", rest):
            assert option in options_of(command) | {"--help"}, f"judge {command} {option}"
    run_options = options_of("run")
    for option in re.findall(r"`(--[a-z-]+)", text):
        known = run_options.union(*(options_of(command) for command in COMMANDS))
        assert option in known | {"--help", "--group", *re.findall(r"--[a-z-]+", GENERAL)}, option


COMMAND = re.compile(r"^(?:\.venv/bin/)?judge ([^&\n]+)", re.MULTILINE)
OUTPUTS = {"out", "report_dir", "store"}
"""Options that name what is written; any other path is read."""


def blocks(document: str) -> list[tuple[str, str]]:
    """The fenced blocks of a document with a language: the language and the text."""
    text = (PROJECT / document).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def parsed(command: str) -> argparse.Namespace:
    """What the command line makes of a line of a document; it must take the line as it stands."""
    words = shlex.split(command, comments=True)
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name = " ".join(words[:length])
    return command_parser(name).parse_args(words[length:])


def can_run(args: argparse.Namespace) -> bool:
    """Whether a command can be carried out beside the example: its inputs are there, and it fetches and asks nobody."""
    values = {name: value if isinstance(value, list) else [value] for name, value in vars(args).items()}
    inputs = [path for name in values.keys() - OUTPUTS for path in values[name] if isinstance(path, Path)]
    models = values.get("model", [])
    if not inputs or not set(models) <= {"baseline/overlap"} or ("limit" in values and not models):
        return False
    there = [path.exists() for path in inputs]
    assert all(there) or not any(there), f"some inputs are not there: {inputs}"
    return all(there)


@pytest.mark.slow
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if blocks(name)])
def test_the_blocks_of_a_document_run_in_order(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `judge` line is parsed, and carried out where its inputs are there; each block of Python is carried out."""
    for name in ("forest", "confusion_maps"):
        # Drawing takes most of a calibration's time and is tested elsewhere.
        monkeypatch.setattr(f"judge.calibrate.report.folder.{name}", lambda *drawn: (b"", b""))
    label_at_once(monkeypatch)
    # Nobody visits the review desk of a page.
    monkeypatch.setattr("judge.desk.review.serve.serve_desk", lambda app, listener, ready: ready())
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for language, text in blocks(document):
        if language == "python":
            exec(compile(text, document, "exec"), namespace)
        for command in COMMAND.findall(text):
            if can_run(parsed(command)):
                assert main(shlex.split(command, comments=True)) in (0, 1), command


def test_the_flow_in_the_package_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROJECT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    flow = "".join(re.findall(r"^    .*\n", judge.__doc__ or "", re.MULTILINE))
    namespace: dict[str, object] = {name: getattr(judge, name) for name in judge.__all__}
    exec(textwrap.dedent(flow), namespace)
    assert isinstance(namespace["rows"], judge.Table)
    assert {row.run_id for row in namespace["rows"]} >= {"harbor-grounded", "mill-fluent-invented"}


@pytest.mark.parametrize("room", DOORS)
def test_the_readme_shows_the_rooms_in_their_own_words(room: str) -> None:
    path = PROJECT / "judge" / room
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    first = " ".join((ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].split()).removesuffix(" Pure.")
    assert first.startswith(f"{room.capitalize()}: ")
    what = first.partition(": ")[2].removesuffix(".")
    row = f"| `{room}` | {what} | {', '.join(f'`{command}`' for command in ROOMS.get(room, ()))} |"
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    rows = [
        line.split("`")[1] for line in readme.splitlines() if line.startswith("| `") and line.split("`")[1] in DOORS
    ]
    assert row in readme.splitlines() and rows == DOORS


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_exit_codes(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "judge", *command.split(), "--help"], capture_output=True, text=True, check=True
    )
    assert "exit codes:" in done.stdout
    assert done.stdout.startswith(f"usage: judge {command}")


def test_the_public_names_are_sorted_and_load() -> None:
    assert judge.__all__ == sorted(judge.__all__)
    for name in judge.__all__:
        assert getattr(judge, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = judge.absent


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [[], ["absent"], ["run"], ["run", "--absent"], ["run", "--runs", "x", "--depth", "0"]]
)
def test_wrong_usage_ends_with_2_and_two_lines(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "judge", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 2
    assert "--help` lists the " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    pipe = f"{sys.executable} -m judge prompts show groundedness/graded | true"
    process = subprocess.run(pipe, shell=True, capture_output=True, text=True, check=False)
    assert process.stderr == ""
