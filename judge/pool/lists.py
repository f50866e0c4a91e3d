"""The files of users about runs: lists of turns and of runs, passage qrels, ratings, teams and families."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import permutations
from pathlib import Path

from judge.errors import InputError, UsageError, refuse
from judge.io.files import StrPath, line_problem, numbered, numbered_lines, text_of
from judge.io.ids import is_own_turn, natural_key, only_turns, own_turn_id, parse_qrels, topic_of
from judge.io.tabular import read_table
from judge.io.text import printable, printable_id, shown
from judge.pool.selection import PassageRelevance
from judge.records import Problem, file_problem

_LETTER = re.compile(r"[a-zA-Z]|\([0-9]+\)")
"""One of the letters that runs share which cannot be told apart; after the alphabet they are numbers."""


def read_turns(path: Path, known: Collection[str] | None = None) -> frozenset[str]:
    """The turn ids of a file, one a line, in either spelling; blank lines are skipped.

    An id that is not `known` is an error; None accepts every id.
    """
    return _listed(path, ((number, own_turn_id(line)) for number, line in numbered_lines(path)), "turn", known)


def read_run_ids(path: Path, known: Collection[str]) -> frozenset[str]:
    """The run ids of a file, one a line; blank lines are skipped, and every id is `known`."""
    return _listed(path, numbered_lines(path), "run", known)


def read_relevance(
    path: Path,
    *,
    minimum: int = 1,
    max_rank: int | None = None,
    known: Collection[str] | None = None,
    answered: Collection[str] = (),
    notes: list[str] | None = None,
) -> PassageRelevance:
    """Passage qrels as a condition on responses; turn ids in either spelling.

    Qrels that judge none of the `known` turns, and no turn of an interactive run in these topics, are refused. Other
    turns are no error. An InputError if the file is not usable as qrels, grades a passage twice, or judges none of the
    turns. A UsageError if no grade of the file reaches the minimum.

    `answered`: turns of a run, which tell names of topics from those of turns where no turns are known.
    """
    grades = read_grades(path, answered if known is None else known, notes)
    if not grades or (known is not None and not _judges_any(grades, known)):
        raise InputError(f"{path}: judges no passage of any of the turns: qrels of another collection?")
    highest = max(grade for rows in grades.values() for grade in rows.values())
    if highest < minimum:
        raise UsageError(f"{path}: no passage has grade {minimum} or more; the highest is {highest}")
    return PassageRelevance(grades=grades, minimum=minimum, max_rank=max_rank)


def _judges_any(turn_ids: Iterable[str], known: Collection[str]) -> bool:
    """Whether a turn is of the topics, or an interactive run's in one of them; which turns it has is its own."""
    topics = set(map(topic_of, known))
    return any(turn_id in known or (is_own_turn(turn_id) and topic_of(turn_id) in topics) for turn_id in turn_ids)


def read_grades(
    path: Path, known: Collection[str] | None = None, notes: list[str] | None = None
) -> dict[str, dict[str, int]]:
    """The grades of qrels by turn id and item id; turn ids in either spelling.

    Where each topic of the `known` turns has one and the file names topics, their grades are of these turns, which the
    `notes` then say. An InputError if the file is not usable as qrels, or grades an item twice; every problem is
    listed.
    """
    rows = parse_qrels(text_of(path), str(path))
    turn_of = only_turns({row.turn_id for row in rows}, known or ())
    if turn_of and notes is not None:
        topic_id = min(turn_of, key=natural_key)
        notes.append(f"{path.name} names topics, each of one turn: {topic_id} is {turn_of[topic_id]}")
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    twice: list[Problem] = []
    for row in rows:
        turn_id = turn_of.get(row.turn_id) or own_turn_id(row.turn_id)
        if row.item_id in grades[turn_id]:
            message = f"{printable(turn_id)} {printable(row.item_id)} is graded under two spellings of the turn"
            twice.append(file_problem("duplicate_row", path, message, "$", turn_id=printable_id(turn_id)))
        grades[turn_id][row.item_id] = row.grade
    refuse(twice, f"{path}: not usable as qrels: {len(twice)} passages graded twice")
    return dict(grades)


def told_apart(path: Path) -> frozenset[tuple[str, str]]:
    """The pairs of runs that the ratings in a `ratings.tsv` tell apart, under each of its criteria.

    An InputError if the table is not usable.
    """
    problems: list[Problem] = []
    _, rows = read_table(path, problems, needed=("criterion", "run", "tie"), quoted=False)
    letters = {(row.cells["criterion"], row.cells["run"]): set(_LETTER.findall(row.cells["tie"])) for row in rows}
    criteria, runs = ({key[place] for key in letters} for place in (0, 1))
    if not len(criteria) * len(runs) == len(letters) == len(rows):
        problems.append(file_problem("wrong_rows", path, "expected one row a criterion and run"))
    refuse(problems, f"{path}: not usable as ratings")
    both = ((a, b, [(letters[of, a], letters[of, b]) for of in criteria]) for a, b in permutations(runs, 2))
    return frozenset((a, b) for a, b, of in both if all(one and other and not one & other for one, other in of))


def _listed(path: Path, ids: Iterable[tuple[int, str]], kind: str, known: Collection[str] | None) -> frozenset[str]:
    """The ids of a list, which are all known."""
    lines: dict[str, int] = {}
    for number, name in ids:
        lines.setdefault(name, number)
    if not lines:
        raise InputError(f"{path}: holds no {kind} id: expected one a line")
    unknown = sorted(lines.keys() - set(known), key=natural_key) if known is not None else []
    if unknown:
        problems = [
            line_problem(
                f"unknown_{kind}", path, lines[name], f"{shown(name)}: expected the id of a {kind} that is here"
            )
            for name in unknown
        ]
        raise InputError(f"{path}: {len(unknown)} of {len(lines)} {kind} ids are unknown", problems)
    return frozenset(lines)


def read_families(path: StrPath) -> dict[str, str]:
    """The family of models behind each run or judge, from lines `name<TAB>family`."""
    families: dict[str, str] = {}
    for number, line in numbered(text_of(Path(path)), str(path)):
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
    refuse(problems, f"{path}: not usable as a file of teams")
    return teams
