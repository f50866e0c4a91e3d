"""The labels of CONE-RAG's human study, by which people matched nuggets with responses."""

import re
from pathlib import Path
from typing import NamedTuple

from judge.errors import InputError
from judge.io.cells import count
from judge.io.line_stream import line_problem, numbered_lines
from judge.io.safe import shown
from judge.io.stored import MAX_PROBLEMS, stopped
from judge.records import Problem

STUDY_LINE = re.compile(r"([0-9]+)_([0-9]+_[0-9]+)_([0-9]+)_([^\t_]\S*)\t+([01])")
"""The task, the turn, the nugget and the run, then the label."""


class NuggetMatch(NamedTuple):
    """Whether the response of a run holds a nugget of a turn."""

    task: str
    turn_id: str
    nugget: int
    run_id: str
    yes: bool


def read_study(path: Path) -> tuple[NuggetMatch, ...]:
    """The labels in the order of the file.

    Raises:
        InputError: The file cannot be read, a line is no label, or an id is given twice; every problem is listed.
    """
    matches: list[NuggetMatch] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if len(problems) == MAX_PROBLEMS:
            problems.append(stopped(str(path), number))
            break
        parts = STUDY_LINE.fullmatch(line)
        if parts is None:
            message = f"{shown(line)}: expected hit_topic_turn_nugget_run, a tab and 0 or 1"
            problems.append(line_problem("not_a_match", path, number, message))
            continue
        match = NuggetMatch(parts[1], parts[2], int(parts[3]), parts[4], parts[5] == "1")
        # The same pair in another task is another person's label of it.
        label_id = line.split("\t", 1)[0]
        first = lines.setdefault(label_id, number)
        if first != number:
            message = f"{shown(label_id)} is already on line {first}"
            problems.append(line_problem("duplicate_row", path, number, message))
        matches.append(match)
    if problems:
        raise InputError(f"{path}: not usable as matches: {count(len(problems), 'line')} with problems", problems)
    return tuple(matches)
