"""The stored help of every command, as `judge/cli/helps.jsonl` has it.

    python -m docs.site.helps

Writes the file anew; a test fails where it is not what the plans of the commands declare.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.cli import COMMANDS, command_parser
from judge.cli.helps import STORED
from judge.cli.parser import CommandParser


def stored_lines() -> Iterator[str]:
    """A line for each command."""
    for command in COMMANDS:
        yield json.dumps([command, _row(command_parser(command))], ensure_ascii=False) + "\n"


def _row(parser: CommandParser, about: str | None = None) -> dict[str, Any]:
    titles: dict[str, str] = {}
    for group in parser._action_groups:
        for action in group._group_actions:
            titles[action.dest] = str(group.title)
    arguments: list[tuple[str, list[str], dict[str, Any]]] = []
    actions: dict[str, Any] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            actions = {name: _row(below, helps[name]) for name, below in action.choices.items()}
        elif action.dest != "help":
            # argparse itself gives arguments by place a heading.
            title = titles[action.dest].replace("arguments", "options")
            arguments.append((title, *_argument(action)))
    return {
        "prog": parser.prog,
        "description": parser.description,
        "examples": re.findall("^  (judge .*)", (parser.epilog or "").partition("\n\n")[0], re.MULTILINE),
        "help": about,
        "main": parser.main,
        "arguments": arguments,
        "actions": actions,
    }


def _argument(action: argparse.Action) -> tuple[list[str], dict[str, Any]]:
    """The names of an argument, and what its help shows."""
    settings: dict[str, Any] = {"help": action.help}
    if isinstance(action, argparse._StoreTrueAction):
        settings["action"] = "store_true"
    else:
        settings |= {"metavar": action.metavar, "nargs": action.nargs}
        settings["choices"] = None if action.choices is None else list(action.choices)
    if action.option_strings:
        settings |= {"dest": action.dest, "required": action.required or None}
    shown = {name: value for name, value in settings.items() if value is not None}
    return list(action.option_strings) or [action.dest], shown


if __name__ == "__main__":
    Path(STORED).write_text("".join(stored_lines()), encoding="utf-8")
