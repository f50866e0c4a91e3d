"""The files that say what is pooled: lists of turns and of runs, teams, passage qrels."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from judge.errors import InputError, UsageError
from judge.files import read_stored, unpack
from judge.ids import natural_key
from judge.records import Problem
from judge.selection import PassageRelevance
from judge.text import printable, printable_id, shown
from judge.trec import parse_qrels


def own_turn_id(written: str) -> str:
    """A turn id as topics and runs write it; older copies of the qrels have `9-1-3` for `9-1_3` and `0-8` for `0_8`.

    >>> own_turn_id("9-1-3"), own_turn_id("9-1_3"), own_turn_id("132_1-3")
    ('9-1_3', '9-1_3', '132_1-3')
    """
    if "_" in written:
        return written
    topic, hyphen, number = written.rpartition("-")
    return f"{topic}_{number}" if hyphen else written


def read_turns(path: Path, known: Collection[str] | None = None) -> frozenset[str]:
    """The turn ids of a file with one a line, in either spelling.

    Args:
        path: The file; blank lines are passed over.
        known: The turns that there are, if an id that is none of them is an error.

    Raises:
        InputError: The file cannot be read, holds no id or an unknown one.
    """
    return _listed(path, ((number, own_turn_id(line)) for number, line in _lines(path)), "turn", known)


def read_run_ids(path: Path, known: Collection[str]) -> frozenset[str]:
    """The run ids of a file with one a line.

    Raises:
        InputError: The file cannot be read, holds no id or one that no run has.
    """
    return _listed(path, _lines(path), "run", known)


def read_teams(path: Path) -> dict[str, str]:
    """Teams by run id, from lines `run_id<TAB>team`; a first line that says just that is a header.

    Raises:
        InputError: The file cannot be read, a line has no two columns, or a run has two teams.
    """
    teams: dict[str, str] = {}
    problems: list[Problem] = []
    for place, (number, line) in enumerate(_lines(path)):
        run_id, _, team = (part.strip() for part in line.partition("\t"))
        if place == 0 and (run_id, team) == ("run_id", "team"):
            continue
        if not (run_id and team) or "\t" in team:
            message = f"{shown(line)}: expected a run id, one tab, and a team"
            problems.append(_problem("wrong_columns", path, number, message))
        elif teams.setdefault(run_id, team) != team:
            message = f"run {printable(run_id)} is of {printable(team)} here, of {printable(teams[run_id])} before"
            problems.append(_problem("several_teams", path, number, message))
    if problems:
        raise InputError(f"{path}: not usable as a file of teams", problems)
    return teams


def teams_of(own: Mapping[str, str | None], given: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """The team of each run: the one given, else the one that the run itself names, else None."""
    given = given or {}
    return {run_id: given.get(run_id) or team for run_id, team in own.items()}


def read_relevance(
    path: Path, *, minimum: int = 1, max_rank: int | None = None, known: Collection[str] | None = None
) -> PassageRelevance:
    """Passage qrels as a condition on responses; turn ids in either spelling.

    Args:
        path: A qrels file, plain or gzip.
        minimum: The lowest grade that counts as relevant.
        max_rank: As of `PassageRelevance`.
        known: The turns that there are; qrels that judge none of them are refused. Further turns are no error.

    Raises:
        InputError: The file is not usable as qrels, grades a passage twice, or judges none of the turns.
        UsageError: No grade of the file reaches the minimum.
    """
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    twice: list[Problem] = []
    for row in parse_qrels(_text(path), str(path)):
        turn_id = own_turn_id(row.turn_id)
        if row.item_id in grades[turn_id]:
            message = f"{printable(turn_id)} {printable(row.item_id)} is graded under two spellings of the turn"
            twice.append(Problem("duplicate_row", "error", str(path), printable_id(turn_id), "$", message))
        grades[turn_id][row.item_id] = row.grade
    if twice:
        raise InputError(f"{path}: not usable as qrels: {len(twice)} passages graded twice", twice)
    if not grades or (known is not None and grades.keys().isdisjoint(known)):
        raise InputError(f"{path}: judges no passage of any of the turns: qrels of another collection?")
    highest = max(grade for rows in grades.values() for grade in rows.values())
    if highest < minimum:
        raise UsageError(f"{path}: no passage has grade {minimum} or more; the highest is {highest}")
    return PassageRelevance(grades=dict(grades), minimum=minimum, max_rank=max_rank)


def _listed(path: Path, ids: Iterable[tuple[int, str]], kind: str, known: Collection[str] | None) -> frozenset[str]:
    """The ids of a list, each of them known."""
    found = {one: number for number, one in reversed(list(ids))}
    if not found:
        raise InputError(f"{path}: holds no {kind} id: expected one a line")
    unknown = sorted(found.keys() - set(known), key=natural_key) if known is not None else []
    if unknown:
        problems = [
            _problem(f"unknown_{kind}", path, found[one], f"{shown(one)}: expected the id of a {kind} that is here")
            for one in unknown
        ]
        raise InputError(f"{path}: {len(unknown)} of {len(found)} {kind} ids are unknown", problems)
    return frozenset(found)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of every line that is not blank."""
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if stripped := line.strip(" \t\r"):
            yield number, stripped


def _text(path: Path) -> str:
    try:
        return unpack(read_stored(path), str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def _problem(code: str, path: Path, number: int, message: str) -> Problem:
    return Problem(code, "error", str(path), None, f"line {number}", message)
