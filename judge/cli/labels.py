"""Options that say how a table of people's labels is read; several commands take such tables."""

import argparse
from pathlib import Path

from judge.cli.options import graded_text
from judge.crowd.layout import TASK
from judge.crowd.tables import KINDS


def add_label_arguments(group: argparse._ActionsContainer, only: str = "") -> None:
    """Declare --label, --table, --task, --wide and --wide-map.

    Args:
        group: What takes the options.
        only: What stands before the help of options that hold for some of the command's tables, such as `crowd: `.
    """
    group.add_argument(
        "--label",
        action="append",
        default=[],
        type=graded_text,
        metavar="TEXT=GRADE",
        help="the grade that a text stands for (repeatable), beside the names of the levels in the criterion's prompt",
    )
    group.add_argument("--table", choices=KINDS, help=f"{only}what the tables are (default: seen from their columns)")
    group.add_argument(
        "--task",
        default=TASK,
        metavar="PATTERN",
        help=f"{only}groups turn_id and response_id in a task (default TURN/ID)",
    )
    wide = group.add_mutually_exclusive_group()
    wide.add_argument(
        "--wide",
        metavar="PATTERN",
        help=f"{only}survey with a row per participant: groups turn_id, response_id, criterion in the names of its "
        "columns",
    )
    wide.add_argument(
        "--wide-map",
        type=Path,
        metavar="FILE",
        help=f"{only}in place of --wide, a table with columns column, turn_id, response_id, criterion",
    )
