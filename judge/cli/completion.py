"""Completion of commands and options in a shell."""

import argparse
from typing import Annotated, Literal, get_args

import shtab

from judge.cli import COMMANDS as SUMMARIES
from judge.cli import command_parser
from judge.io.plan import Option, Options

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[str, ...] = get_args(Shell)


class CompletionPlan(Options):
    """Everything `judge completion` can be told."""

    shell: Annotated[Shell, Option(metavar="SHELL", place="only")]
    """The shell."""


def completion(plan: CompletionPlan) -> int:
    """Print a script that completes commands, options and choices in a shell.

    bash: put `eval "$(judge completion bash)"` into ~/.bashrc. zsh: the same with zsh into ~/.zshrc, after compinit.
    fish: `judge completion fish > ~/.config/fish/completions/judge.fish`. The script is made once and starts no
    process; print it anew after an upgrade.
    """
    print(shtab.complete(_whole_parser(), shell=plan.shell))
    return 0


def _whole_parser() -> argparse.ArgumentParser:
    """The parsers of all commands in one; a command of two words is an action of its first word."""
    whole = argparse.ArgumentParser(prog="judge")
    below = {"": whole.add_subparsers()}
    for name, summary in SUMMARIES.items():
        group, _, word = name.rpartition(" ")
        if group not in below:
            parsers = below[""].choices
            parser = parsers[group] if group in parsers else below[""].add_parser(group, help=f"{group} …")
            below[group] = parser.add_subparsers()
        below[group].add_parser(word, help=summary, parents=[command_parser(name)], add_help=False)
    return whole


COMMANDS = {"completion": completion}
