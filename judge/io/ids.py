"""Ids: their order, what is grouped by them, the topic in a turn id, the theme in a topic id; qrels and runs. Pure.

Columns are separated by whitespace, so whitespace and unprintable characters inside an id are percent-encoded
when it is made a column (`my run` becomes `my%20run`, and a run of that name `my%2520run`). Ids read from a
file are columns already: they are neither decoded nor encoded again, so rewriting keeps the bytes.
"""

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Literal, TypeVar, get_args
from urllib.parse import quote

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.io.files import numbered, too_many
from judge.io.text import count, digest, shown
from judge.records import Problem, file_problem

NaturalKey = str
"""The sort key that `natural_key` returns."""
Cluster = Literal["topic", "theme"]
"""The unit that was sampled, over which intervals, tests and splits go."""
CLUSTERS: tuple[Cluster, ...] = get_args(Cluster)

_OF_YEAR = re.compile(r"(20[0-9]{2})[-_]([0-9]+)")
"""A topic with its year, and what `own_turn_id` makes of it."""
_DIGITS = re.compile(r"\d+")
_MOST_COUNTED = 0x10FFFF
"""Numbers of as many digits, or more, are told apart by the digits alone."""
_OWN_DIGITS = 16
"""Hexadecimal digits of a conversation's digest: no two conversations share them by chance."""
_UNREACHED = "unreached"


# Every table sorts the same ids again.
@lru_cache(maxsize=16_384)
def natural_key(text: str) -> NaturalKey:
    """Key that sorts by the integers inside an id, so that `9-1_2` comes before `9-1_10`.

    >>> sorted(["9-1_10", "9-1_2", "10-1_1"], key=natural_key)
    ['9-1_2', '9-1_10', '10-1_1']
    """
    # One text, because tuples of many ids would fill the memory. The id itself decides between ids that differ only in
    # leading zeros.
    return f"{with_counted_digits(text)}\0\0{text}"


def with_counted_digits(text: str) -> str:
    """A text that sorts by the integers inside an id; ids that differ only in leading zeros have the same one."""
    return _DIGITS.sub(_counted_digits, text)


def _counted_digits(match: re.Match[str]) -> str:
    """An integer so that texts are in its order: by the number of digits, then by these.

    It is not compared as an int, since a hostile id may have more digits than int() takes, or more than chr().
    """
    digits = match[0].lstrip("0")
    length = len(digits)
    mark = _COUNTS[length] if length < len(_COUNTS) else _count_mark(length)
    return mark + digits


def _count_mark(length: int) -> str:
    """What stands before an integer of so many digits."""
    return f"\0{chr(min(length + 1, _MOST_COUNTED))}"


# Nearly every integer of an id is this short.
_COUNTS = tuple(map(_count_mark, range(32)))


def natural_order(ids: Iterable[str]) -> tuple[NaturalKey, ...]:
    """Key that sorts tuples of ids, each by its integers."""
    return tuple(map(natural_key, ids))


_Key = TypeVar("_Key")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")


def groups_of(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Each key with its values; keys and values keep the order of the pairs.

    >>> groups_of([("9-1", 2), ("9-2", 0), ("9-1", 1)])
    {'9-1': [2, 1], '9-2': [0]}
    """
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def nested(rows: Iterable[tuple[_Key, _Inner, _Value]]) -> dict[_Key, dict[_Inner, _Value]]:
    """Each first key with the last value of each of its second keys, such as turn to item to grade.

    >>> nested([("9-1_1", "R0", 2), ("9-1_2", "R1", 0), ("9-1_1", "R2", 1)])
    {'9-1_1': {'R0': 2, 'R2': 1}, '9-1_2': {'R1': 0}}
    """
    found: dict[_Key, dict[_Inner, _Value]] = {}
    for key, inner, value in rows:
        found.setdefault(key, {})[inner] = value
    return found


def topic_of(turn_id: str) -> str:
    """The topic id inside a turn id: everything before the last underscore.

    >>> topic_of("9-1_3"), topic_of("132_1-1")
    ('9-1', '132')
    """
    return turn_id.rpartition("_")[0] or turn_id


def own_turn_id(written: str) -> str:
    """A turn id as topics and runs write it; older copies of the qrels have `9-1-3` for `9-1_3` and `0-8` for `0_8`.

    >>> own_turn_id("9-1-3"), own_turn_id("9-1_3"), own_turn_id("132_1-3")
    ('9-1_3', '9-1_3', '132_1-3')
    """
    if "_" in written:
        return written
    topic, hyphen, number = written.rpartition("-")
    return f"{topic}_{number}" if hyphen else written


def passage_turn_id(written: str) -> str:
    """`own_turn_id`; of a topic that is named by its year, as in qrels of TREC RAG, the only turn.

    >>> passage_turn_id("9-1-3"), passage_turn_id("2024-145979"), passage_turn_id("2024-145979_1")
    ('9-1_3', '2024-145979_1', '2024-145979_1')
    """
    of_year = _OF_YEAR.fullmatch(written)
    return f"{of_year[1]}-{of_year[2]}_1" if of_year else own_turn_id(written)


def only_turns(named: Collection[str], known: Collection[str]) -> dict[str, str]:
    """What is named to its turn, where topics are named of which each known one has one turn; empty for names of turns.

    >>> only_turns(["2024-7", "2024-8"], ["2024-7_1"]), only_turns(["2024_7"], ["2024-7_1"])
    ({'2024-7': '2024-7_1', '2024-8': '2024-8_1'}, {'2024_7': '2024-7_1'})
    >>> only_turns(["9-1-1"], ["9-1_1"]), only_turns(["9-1"], ["9-1_1", "9-1_2"])
    ({}, {})
    """
    only = {topic_of(turn_id): turn_id for turn_id in known}
    if any(own_turn_id(name) in known for name in named) or len(only) < len(set(known)):
        return {}
    # A topic such as 2024-7 reads like an older turn id, which becomes 2024_7.
    only |= {own_turn_id(topic_id): turn_id for topic_id, turn_id in only.items()}
    return {name: only.get(name, f"{name}_1") for name in named} if not only.keys().isdisjoint(named) else {}


def conversation_turn_id(turn_id: str, digest: str) -> str:
    """The id of a turn of an interactive run, by the digest of the conversation up to it.

    >>> conversation_turn_id("1-1_3", "5f2c9a01be42d370ffff")
    '1-1_3~5f2c9a01be42d370'
    """
    return f"{turn_id}~{digest[:_OWN_DIGITS]}"


def unreached_turn(topic_id: str) -> str:
    """The id that stands for a topic that an interactive run never reached.

    >>> unreached_turn("2-1"), is_own_turn("2-1_0~unreached"), topic_of("2-1_0~unreached")
    ('2-1_0~unreached', True, '2-1')
    """
    return f"{topic_id}_0~{_UNREACHED}"


def is_own_turn(turn_id: str) -> bool:
    """Whether a turn is one of an interactive run; no turn of a topics file has such an id.

    >>> is_own_turn("1-1_3~5f2c9a01be42d370"), is_own_turn("1-1_3")
    (True, False)
    """
    return "~" in turn_id.rpartition("_")[2]


def is_unreached(turn_id: str) -> bool:
    """Whether an id stands for a topic that an interactive run never reached."""
    return turn_id.endswith(f"_0~{_UNREACHED}")


def run_turn_id(turn_id: str) -> str:
    """The id of a turn as its run gives it.

    >>> run_turn_id("1-1_3~5f2c9a01be42d370"), run_turn_id("1-1_3")
    ('1-1_3', '1-1_3')
    """
    return turn_id.rpartition("~")[0] if is_own_turn(turn_id) else turn_id


def check_cluster(cluster: str) -> None:
    """Refuse a unit that is neither topic nor theme, as a UsageError; a plan in Python may hold any text."""
    if cluster not in CLUSTERS:
        raise UsageError(f"cluster {cluster!r}: expected {' or '.join(CLUSTERS)}")


def cluster_of(topic_id: str, cluster: Cluster) -> str:
    """The unit that a topic belongs to: itself, or its theme, which is everything before the first hyphen.

    In iKAT, `9-1` and `9-2` are conversations of two personas about theme `9`. A topic without a hyphen is its own
    theme.

    >>> cluster_of("9-1", "theme"), cluster_of("132", "theme"), cluster_of("9-1", "topic")
    ('9', '132', '9-1')
    """
    return topic_id if cluster == "topic" else topic_id.partition("-")[0] or topic_id


def clustering(topic_ids: Iterable[str], cluster: Cluster) -> tuple[str, ...]:
    """The note of outputs that do not count topics as the units, with the number of units; none where they do.

    >>> clustering(["9-1", "9-2", "10-1"], "theme")[0]
    'clustered by theme: 2 themes of 3 topics; intervals and tests are over themes, and count these as topics'
    """
    if cluster == "topic":
        return ()
    topics = set(topic_ids)
    themes = len({cluster_of(topic_id, cluster) for topic_id in topics})
    counted = " of ".join(
        f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in ((themes, "theme"), (len(topics), "topic"))
    )
    return (f"clustered by theme: {counted}; intervals and tests are over themes, and count these as topics",)


_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
_DIGESTED = re.compile(r"-[0-9a-f]{12}$", re.IGNORECASE)
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_PLAIN = re.compile(r"[!-$&-~]+")
_PERCENT = re.compile(r"%(?=[0-9A-Fa-f]{2})|^%\Z")
_LONGEST = 100
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_BREAKS = re.compile(r"[\v\f\x1c-\x1f]|\r(?![\r\n]|\Z)")
"""The ASCII characters, beside blanks and ends of lines, at which str.split breaks."""
_QRELS_COLUMNS = 4
_RUN_COLUMNS = 6
_RUN_NAMES = "turn_id Q0 item_id rank score run_id"


class QrelRow(msgspec.Struct, frozen=True, gc=False):
    """One line of a qrels file, ids as columns; `item_id` is a response or a passage."""

    turn_id: str
    item_id: str
    grade: int


class TrecRun(msgspec.Struct, frozen=True):
    """A run file, ids as columns."""

    run_id: str
    scores: dict[str, dict[str, float]]
    """Turn to its items with their scores, in file order."""
    repeated: int = 0
    """Lines that name an item of a turn again."""


def column(text: str) -> str:
    """An id as one column; `%` and what is no part of a column are percent-encoded, so that ids stay distinct."""
    if _PLAIN.fullmatch(text):
        # Nearly every id; to look at each character of millions of them takes seconds.
        return text
    text = _PERCENT.sub("%25", text)
    kept = (c if c.isprintable() and not c.isspace() else quote(c, errors="surrogatepass") for c in text)
    return "".join(kept) or "%"


def safe_name(run_id: str) -> str:
    """A file name for a run id: no separator, no leading dot, no reserved name, at most 114 ASCII characters.

    An id that is such a name stays as it is. In any other the unsafe characters are replaced and 12 digits of its
    SHA-256 are appended; so they are where an id ends in 12 such digits, so that distinct ids have distinct names.
    """
    # Windows also drops a trailing dot, and a leading hyphen would be read as an option.
    plain = run_id == _UNSAFE.sub("_", run_id).strip("._+-")[:_LONGEST] and run_id
    return run_id if plain and not _RESERVED.match(run_id) and not _DIGESTED.search(run_id) else _digested(run_id)


def safe_names(run_ids: Iterable[str]) -> dict[str, str]:
    """File names for a set of run ids, distinct even where upper and lower case are the same."""
    names = {run_id: safe_name(run_id) for run_id in run_ids}
    # Twelve digits are short to read, but two ids that share them can be made up.
    for digits in (12, 64):
        clashes = Counter(name.lower() for name in names.values())
        names = {
            run_id: _digested(run_id, digits) if clashes[name.lower()] > 1 else name for run_id, name in names.items()
        }
    return names


def _digested(run_id: str, digits: int = 12) -> str:
    """The id with its unsafe characters replaced, and the beginning of its digest."""
    stem = _UNSAFE.sub("_", run_id).strip("._+-")[:_LONGEST] or "run"
    # Windows reserves `con.anything`; an underscore in front is enough.
    stem = f"_{stem}" if _RESERVED.match(stem) else stem
    return f"{stem}-{digest(run_id)[:digits]}"


def response_run(run_id: str, entries: Iterable[tuple[str, str, int]]) -> str:
    """A run over the pooled responses: `turn_id Q0 response_id rank score run_id`, in natural order.

    Scores of a turn's k responses fall k, k-1, …, 1 by rank, since evaluation tools sort by score alone. They
    refuse repetitions, so a response that a run gives at two ranks of a turn is listed once, at the better rank.

    `entries`: (turn_id, response_id, rank), in any order.
    """
    lines: list[str] = []
    for turn_id, order in best_ranks(entries).items():
        for position, (item_id, rank) in enumerate(order):
            score = len(order) - position
            lines.append(f"{column(turn_id)} Q0 {column(item_id)} {rank} {score} {column(run_id)}\n")
    return "".join(lines)


def best_ranks(entries: Iterable[tuple[str, str, int]]) -> dict[str, list[tuple[str, int]]]:
    """The items of each turn with their best ranks, best first, equal ones in natural order, as the turns are."""
    ranks: dict[str, dict[str, int]] = defaultdict(dict)
    for turn_id, item_id, rank in entries:
        ranks[turn_id][item_id] = min(rank, ranks[turn_id].get(item_id, rank))
    best: dict[str, list[tuple[str, int]]] = {}
    for turn_id in sorted(ranks, key=natural_key):
        best[turn_id] = [*ranks[turn_id].items()]
        if len(best[turn_id]) > 1:
            best[turn_id].sort(key=lambda item: (item[1], natural_key(item[0])))
    return best


def qrels_lines(rows: Iterable[QrelRow]) -> str:
    """`turn_id 0 item_id grade` in the rows' own order."""
    return "".join(f"{row.turn_id} 0 {row.item_id} {row.grade}\n" for row in rows)


def parse_qrels(text: str, name: str, grades: Collection[int] | None = None) -> tuple[QrelRow, ...]:
    """The rows of a qrels file in file order; columns separated by spaces or tabs, blank lines skipped.

    `grades`: the allowed grades; None allows every integer. An InputError if a line does not have four columns, a grade
    is no integer or not allowed, or a pair is given twice.
    """
    if text.lstrip("\ufeff\r\n ").startswith('{"'):
        message = "JSON, not qrels (turn_id 0 item_id grade); of gold rows `judge crowd --pool` makes qrels"
        raise InputError(f"{name}: not usable as qrels", [file_problem("wrong_columns", name, message, "line 1")])
    rows: list[QrelRow] = []
    problems: list[Problem] = []
    first: dict[str, dict[str, int]] = {}
    # A turn is on thousands of lines.
    turn_ids: dict[str, str] = {}
    for number, fields in _fields(text, name, problems):
        problem = _qrels_problem(fields, grades)
        if problem is None:
            turn_id = turn_ids.setdefault(fields[0], fields[0])
            item_id = fields[2]
            earlier = first.setdefault(turn_id, {}).setdefault(item_id, number)
            if earlier == number:
                rows.append(QrelRow(turn_id=turn_id, item_id=item_id, grade=int(fields[3])))
                continue
            problem = ("duplicate_row", f"{turn_id} {item_id} is already on line {earlier}")
        problems.append(file_problem(problem[0], name, problem[1], f"line {number}", turn_id=fields[0]))
    refuse(problems, f"{name}: not usable as qrels: {count(len(problems), 'line')} with problems")
    return tuple(rows)


def _qrels_problem(fields: list[str], grades: Collection[int] | None) -> tuple[str, str] | None:
    """Code and message of the problem of one line's columns; None without one."""
    if len(fields) != _QRELS_COLUMNS:
        return "wrong_columns", f"{len(fields)} columns: expected {_QRELS_COLUMNS} (turn_id 0 item_id grade)"
    if not _INTEGER.fullmatch(fields[3]):
        return "wrong_grade", f"grade {fields[3][:40]!r}: expected an integer"
    if grades is not None and int(fields[3]) not in grades:
        return "off_scale", f"grade {fields[3]}: expected one of {', '.join(map(str, sorted(grades)))}"
    return None


def parse_run(text: str, name: str, *, again: Literal["refuse", "best"] = "refuse") -> TrecRun:
    """A run file `turn_id Q0 item_id rank score run_id`; evaluation tools go by the score alone, so no rank is read.

    `again`: whether an item that a turn has twice is a problem, or counts by its highest score. An InputError if a line
    does not have six columns, a score is no finite number, the lines have two run ids, an item is refused, or there is
    no line; every such line is listed.
    """
    scores: dict[str, dict[str, float]] = {}
    problems: list[Problem] = []
    run_id = ""
    turn_id = ""
    of_turn = dict[str, float]()
    repeated = 0
    for number, fields in _fields(text, name, problems):
        problem = _run_problem(fields, run_id)
        if problem is None:
            run_id = fields[5]
            if fields[0] != turn_id:
                turn_id = fields[0]
                of_turn = scores.setdefault(turn_id, {})
            item_id = fields[2]
            score = float(fields[4])
            earlier = of_turn.get(item_id)
            repeated += earlier is not None
            if earlier is None or score > earlier:
                of_turn[item_id] = score
            if earlier is None or again == "best":
                continue
            problem = "duplicate_row", f"{turn_id} {item_id} is on an earlier line too"
        problems.append(file_problem(problem[0], name, problem[1], f"line {number}", turn_id=fields[0]))
    refuse(problems, f"{name}: not usable as a TREC run: {count(len(problems), 'line')} with problems")
    if not scores:
        raise InputError(f"{name}: an empty file: expected lines `{_RUN_NAMES}`")
    return TrecRun(run_id, scores, repeated)


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """The items of a turn as trec_eval orders them: by score in single precision, equal ones by falling id."""
    single = dict(zip(scores, array("f", scores.values()), strict=True))
    # By id first: the second sort keeps the order of equal scores.
    return sorted(sorted(scores, reverse=True), key=single.__getitem__, reverse=True)


def _run_problem(fields: list[str], run_id: str) -> tuple[str, str] | None:
    """Code and message of the problem of one line's columns; None without one."""
    if len(fields) != _RUN_COLUMNS:
        columns = count(len(fields), "column")
        return "wrong_columns", f"{columns}: expected {_RUN_COLUMNS} ({_RUN_NAMES})"
    if not _NUMBER.fullmatch(fields[4]) or not isfinite(float(fields[4])):
        return "wrong_score", f"score {shown(fields[4])}: expected a finite number"
    if run_id and fields[5] != run_id:
        return "second_run_id", f"run id {shown(fields[5])}: expected {shown(run_id)}, as in the lines before"
    return None


def _fields(text: str, name: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    """Line number and columns of every line that is not blank, until there are too many problems."""
    # str.split also breaks at characters that do not separate TREC's columns; most files have none of them, and the
    # expression takes three times as long.
    quick = text.isascii() and not _BREAKS.search(text)
    for number, line in numbered(text.removeprefix("\ufeff"), name):
        fields = line.split() if quick else re.split(r"[ \t]+", line.strip(" \t\r"))
        if fields and fields != [""]:
            if too_many(problems, name, number):
                return
            yield number, fields


ALIKE = "workers whose names differ only by case, spaces, leading zeros or Unicode form"
_LEADING_ZEROS = re.compile(r"(?<![0-9.])0+(?=[0-9])", re.ASCII)
_POINT_ZERO = re.compile(r"(?<=[0-9])\.0+$", re.ASCII)


def names_alike(names: Iterable[str]) -> list[list[str]]:
    """The names that only their way of writing tells apart, in groups.

    >>> names_alike(["ann", "Ann", "bob", "7", "07", "7.0", "70"])
    [['ann', 'Ann'], ['7', '07', '7.0']]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        written = "".join(unicodedata.normalize("NFKC", name).casefold().split())
        written = _POINT_ZERO.sub("", _LEADING_ZEROS.sub("", written))
        groups.setdefault(written, []).append(name)
    return [group for group in groups.values() if len(group) > 1]
