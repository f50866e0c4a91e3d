"""CAsT-ReGIn: a pool of lines `turn_id Q0 response_id 1 0.0 tag` beside a bank, a JSON object from id to text.

Question pools and banks have the same form. A response has no provenance; its rank is its place in the pool.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from judge.io.ids import natural_key
from judge.io.text import printable_id, shown, storable
from judge.runs.check import problem
from judge.runs.document import HEAD, Document, open_document, read_head
from judge.runs.fields import MAX_ALL_RESPONSES, ProblemLog
from judge.runs.formats.shape import Format, ReadRun, ResponsePlace, Rules, TurnPlace, read_run_of
from judge.runs.records import Response, RunTurn

_POOL = re.compile(rb"\s*\S+\s+Q0\s+[RQ][0-9]+\s+\S+\s+\S+\s+\S+[ \t\r]*(\n|$)")
_BANK = re.compile(rb'\s*\{\s*"[RQ][0-9]+"\s*:\s*"')
_COLUMNS = "turn_id Q0 response_id rank score tag"


class _Row(msgspec.Struct, frozen=True):
    path: str
    turn_id: str
    item_id: str
    tag: str


def is_pool(head: bytes) -> bool:
    """Whether a file with this head is a pool."""
    return _POOL.match(head) is not None


def is_bank(head: bytes) -> bool:
    """Whether a file with this head is a bank."""
    return _BANK.match(head) is not None


def _read(document: Document) -> ReadRun:
    """The pool in `document`, or beside it if it is a bank, as one run named by the pool's tag."""
    if document.content and not is_bank(document.content[:HEAD]):
        return _pool(document)
    if document.unreadable:
        return ReadRun(None, document.problems)
    pools = _beside(document.path, is_pool)
    if len(pools) == 1:
        return _pool(open_document(pools[0]))
    message = f"a response bank needs one pool in its folder, found {len(pools)}"
    return ReadRun(None, (*document.problems, problem("missing_pool", document.file, "", message)))


def _pool(pool: Document) -> ReadRun:
    log = ProblemLog(pool.file, [problem for problem in pool.problems if problem.severity == "warning"])
    rows = _rows(pool.content, log)
    bank = _bank(pool.path, {row.item_id for row in rows})
    if rows and bank is None:
        log.add("missing_bank", "", "no bank with the texts of this pool's ids in its folder")
    if not rows or bank is None:
        return ReadRun(None, tuple(log.problems))
    turns = _turns(rows, bank, log)
    made = [
        (
            RunTurn(turn_id, tuple(Response(rank, bank.get(row.item_id, ""), ()) for rank, row in enumerate(items, 1))),
            TurnPlace(items[0].path, tuple(ResponsePlace(row.path) for row in items)),
        )
        for turn_id, items in turns.items()
    ]
    return read_run_of(log, pool, "cast_regin", made, rows[0].tag, "")


def _turns(rows: list[_Row], bank: dict[str, str], log: ProblemLog) -> dict[str, list[_Row]]:
    """The rows of each turn, in the order of the pool, without those that repeat a response."""
    turns: dict[str, list[_Row]] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        log.turn_id = printable_id(row.turn_id)
        name = printable_id(row.item_id)
        if (row.turn_id, row.item_id) in seen:
            log.add("duplicate_response_id", row.path, f"{name} is already in this turn")
            continue
        seen.add((row.turn_id, row.item_id))
        if row.tag != rows[0].tag:
            message = f"tag {shown(row.tag)}, the file's first is {shown(rows[0].tag)}"
            log.add("several_runs", row.path, message)
        if row.item_id not in bank:
            log.add("not_in_bank", row.path, f"{name} has no text in the bank")
        turns.setdefault(row.turn_id, []).append(row)
    return turns


def _rows(content: bytes, log: ProblemLog) -> list[_Row]:
    rows: list[_Row] = []
    for number, raw in enumerate(io.BytesIO(content), start=1):
        columns = [column.decode("utf-8", "backslashreplace") for column in raw.split()]
        if len(columns) == 6 and all(map(storable, columns)):
            if len(rows) == MAX_ALL_RESPONSES:
                message = f"more than {MAX_ALL_RESPONSES:,} lines; the pool is not read"
                log.add("too_many_responses", f"line {number}", message)
                return []
            rows.append(_Row(f"line {number}", columns[0], columns[2], columns[5]))
        elif columns:
            message = f"expected `{_COLUMNS}`, found {shown(' '.join(columns))}"
            log.add_entry("line", "malformed_line", f"line {number}", message)
    log.close_lists()
    return rows


def _bank(pool: Path, wanted: set[str]) -> dict[str, str] | None:
    """The texts of the wanted ids, from the bank in the pool's folder that has most of them; None without a bank."""
    best: dict[str, str] | None = None
    for path in _beside(pool, is_bank):
        value = open_document(path).value
        if type(value) is not dict:
            continue
        texts = {item_id: text for item_id, text in value.items() if item_id in wanted and type(text) is str}
        if texts and (best is None or len(texts) > len(best)):
            best = texts
    return best


def _beside(path: Path, is_kind: Callable[[bytes], bool]) -> list[Path]:
    """The other files of a kind in the folder of `path`; `find_runs` reports those that cannot be read."""
    try:
        files = sorted(path.parent.iterdir(), key=lambda file: natural_key(file.name))
    except OSError:
        return []
    return [file for file in files if file != path and _is(file, is_kind)]


def _is(path: Path, is_kind: Callable[[bytes], bool]) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and is_kind(read_head(path))
    except OSError:
        return False


CAST_REGIN = Format(
    "CAsT-ReGIn: a pool of lines `turn_id Q0 response_id 1 0.0 tag` beside a bank, a JSON object from id to text.",
    Rules(run_id="line 1", form="pool", all_turns=False, year=2022),
    lambda document: is_pool(document.content[:HEAD]) or is_bank(document.content[:HEAD]),
    _read,
)
