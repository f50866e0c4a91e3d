"""The help of commands without the modules behind them, whose import takes many times as long as showing it.

`helps.jsonl` has the parser of each command on a line, as `python -m docs.site.helps` wrote it; a test holds that every
help is the one that the plans declare.
"""

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from judge.cli.parser import CommandParser
from judge.plugins import ANNEXES, has_foreign, is_there

STORED = os.path.join(os.path.dirname(__file__), "helps.jsonl")  # noqa: PTH118, PTH120 - pathlib slows down `judge --help`
HELP_WORDS = ("-h", "--help")


def stored_parser(command: str, words: Sequence[str]) -> CommandParser | None:
    """The parser that shows the help of a command or of its action; None where the words ask for anything else.

    None too where an annex is missing or another package adds to the tables of the core, since both change choices.
    """
    before = words[:-1] if words[-1:] == ["all"] else words
    if len(before) not in (1, 2) or before[-1] not in HELP_WORDS:
        return None
    if not all(map(is_there, ANNEXES)) or has_foreign():
        return None
    with open(STORED, encoding="utf-8") as file:  # noqa: PTH123 - likewise
        beginning = f"[{json.dumps(command)}, "
        line = next((line for line in file if line.startswith(beginning)), None)
    if line is None:
        return None
    row = json.loads(line)[1]
    return parser_of(row, before[:-1])


def parser_of(row: dict[str, Any], action: Sequence[str] = ()) -> CommandParser | None:
    """The parser of a row, or that of its action; None if it has no such action."""
    if action:
        of_action = row["actions"].get(action[0])
        return None if of_action is None else parser_of(of_action)
    parser = CommandParser(prog=row["prog"], description=row["description"], examples=row["examples"])
    parser.main = row["main"]
    containers: dict[str, argparse._ActionsContainer] = {"options": parser}
    for title, names, settings in row["arguments"]:
        if title not in containers:
            containers[title] = parser.add_argument_group(title)
        containers[title].add_argument(*names, **settings)
    if row["actions"]:
        actions = parser.add_actions(row["actions"])
        for name, of_action in row["actions"].items():
            actions.add_parser(name, help=of_action["help"])
    return parser
