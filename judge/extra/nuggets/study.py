"""CONE-RAG's human study: whether people found a nugget in a response."""

import re
from pathlib import Path

from judge.errors import refuse
from judge.extra.nuggets import MatchedNugget
from judge.io.files import line_problem, numbered_lines, too_many
from judge.io.text import count, shown
from judge.records import Problem

STUDY_LINE = re.compile(r"([0-9]+)_([0-9]+_[0-9]+)_([0-9]+)_([^\t_]\S*)\t+([01])")
"""The task, the turn, the nugget and the run, then the label."""


def read_study(path: Path) -> tuple[MatchedNugget, ...]:
    """The labels in the order of the file.

    An InputError if the file cannot be read, a line is no label, or an id is given twice; every problem is listed.
    """
    matches: list[MatchedNugget] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if too_many(problems, str(path), number):
            break
        parts = STUDY_LINE.fullmatch(line)
        if parts is None:
            message = f"{shown(line)}: expected hit_topic_turn_nugget_run, a tab and 0 or 1"
            problems.append(line_problem("not_a_match", path, number, message))
            continue
        label_id = line.split("\t", 1)[0]
        first = lines.setdefault(label_id, number)
        if first != number:
            message = f"{shown(label_id)} is already on line {first}"
            problems.append(line_problem("duplicate_row", path, number, message))
        task, turn_id, nugget, run_id, found = parts.groups()
        matches.append(
            MatchedNugget(
                turn_id=turn_id,
                nugget_id=f"{turn_id}/{int(nugget)}",
                label="supports" if found == "1" else "does_not",
                run_id=run_id,
                # The same pair in another task is another person's label of it.
                assessor=f"task {task}",
            )
        )
    refuse(problems, f"{path}: not usable as matches: {count(len(problems), 'line')} with problems")
    return tuple(matches)
