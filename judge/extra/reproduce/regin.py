"""CAsT-ReGIn: its files made again byte for byte, and its checks: known problems are warnings, damage an error."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations

from judge.crowd.released import GRADES, RELEVANT, Part, ReginRow, qrels_path
from judge.errors import InputError
from judge.io.ids import QrelRow, groups_of, natural_key, parse_qrels, qrels_lines
from judge.io.text import examples
from judge.records import Problem, file_problem

TAG = "dummytag"
"""The run tag of the released pools."""


def regenerate(part: Part, mi_turns: Collection[str] | None = None) -> dict[str, bytes]:
    """Path in the part's folder to content: every qrels file, the pool and the bank in their released forms.

    The question pool is in the order of code points of its ids, the response pool in the judgments' own, which
    is the same. The subset of the turns that call for initiative can be told from no label: without `mi_turns`
    there is none. It derives from the qrels of all turns, not from the filtered ones.
    """
    kind = part.kind
    files = {qrels_path(name): qrels_bytes(rows) for name, rows in qrels_of(part, mi_turns).items()}
    lines = (f"{turn_id}\tQ0\t{item_id}\t1\t0.0\t{TAG}\n" for turn_id, item_id in sorted(part.keys))
    files[kind.pool] = "".join(lines).encode()
    if kind.bank in part.released:
        files[kind.bank] = json.dumps(part.bank, indent=4, ensure_ascii=kind.escaped).encode()
    return files


def qrels_of(part: Part, mi_turns: Collection[str] | None = None) -> dict[str, list[tuple[str, str, int]]]:
    """Name of each qrels file to its rows; `filtered` has the turns with at least one grade of RELEVANT or more."""
    kind = part.kind
    qrels = {name: part.graded(criterion) for criterion, name in kind.all_turns.items()}
    if kind.criterion_of_subsets:
        rows = part.graded(kind.criterion_of_subsets)
        qrels[kind.filtered] = of_turns(rows, turns_with_relevant(rows))
        if mi_turns is not None:
            qrels[kind.mi_subset] = of_turns(rows, mi_turns)
    return qrels


def turns_with_relevant(rows: Iterable[tuple[str, str, int]]) -> set[str]:
    """The turns that have a grade of RELEVANT or more."""
    return {turn_id for turn_id, _, grade in rows if grade >= RELEVANT}


def of_turns(rows: Iterable[tuple[str, str, int]], turns: Collection[str]) -> list[tuple[str, str, int]]:
    """The rows of some turns, in their order."""
    return [row for row in rows if row[0] in turns]


def qrels_bytes(rows: Iterable[tuple[str, str, int]]) -> bytes:
    """A qrels file."""
    return qrels_lines(QrelRow(*row) for row in rows).encode()


MOST_ALIKE = 100
"""The most texts of one wording that are paired; the release has 4 of one at most."""
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")
_POOL_COLUMNS = 6


def check(part: Part, mi_turns: Collection[str] | None = None) -> tuple[Problem, ...]:
    """Every problem of a part: a warning for each known kind, with count and examples, and an error for each damage."""
    checks = (_missing, _label_orders, _texts, _shared_ids, _pool, _bank, _near_equal, _filter_claim)
    problems = [problem for each in checks for problem in each(part)]
    return (*part.problems, *problems, *_qrels(part, mi_turns))


def _missing(part: Part) -> Iterator[Problem]:
    """Files that the release has; without them there is less to compare with."""
    for path in (part.kind.bank, part.kind.pool, *map(qrels_path, part.kind.qrels)):
        if path not in part.released:
            yield _warning(part, path, "missing_file", "not here, so nothing could be compared with it")


def _label_orders(part: Part) -> Iterator[Problem]:
    orders = Counter(row.order for row in part.rows)
    if len(orders) > 1:
        named = ", ".join(f"{' '.join(order)} ({n})" for order, n in orders.most_common())
        message = f"the label fields come in {len(orders)} orders: {named}; read them by name"
        yield _warning(part, part.kind.judgments, "label_orders", message)


def other_texts(part: Part) -> tuple[list[ReginRow], int]:
    """The rows whose text is other than the bank's, and how many of them are so in white space only."""
    rows = [row for row in part.rows if part.bank.get(row.item_id, row.text) != row.text]
    return rows, sum("".join(row.text.split()) == "".join(part.bank[row.item_id].split()) for row in rows)


def _texts(part: Part) -> Iterator[Problem]:
    """The judgments' own copy of the texts against the bank's."""
    if part.kind.bank not in part.released:
        return
    different, spaces = other_texts(part)
    if different:
        message = f"{_n(different, 'text')} other than the bank's, {spaces} in whitespace only: {_named(different)}"
        yield _warning(part, part.kind.judgments, "text_differs", message)
    absent = [row for row in part.rows if row.item_id not in part.bank]
    if absent:
        message = f"judged, but not in the bank: {_n(absent, 'item')}: {_named(absent)}"
        yield _warning(part, part.kind.judgments, "not_in_bank", message)


def _named(rows: Iterable[ReginRow]) -> str:
    return examples(f"{row.item_id} ({row.turn_id})" for row in rows)


def _shared_ids(part: Part) -> Iterator[Problem]:
    shared = {item_id: len(turns) for item_id, turns in part.turns_of.items() if len(turns) > 1}
    if shared:
        worst = sorted(shared, key=lambda item_id: (-shared[item_id], natural_key(item_id)))
        named = examples(f"{item_id} ({shared[item_id]})" for item_id in worst)
        message = (
            f"judged anew in several turns: {_n(shared, 'id')}, here with how many: {named}; the key is turn and id"
        )
        yield _warning(part, part.kind.judgments, "shared_ids", message)


def _pool(part: Part) -> Iterator[Problem]:
    path = part.kind.pool
    if path not in part.released:
        return
    keys: list[tuple[str, str]] = []
    tabs = 0
    for number, line in enumerate(part.released[path].decode("utf-8", "backslashreplace").split("\n"), start=1):
        columns = line.split()
        if len(columns) == _POOL_COLUMNS:
            keys.append((columns[0], columns[2]))
            tabs += "\t" in line
        elif columns:
            message = f"{len(columns)} columns: expected {_POOL_COLUMNS} (turn_id Q0 item_id rank score tag)"
            yield file_problem("malformed_line", part.file(path), message, f"line {number}")
    yield from _same_pairs(part, path, keys, "pool_differs")
    if keys != list(part.keys) and Counter(keys) == Counter(part.keys):
        row = next(n for n, pair in enumerate(zip(keys, part.keys, strict=True), start=1) if pair[0] != pair[1])
        message = (
            f"the pairs are the judged ones in another order, first at row {row}: "
            f"{' '.join(keys[row - 1])}, in the judgments {' '.join(part.keys[row - 1])}"
        )
        yield _warning(part, path, "pool_order", message)
    spaced = [name for name in part.kind.qrels if b"\t" not in part.released.get(qrels_path(name), b"\t")]
    if tabs and spaced:
        message = f"{tabs:,} lines have tabs between columns, {len(spaced)} qrels files have spaces: split at either"
        yield _warning(part, path, "separators", message)


def _same_pairs(part: Part, path: str, keys: Sequence[tuple[str, str]], code: str) -> Iterator[Problem]:
    """Errors where a file's pairs are not the judged ones, each of them once."""
    theirs, ours = Counter(keys), Counter(part.keys)
    for what, missing in (
        ("judged but not here", ours - theirs),
        ("here but not judged, or here again", theirs - ours),
    ):
        if missing:
            message = f"{what}: {_n(missing, 'pair')}: {examples(' '.join(key) for key in missing)}"
            yield file_problem(code, part.file(path), message)


def _bank(part: Part) -> Iterator[Problem]:
    path = part.kind.bank
    empty = [item_id for item_id, text in part.bank.items() if not text.strip()]
    if empty:
        judged = sum(item_id in part.turns_of for item_id in empty)
        message = f"empty: {_n(empty, 'text')}, {judged} judged: {examples(empty)}"
        yield _warning(part, path, "empty_text", message)
    outer = [item_id for item_id, text in part.bank.items() if text.strip() and text != text.strip()]
    if outer:
        message = f"whitespace at the start or the end: {_n(outer, 'text')}: {examples(outer)}"
        yield _warning(part, path, "outer_space", message)
    escapes = part.released.get(path, b"").count(rb"\u")
    if escapes and part.released[path].isascii():
        message = f"{escapes} characters beyond ASCII are escapes, in other files of the release they are raw"
        yield _warning(part, path, "escaped_text", message)


def near_equal_texts(part: Part) -> list[tuple[str, str]]:
    """Pairs of bank items whose texts are told apart by case, punctuation and whitespace alone.

    Of more than MOST_ALIKE such texts the first are paired, since pairs grow by the square.
    """
    groups = groups_of((_NEITHER_LETTER_NOR_DIGIT.sub("", text.casefold()), name) for name, text in part.bank.items())
    return [pair for key, ids in groups.items() if key for pair in combinations(ids[:MOST_ALIKE], 2)]


def retests(part: Part) -> list[tuple[str, str, str]]:
    """Turn and two items with nearly the same text, both judged in that turn."""
    return [
        (turn_id, a, b)
        for a, b in near_equal_texts(part)
        for turn_id in part.turns_of.get(a, ())
        if turn_id in part.turns_of.get(b, ())
    ]


def _near_equal(part: Part) -> Iterator[Problem]:
    """Nearly equal texts are a problem of the bank; where both are judged in a turn, they are a retest."""
    pairs = near_equal_texts(part)
    if not pairs:
        return
    spaces = sum("".join(part.bank[a].split()) == "".join(part.bank[b].split()) for a, b in pairs)
    met = list(dict.fromkeys((a, b) for _, a, b in retests(part)))
    message = (
        f"equal but for case, punctuation and whitespace: {_n(pairs, 'pair')} of texts, {spaces} but for whitespace; "
        f"{len(met)} judged twice in one turn: {examples('/'.join(pair) for pair in met or pairs)}"
    )
    yield _warning(part, part.kind.bank, "near_equal_texts", message)


def _filter_claim(part: Part) -> Iterator[Problem]:
    for name, left in without_relevant(part).items():
        if left:
            message = f"said to be filtered, but without a grade of {RELEVANT}: {_n(left, 'turn')}: {examples(left)}"
            yield _warning(part, qrels_path(name), "not_filtered", message)


def without_relevant(part: Part) -> dict[str, list[str]]:
    """Name of the qrels of responses to their turns without a grade of RELEVANT, which the README says are left out."""
    left: dict[str, list[str]] = {}
    for criterion, name in part.kind.all_turns.items() if part.kind.criterion_of_subsets is None else ():
        rows = part.graded(criterion)
        left[name] = sorted({row[0] for row in rows} - turns_with_relevant(rows), key=natural_key)
    return left


def _qrels(part: Part, mi_turns: Collection[str] | None) -> Iterator[Problem]:
    """Each released qrels file against the judgments: the same pairs in the same order with the same grades."""
    expected = qrels_of(part, mi_turns)
    for name in part.kind.qrels:
        path = qrels_path(name)
        if path not in part.released:
            continue
        try:
            released_rows = parse_qrels(part.released[path].decode("utf-8"), part.file(path), GRADES)
        except UnicodeDecodeError as error:
            yield file_problem("wrong_encoding", part.file(path), f"byte {error.start + 1} is not UTF-8")
            continue
        except InputError as error:
            yield from error.problems
            continue
        rows = [(row.turn_id, row.item_id, row.grade) for row in released_rows]
        # Which turns are in the subset only the file itself can say where no list is given.
        whole = part.graded(part.kind.criterion_of_subsets or "relevance")
        wanted = expected[name] if name in expected else of_turns(whole, {row[0] for row in rows})
        yield from _difference(part, path, rows, wanted)


def _difference(
    part: Part, path: str, rows: list[tuple[str, str, int]], wanted: list[tuple[str, str, int]]
) -> Iterator[Problem]:
    """What is other than the judgments say: pairs, grades, order, and last the bytes alone."""
    theirs, ours = ({row[:2]: row[2] for row in side} for side in (rows, wanted))
    unshared = ours.keys() ^ theirs.keys()
    changed = [key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]]
    if unshared:
        message = f"only here or only in the judgments: {_n(unshared, 'pair')}: {_pairs(unshared)}"
        yield file_problem("qrels_pairs", part.file(path), message)
    if changed:
        message = f"not as in the judgments: {_n(changed, 'grade')}: {_pairs(changed)}"
        yield file_problem("qrels_grades", part.file(path), message)
    if not (unshared or changed):
        if rows != wanted:
            yield _warning(part, path, "qrels_order", "the judgments' pairs and grades in another order")
        elif part.released[path] != qrels_bytes(wanted):
            message = "the judgments' rows in another form: not single spaces, plain integers and LF"
            yield _warning(part, path, "qrels_form", message)


def _pairs(keys: Iterable[tuple[str, str]]) -> str:
    return examples(" ".join(key) for key in sorted(keys, key=lambda key: tuple(map(natural_key, key))))


def _warning(part: Part, path: str, code: str, message: str) -> Problem:
    return Problem(code, "warning", part.file(path), None, "", message)


def _n(things: Collection[object], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"
