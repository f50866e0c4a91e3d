"""The bytes of a pool's files, and the pool read back from those bytes or from its folder."""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec.structs import force_setattr, replace

from judge.errors import refuse
from judge.io.files import BOM, LineStream, decode_rows, numbered, too_many
from judge.io.folder import Pieces, jsonl_pieces
from judge.io.ids import column, natural_key
from judge.io.table import tsv
from judge.io.text import unescape
from judge.pool.build import Distinct, distinct_key, exclusion_order, run_key
from judge.pool.conversation import is_genuine, without_turn
from judge.pool.records import Pool, PooledResponse, PooledRun, PooledTurn
from judge.records import Passage, Problem, file_problem
from judge.runs.records import Exclusion
from judge.units import UNITS

_Row = TypeVar("_Row")
Lines = bytes | Iterable[tuple[int, bytes]]
"""A file's content, or its numbered lines."""
EXCLUDED_COLUMNS = ("run_id", "turn_id", "rank", "reason", "detail")


def pool_jsonl(pool: Pool) -> bytes:
    """`pool.jsonl`: one pooled response a line, fields in the order of the record."""
    return bytes(stored_pool(pool)["pool.jsonl"])


def passages_jsonl(pool: Pool) -> bytes:
    """`passages.jsonl`: every passage text that a request may quote, a line each, by key."""
    return bytes(stored_pool(pool)["passages.jsonl"])


def stored_pool(pool: Pool) -> dict[str, Pieces]:
    """The files of a pool that grow with its texts, by their names."""
    # Passages have their texts in a file of their own.
    bank = {} if UNITS[pool.unit].listed else {"bank.json": Pieces(lambda: _bank(pool))}
    files = {
        "pool.jsonl": Pieces(lambda: jsonl_pieces(pool.responses)),
        **bank,
        "passages.jsonl": Pieces(
            lambda: jsonl_pieces(_PassageLine(p.passage_id, p.text, key, p.source) for key, p in pool.passages.items())
        ),
    }
    if pool.answers:
        files[ANSWERS] = Pieces(lambda: jsonl_pieces(pool.answers))
    return files


def pool_lines(pool: Pool, tag: str = "judge") -> str:
    """`pool.txt`: the TREC pool of CAsT-ReGIn, with single spaces."""
    return "".join(f"{column(r.listed_under)} Q0 {column(r.listed_as)} 1 0.0 {column(tag)}\n" for r in pool.responses)


def _bank(pool: Pool) -> Iterator[bytes]:
    """The form of CAsT-ReGIn's response bank, response id to text, as `json.dumps` writes it with an indent of four."""
    begin = b"{\n"
    for response in sorted(pool.responses, key=lambda response: natural_key(response.response_id)):
        name, text = (json.dumps(part, ensure_ascii=False) for part in (response.response_id, response.shown))
        yield begin + f"    {name}: {text}".encode()
        begin = b",\n"
    yield b"\n}\n" if pool.responses else b"{}\n"


class _PassageLine(msgspec.Struct, frozen=True):
    """One line of `passages.jsonl`; the first two names are those of the iKAT collection."""

    id: str
    contents: str
    key: str
    source: Literal["run", "table", "verified", "collection"]


def excluded_tsv(exclusions: Iterable[Exclusion]) -> bytes:
    r"""`excluded.tsv`: what is not judged and why; characters that break a line are escaped (`\t`, `\n`, `\x00`)."""
    rows = sorted(exclusions, key=exclusion_order)
    return tsv(EXCLUDED_COLUMNS, map(msgspec.structs.astuple, rows)).encode()


def read_pool(
    responses: Lines,
    passages: Lines,
    name: str,
    excluded: Lines = b"",
    runs: Lines = b"",
    turns: Lines = b"",
    answers: Lines = b"",
) -> Pool:
    """The pool behind the files of `name`, such as `pool.jsonl` and `passages.jsonl`.

    Strings that occur again and again, such as the ids of turns, passages and runs, are held once. An InputError if
    lines are damaged; each of them is listed.
    """
    problems: list[Problem] = []
    by_key: dict[str, Passage] = {}
    for line, bad in _rows(passages, _PassageLine, f"{name}/passages.jsonl", problems):
        if line.key in by_key:
            bad("$.key", f"the key {line.key} is on an earlier line too")
        right = run_key(line.id, line.contents) if line.source in ("run", "table") else line.id
        if line.key != right:
            bad("$.key", f"the key {line.key} does not belong to this id and text")
        key = line.id if line.key == line.id else line.key
        by_key[key] = Passage(line.id, line.contents, line.source)
    strings = {key: key for key in by_key}
    by_id: dict[str, PooledResponse] = {}
    distinct: dict[Distinct, str] = {}
    for response, bad in _rows(responses, PooledResponse, f"{name}/pool.jsonl", problems):
        response_id = response.response_id
        if not re.fullmatch("R[0-9]{5,9}", response_id):
            bad("$.response_id", f"{response_id!r} is not R and five digits or more")
        if response_id in by_id:
            bad("$.response_id", f"{response_id} is on an earlier line too")
        if response.unit != next(iter(by_id.values()), response).unit:
            bad("$.unit", f"{response_id} is one {response.unit}, the first line is not")
        _share(response, strings)
        same = distinct.setdefault(distinct_key(response), response_id)
        if same != response_id:
            bad("$", f"{response_id} has the turn, the text and the passages of {same}")
        by_id[response_id] = response
    problems += _single_orders(by_id.values(), distinct, f"{name}/pool.jsonl")
    exclusions = tuple(_read_excluded(excluded, f"{name}/excluded.tsv", problems))
    pooled_runs = tuple(run for run, _ in _rows(runs, PooledRun, f"{name}/runs.jsonl", problems))
    whole: list[PooledResponse] = []
    for answer, bad in _rows(answers, PooledResponse, f"{name}/{ANSWERS}", problems):
        if not UNITS[answer.unit].whole_response:
            bad("$.unit", f"{answer.response_id} is one {answer.unit}, expected a response")
        _share(answer, strings)
        whole.append(answer)
    by_turn: dict[str, PooledTurn] = {}
    for turn, bad in _rows(turns, PooledTurn, f"{name}/turns.jsonl", problems):
        if not is_genuine(turn):
            bad("$.turn_id", f"the turn id {turn.turn_id} does not belong to this conversation")
        by_turn[turn.turn_id] = turn
    for turn_id in without_turn({response.turn_id for response in by_id.values()}, by_turn):
        message = f"no line has the turn {turn_id}, so its conversation is not known"
        problems.append(file_problem("pool_damaged", f"{name}/turns.jsonl", message, "$"))
    refuse(problems, f"{name}: the files of the pool are damaged")
    return Pool(
        responses=tuple(by_id.values()),
        passages=by_key,
        exclusions=exclusions,
        runs=pooled_runs,
        turns=by_turn,
        answers=tuple(whole),
    )


def _single_orders(responses: Iterable[PooledResponse], distinct: Container[Distinct], file: str) -> Iterator[Problem]:
    """The pairs that are there in one order only."""
    for pair in responses:
        if (
            UNITS[pair.unit].orders > 1
            and distinct_key(replace(pair, text=pair.second, second=pair.text)) not in distinct
        ):
            yield Problem(
                code="pool_damaged",
                severity="error",
                file=file,
                turn_id=pair.turn_id,
                path="$",
                message=f"no line has the pair {pair.response_id} in the other order",
            )


def _share(response: PooledResponse, strings: dict[str, str]) -> None:
    """Hold the strings of a response that were read already once; it was just read, and nobody else has it yet."""
    force_setattr(response, "turn_id", strings.setdefault(response.turn_id, response.turn_id))
    force_setattr(response, "topic_id", strings.setdefault(response.topic_id, response.topic_id))
    force_setattr(response, "passages", tuple(strings.setdefault(key, key) for key in response.passages))
    digest = response.runs[0].text_sha256 if response.runs else ""
    for entry in response.runs:
        force_setattr(entry, "run_id", strings.setdefault(entry.run_id, entry.run_id))
        if entry.text_sha256 == digest:
            force_setattr(entry, "text_sha256", digest)


def _rows(
    content: Lines, row_type: type[_Row], file: str, problems: list[Problem]
) -> Iterator[tuple[_Row, Callable[[str, str], None]]]:
    """Each readable line of a JSONL file, with a function that adds a problem at that line."""
    before = len(problems)
    for number, row in decode_rows(_numbered(content, file), row_type, file, "pool_damaged", problems):
        yield row, partial(_damaged, problems, file, number)
        if too_many(problems, file, number, before):
            return


def _damaged(problems: list[Problem], file: str, number: int, path: str, message: str) -> None:
    problems.append(file_problem("pool_damaged", file, message, f"line {number}: {path}"))


def _read_excluded(content: Lines, file: str, problems: list[Problem]) -> Iterator[Exclusion]:
    header = "\t".join(EXCLUDED_COLUMNS)
    strings: dict[str, str] = {}
    for number, stored in _numbered(content, file):
        line = stored.decode(errors="replace")
        if number == 1:
            if line != header:
                _damaged(problems, file, 1, "$", f"expected the header {header!r}")
            continue
        fields = [unescape(field) for field in line.split("\t")]
        if len(fields) == 5 and re.fullmatch("(-?[0-9]{1,18})?", fields[2]):
            run_id, turn_id, rank, reason, detail = (strings.setdefault(field, field) for field in fields)
            yield Exclusion(
                run_id=run_id, turn_id=turn_id, rank=int(rank) if rank else None, reason=reason, detail=detail
            )
        elif line:
            _damaged(problems, file, number, "$", "expected five fields between tabs, the third a rank or empty")


def _numbered(content: Lines, file: str) -> Iterable[tuple[int, bytes]]:
    if isinstance(content, bytes):
        return numbered(content.removeprefix(BOM), file) if content else ()
    return content


Beside = Literal["passages.jsonl", "excluded.tsv", "runs.jsonl"]
BESIDE: tuple[Beside, ...] = get_args(Beside)
"""The files of a pool beside its responses."""
ANSWERS = "answers.jsonl"
"""The file of a pool of citations with the whole responses, which is always read where there is one."""
TURNS = "turns.jsonl"
"""The file of a pool with interactive runs, which is always read, since their turn ids mean nothing without it."""


def pool_file(path: Path) -> Path:
    """The file with the responses of a pool: `pool.jsonl` of a folder, or the path itself."""
    return path / "pool.jsonl" if path.is_dir() else path


def read_pool_folder(path: Path, *beside: Beside) -> Pool:
    """The pool of a folder or of a `pool.jsonl`, packed or not; what stands in a file that is not named is empty."""
    file = pool_file(path)
    with ExitStack() as opened:

        def lines(name: str) -> LineStream:
            stream = LineStream(file.with_name(name), packed=True)
            opened.enter_context(stream.file)
            return stream

        return read_pool(
            lines(file.name),
            lines("passages.jsonl") if "passages.jsonl" in beside else b"",
            str(file.parent),
            lines("excluded.tsv") if "excluded.tsv" in beside else b"",
            lines("runs.jsonl") if "runs.jsonl" in beside else b"",
            lines(TURNS) if file.with_name(TURNS).exists() else b"",
            lines(ANSWERS) if file.with_name(ANSWERS).exists() else b"",
        )
