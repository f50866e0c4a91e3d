"""The model family behind a run or a judge, and the team behind a run, from files of the user."""

from pathlib import Path

from judge.errors import InputError
from judge.io.files import StrPath, line_problem, numbered, numbered_lines, read_stored
from judge.io.text import printable, shown
from judge.records import Problem


def read_families(path: StrPath) -> dict[str, str]:
    """The family of models behind each run or judge, from lines `name<TAB>family`."""
    try:
        text = read_stored(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason}") from error
    families: dict[str, str] = {}
    for number, line in numbered(text, str(path)):
        name, tab, family = line.rstrip("\r").partition("\t")
        if not line.strip():
            continue
        if not (tab and name and family) or "\t" in family or families.get(name, family) != family:
            raise InputError(f"{path}: line {number}: expected a run or judge, one tab and its family, each name once")
        families[name] = family
    return families


def read_teams(path: Path) -> dict[str, str]:
    """The team of each run id, from lines `run_id<TAB>team`; a first line with these two words is a header."""
    teams: dict[str, str] = {}
    problems: list[Problem] = []
    for place, (number, line) in enumerate(numbered_lines(path)):
        run_id, _, team = (part.strip() for part in line.partition("\t"))
        if place == 0 and (run_id, team) == ("run_id", "team"):
            continue
        if not (run_id and team) or "\t" in team:
            message = f"{shown(line)}: expected a run id, one tab, and a team"
            problems.append(line_problem("wrong_columns", path, number, message))
        elif teams.setdefault(run_id, team) != team:
            message = f"run {printable(run_id)} is of {printable(team)} here, of {printable(teams[run_id])} before"
            problems.append(line_problem("several_teams", path, number, message))
    if problems:
        raise InputError(f"{path}: not usable as a file of teams", problems)
    return teams
