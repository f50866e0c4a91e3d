"""What one gives a new machine first: a check of it and of judges, and commands completed in a shell."""

import argparse
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import shtab
from pydantic import Field

from judge.cli import COMMANDS as SUMMARIES
from judge.cli import command_parser
from judge.cli.declared import JsonOutput
from judge.cli.printing import columns, print_json, progress, styled
from judge.io.plan import Option
from judge.io.text import fold, printable
from judge.jobs.doctor import CheckFinding, DoctorPlan, examine
from judge.judges.credentials import redact

_HEAD = 21
"""Columns of the state and the name of a check."""


def doctor(plan: DoctorPlan, output: JsonOutput) -> int:
    """Check this machine and some judges before a run: a line for each check says ok, warning or fails.

    Without --model, nothing is sent. With it, each judge that runs elsewhere is asked for its list of models, which is
    free, and three or four small questions, which its provider bills: about 1,500 tokens each. Keys are named and never
    shown. Exit code 1 if something fails.
    """
    with progress("checking") as steps:
        findings = examine(plan, steps)
    if output.as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    return int(any(finding.state == "fails" for finding in findings))


def _print_findings(findings: Sequence[CheckFinding]) -> None:
    about: str | None = None
    for finding in findings:
        if finding.model != about:
            about = finding.model
            print(f"\n{printable(redact(about or ''))}")
        advice = f" -> {finding.advice}" if finding.advice else ""
        first, *rest = fold(printable(redact(finding.found + advice)), columns() - _HEAD, "")
        state = f"{finding.state:<9}"
        if finding.state != "ok":
            state = styled(state, "error" if finding.state == "fails" else "warning", sys.stdout)
        print(f"{state}{finding.check:<{_HEAD - 9}}{first}")
        for line in rest:
            print(" " * _HEAD + line)


Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Annotated[Shell, Field(description="The shell."), Option(metavar="SHELL", place="only")]) -> int:
    """Print a script that completes commands, options and choices in a shell.

    bash: put `eval "$(judge completion bash)"` into ~/.bashrc. zsh: the same with zsh into ~/.zshrc, after compinit.
    fish: `judge completion fish > ~/.config/fish/completions/judge.fish`. The script is made once and starts no
    process; print it anew after an upgrade.
    """
    print(shtab.complete(_whole_parser(), shell=shell))
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


COMMANDS = {"doctor": doctor, "completion": completion}
