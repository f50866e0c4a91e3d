"""What the documents say about the command line is true."""

import argparse
import functools
import importlib
import re
import subprocess
import sys

import pytest

import judge
from judge.cli import COMMANDS
from tests.conftest import PROJECT

DOCUMENTS = [
    path.relative_to(PROJECT).as_posix()
    for folder in (".", "docs", "examples", "gold")
    for path in sorted((PROJECT / folder).glob("*.md"))
]


@functools.cache
def options_of(command: str) -> set[str]:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"judge.cli.{command}").add_arguments(parser)
    names = {name for action in parser._actions for name in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            names |= {name for sub in action.choices.values() for one in sub._actions for name in one.option_strings}
    return names


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_and_option_in_a_document_exists(document: str) -> None:
    text = (PROJECT / document).read_text(encoding="utf-8")
    for command, rest in re.findall(r"^[ `]*(?:\.venv/bin/)?judge ([a-z]+)([^\n`|]*)", text, re.MULTILINE):
        assert command in COMMANDS, f"judge {command}"
        for option in re.findall(r"(?<![\w-])--[a-z-]+", rest):
            assert option in options_of(command) | {"--help"}, f"judge {command} {option}"
    run_options = options_of("run")
    for option in re.findall(r"`(--[a-z-]+)", text):
        known = run_options.union(*(options_of(command) for command in COMMANDS))
        assert option in known | {"--help", "--group"}, option


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_exit_codes(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "judge", command, "--help"], capture_output=True, text=True, check=True
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
def test_wrong_usage_ends_with_2_and_the_usage(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "judge", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: judge" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    pipe = f"{sys.executable} -m judge prompts show groundedness/graded | true"
    process = subprocess.run(pipe, shell=True, capture_output=True, text=True, check=False)
    assert process.stderr == ""
